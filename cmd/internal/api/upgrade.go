package api

import (
	"context"
	"slices"
)

// Paths of upgrades.
const (
	PathUpgrade         = "/api/v1/upgrade"
	PathUpgradeFinalize = PathUpgrade + "/finalize"
)

// Upgrade is which programs the nodes run, and what the group writes.
type Upgrade struct {
	Protocol uint32    `json:"protocol"` // version of all formats that the group writes
	Next     uint32    `json:"next"`     // that it can write once the upgrade is finalized; that of protocol when there is none
	Programs []Program `json:"programs"` // of each node, by name
	// Against is what stands against finalizing it now, one sentence each.
	Against []string `json:"against"`
}

// Program is what a node runs.
type Program struct {
	Node     string `json:"node"`
	Version  string `json:"version"`  // empty: not known
	Protocol uint32 `json:"protocol"` // newest that it reads; 0: not known
	Here     bool   `json:"here"`     // it is a member now; else it has a place in the log only
}

// Versions are those of the programs that run, each once.
func (u Upgrade) Versions() (list []string) {
	for _, p := range u.Programs {
		if p.Here && p.Version != "" {
			list = append(list, p.Version)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Rolling tells whether an upgrade is on the way, or waits to be finalized.
func (u Upgrade) Rolling() bool { return u.Next > u.Protocol || len(u.Versions()) > 1 }

// FinalizeUpgrade has the group write the next protocol.
type FinalizeUpgrade struct {
	// Without are nodes that need not be here. One whose program is too old is refused when it comes back.
	Without []string `json:"without,omitempty"`
}

// Upgrade asks which programs the nodes run, and what stands against finalizing an upgrade.
func (c *Client) Upgrade(ctx context.Context) (Upgrade, error) {
	return Get[Upgrade](ctx, c, PathUpgrade)
}

// FinalizeUpgrade has the group write the next protocol from here on. There is no way back.
func (c *Client) FinalizeUpgrade(ctx context.Context, r FinalizeUpgrade) (Upgrade, error) {
	return post[Upgrade](ctx, c, PathUpgradeFinalize, r)
}
