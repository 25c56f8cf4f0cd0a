package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/gms"
	ledgerdb "github.com/fencepost/fencepost/pipeline/ledger/postgres"
)

// versionDetail is where a run says which version of the program it is.
const versionDetail = "version"

// Upgrade implements admin.Members.
func (p people) Upgrade(ctx context.Context) (api.Upgrade, error) {
	fresh := p.fresh(ctx)
	u := p.a.upgradeNow()
	if !fresh {
		u.Against = append(u.Against, unconfirmed)
	}
	return u, nil
}

const unconfirmed = "no majority confirms what this node knows"

// upgradeNow is what this node knows of it, without asking anybody.
func (a *App) upgradeNow() api.Upgrade {
	return upgradeOf(a.group.Protocol(), a.group.Members(), a.group.Servers(), nil)
}

// upgradeOf is which programs there are, and what stands against finalizing an upgrade when the nodes without may be away.
func upgradeOf(protocol uint32, members []gms.MemberDetail, servers []gms.Server, without []string) api.Upgrade {
	u := api.Upgrade{Protocol: protocol, Next: protocol, Programs: []api.Program{}, Against: []string{}}
	for _, m := range members {
		u.Programs = append(u.Programs, api.Program{Node: m.Node, Version: string(m.Details[versionDetail]), Protocol: m.Protocol, Here: true})
		if m.Protocol > protocol {
			u.Next = protocol + 1
		}
	}
	for _, s := range servers {
		if !slices.ContainsFunc(u.Programs, func(p api.Program) bool { return p.Node == s.Node }) {
			u.Programs = append(u.Programs, api.Program{Node: s.Node})
		}
	}
	slices.SortFunc(u.Programs, func(a, b api.Program) int { return cmp.Compare(a.Node, b.Node) })
	if u.Next == u.Protocol {
		return u
	}
	for _, p := range u.Programs {
		switch {
		case p.Here && p.Protocol < u.Next:
			u.Against = append(u.Against, fmt.Sprintf("%s runs %s, which reads protocols up to %d", p.Node, cmp.Or(p.Version, "an older version"), p.Protocol))
		case !p.Here && !slices.Contains(without, p.Node):
			u.Against = append(u.Against, p.Node+" is not here")
		}
	}
	return u
}

// FinalizeUpgrade implements admin.Operator.
func (p people) FinalizeUpgrade(ctx context.Context, want api.FinalizeUpgrade) (api.Upgrade, error) {
	g := p.a.group
	if err := g.Sync(ctx); err != nil {
		return api.Upgrade{}, err
	}
	u := upgradeOf(g.Protocol(), g.Members(), g.Servers(), want.Without)
	switch {
	case u.Next == u.Protocol:
		return u, &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("there is nothing to finalize: the group writes protocol %d, and no node reads a later one", u.Protocol), Hint: "fencepost upgrade shows what each node runs"}
	case len(u.Against) > 0:
		return u, &api.Error{Code: api.CodeBusy, Message: "the upgrade cannot be finalized yet: " + strings.Join(u.Against, "; "),
			Hint: "upgrade and start these nodes first; for one that stays away name it by --without, or forget it: fencepost node forget"}
	case u.Next > gms.Protocol:
		return u, &api.Error{Code: api.CodeConflict, Message: "the program of the node that answers is older than that of others", Hint: "ask one of the others"}
	}
	p.a.log.Warn("app: an operator has the group write the next protocol, which older programs do not read", "protocol", u.Next)
	if _, err := g.FinalizeUpgrade(ctx); err != nil {
		return u, err
	}
	p.a.finishUpgrade(ctx)
	return p.Upgrade(ctx)
}

// finishUpgrade brings a ledger in a database up to what the group writes: each node looks, since the one that was asked to
// finalize may have died before it came to that.
func (a *App) finishUpgrade(ctx context.Context) {
	a.mu.Lock()
	w := a.work
	a.mu.Unlock()
	if w == nil {
		return
	}
	led, ok := w.ledger.(*ledgerdb.Ledger)
	if !ok {
		return
	}
	if err := led.Upgrade(ctx, a.group.Protocol()); err != nil && ctx.Err() == nil {
		a.log.Warn("app: the ledger is not yet what the group's protocol wants; it is tried again", "error", err)
	}
}
