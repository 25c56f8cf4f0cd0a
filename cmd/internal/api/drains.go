package api

import (
	"context"
	"net/url"
	"time"
)

// States of a node's drain.
const (
	DrainNone = "working"  // nobody has asked for it
	DrainBusy = "draining" // it begins nothing, and what it had begun goes on
	DrainIdle = "drained"  // it does nothing any more, and may be stopped; or it does not run
)

// Drain is how far a node is on its way to doing nothing.
type Drain struct {
	Node   string      `json:"node"`
	State  string      `json:"state"` // working, draining, drained
	By     string      `json:"by,omitempty"`
	Since  *time.Time  `json:"since,omitempty"`
	Here   bool        `json:"here"`    // it is a member now
	Leads  bool        `json:"leads"`   // the group's log
	Tasks  []DrainTask `json:"tasks"`   // that it works on
	Claims int         `json:"claims"`  // all that its run holds, those of tasks included
	LeftMS int64       `json:"left_ms"` // until the last of the tasks ends, as they go now; 0: not known
}

// DrainTask is a task that a node works on.
type DrainTask struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Database string `json:"database,omitempty"`
	LeftMS   int64  `json:"left_ms"` // 0: not known
}

// MayRestart says whether a node may be stopped now without hurting the group, and what stands against it.
type MayRestart struct {
	Node string   `json:"node"`
	May  bool     `json:"may"`
	Why  []string `json:"why"` // not
}

// DrainPath is where the drain of a node is.
func DrainPath(node string) string { return PathNodes + "/" + url.PathEscape(node) + "/drain" }

// MayRestartPath is where it is answered whether a node may be restarted.
func MayRestartPath(node string) string {
	return PathNodes + "/" + url.PathEscape(node) + "/may-restart"
}

// Drain is how far a node is with its drain.
func (c *Client) Drain(ctx context.Context, node string) (Drain, error) {
	return Get[Drain](ctx, c, DrainPath(node))
}

// DrainNode has a node begin nothing new until UndrainNode. It does not wait.
func (c *Client) DrainNode(ctx context.Context, n NodeName) (Drain, error) {
	return post[Drain](ctx, c, PathNodes+"/drain", n)
}

// UndrainNode lets a node work again.
func (c *Client) UndrainNode(ctx context.Context, n NodeName) (Drain, error) {
	return post[Drain](ctx, c, PathNodes+"/undrain", n)
}

// MayRestart asks whether a node may be stopped now.
func (c *Client) MayRestart(ctx context.Context, node string) (MayRestart, error) {
	return Get[MayRestart](ctx, c, MayRestartPath(node))
}
