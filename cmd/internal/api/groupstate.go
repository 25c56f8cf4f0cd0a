package api

import (
	"context"
	"time"
)

// Where a group is made anew from what it kept of itself.
const (
	PathGroupRestore     = "/api/v1/group/restore"
	PathGroupRestorePlan = PathGroupRestore + "/plan"
	PathKit              = "/api/v1/group/kit"
)

// Kit is what a kit leads to.
type Kit struct {
	ID      string            `json:"id,omitempty"` // as manifests name it
	Made    *time.Time        `json:"made,omitempty"`
	By      string            `json:"by,omitempty"`
	Places  map[string]string `json:"places"`  // marks of the places of storages, by name
	Signers []string          `json:"signers"` // keys of nodes that it believes
}

// NoteKit has the group know that a kit was made: it warns when that is out of date.
func (c *Client) NoteKit(ctx context.Context, k Kit) error {
	_, err := post[Kit](ctx, c, PathKit, k)
	return err
}

// GroupCopy is what the group keeps of its own state in one storage: settings, users, pins and what else people have entered.
type GroupCopy struct {
	Storage string     `json:"storage"`
	Object  string     `json:"object,omitempty"` // name of the newest; none: there is none yet
	At      *time.Time `json:"at,omitempty"`     // when it was made
	Bytes   int        `json:"bytes,omitempty"`
	Without []string   `json:"without"`           // what is left out, since nothing encrypts: users, tokens
	Problem string     `json:"problem,omitempty"` // why it could not be made anew since
	Since   *time.Time `json:"since,omitempty"`   // of the problem
}

// RestoreGroup has a group take over what a lost one has kept of itself in a storage.
type RestoreGroup struct {
	From    string `json:"from"`    // name of the storage
	Object  string `json:"object"`  // that was read there
	Cluster string `json:"cluster"` // id of the lost group
	// Over lets it replace what the group has entered otherwise.
	Over bool `json:"over"`
	// Secrets is the state: it holds what passwords and tokens are compared with.
	Secrets []byte `json:"secrets"`
}

// RestoredGroup is what a restore of a group's state would do, or has done.
type RestoredGroup struct {
	Done     bool     `json:"done"`
	Group    string   `json:"group"`
	Cluster  string   `json:"cluster"` // id of the group that takes it
	Entered  []string `json:"entered"` // what it has not, or otherwise: "setting storage/disk", "user ann"
	Same     int      `json:"same"`    // what it has just so
	Against  []string `json:"against"` // what it has and the state has not, or otherwise
	Storages []string `json:"storages"`
	// Backups are how many were found in the storages and made known.
	Backups int `json:"backups"`
	// Marks are how many backups are pinned, accepted or noted; Waiting are those of them that no storage has shown yet, whose
	// marks wait for them.
	Marks   int      `json:"marks"`
	Waiting []string `json:"waiting"`
	// Left is what could not be done yet, one sentence each: the same again does it.
	Left   []string `json:"left"`
	Ledger string   `json:"ledger,omitempty"` // kind of that of the lost group
}

// PlanRestoreGroup asks what RestoreGroup would do.
func (c *Client) PlanRestoreGroup(ctx context.Context, r RestoreGroup) (RestoredGroup, error) {
	return post[RestoredGroup](ctx, c, PathGroupRestorePlan, r)
}

// RestoreGroup has the group take over a state. The same again changes nothing but what was left.
func (c *Client) RestoreGroup(ctx context.Context, r RestoreGroup) (RestoredGroup, error) {
	return postWithin[RestoredGroup](ctx, c, PathGroupRestore, r, storageWork)
}
