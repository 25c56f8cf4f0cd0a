package api

import (
	"context"
	"net/url"
	"time"
)

// States of a node's removal.
const (
	RemovalNone       = "kept"       // nobody has asked for it
	RemovalDraining   = "draining"   // it begins nothing, and what it had begun goes on
	RemovalLeaving    = "leaving"    // it is idle, and stops by itself
	RemovalForgetting = "forgetting" // it is gone; its recoveries end, and its vote goes
	RemovalDone       = "removed"    // the group does not know it any more; a client's word, since nobody can be asked then
)

// Removal is how far a node is on its way out of the group, for good.
type Removal struct {
	Node     string         `json:"node"`
	State    string         `json:"state"` // kept, draining, leaving, forgetting, removed
	By       string         `json:"by,omitempty"`
	Since    *time.Time     `json:"since,omitempty"`
	Drain    Drain          `json:"drain"`
	Storages []BoundStorage `json:"storages"` // that no other node has; told until the removal is asked for, and in the answer to that
}

// BoundStorage is a storage that only one node has: without it nobody reads what lies there.
type BoundStorage struct {
	Name    string `json:"name"`
	Backups int    `json:"backups"` // complete ones that have a copy in it
	Only    int    `json:"only"`    // those of them that have no copy in a storage of another node
}

// RemovalPath is where the removal of a node is.
func RemovalPath(node string) string { return PathNodes + "/" + url.PathEscape(node) + "/removal" }

// Removal is how far a node is on its way out, and what would go with it when nobody has asked for it yet.
func (c *Client) Removal(ctx context.Context, node string) (Removal, error) {
	return Get[Removal](ctx, c, RemovalPath(node))
}

// RemoveNode has a node drained, leave for good, and forgotten. It does not wait. UndrainNode takes it back until the node
// has left.
func (c *Client) RemoveNode(ctx context.Context, n NodeName) (Removal, error) {
	return post[Removal](ctx, c, PathNodes+"/remove", n)
}
