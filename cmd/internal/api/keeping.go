package api

import "context"

// DeleteBackup asks for a backup to be deleted from all storages.
type DeleteBackup struct {
	Now bool `json:"now,omitempty"` // without the delay in which it can be undone
}

// MarkBackup changes what people say of a backup; what is left out stays.
type MarkBackup struct {
	Pinned   *bool   `json:"pinned,omitempty"`   // never delete it
	Accepted *bool   `json:"accepted,omitempty"` // it is wanted although it is suspect
	Note     *string `json:"note,omitempty"`     // at most 1024 bytes
}

// VerifyBackup asks for copies of a backup to be read back.
type VerifyBackup struct {
	Storages []string `json:"storages,omitempty"` // none: all that should have one
	Scratch  string   `json:"scratch,omitempty"`  // server to restore it into for a while; empty: only bytes are compared
}

// ReplicateBackup asks for copies of a backup to be made or mended.
type ReplicateBackup struct {
	Storages []string `json:"storages,omitempty"` // none: those whose copy is missing or corrupt
}

// DeleteBackup plans the deletion of a backup and returns its task.
func (c *Client) DeleteBackup(ctx context.Context, id string, r DeleteBackup) (Task, error) {
	return post[Task](ctx, c, BackupPath(id)+"/delete", r)
}

// UndeleteBackup takes a planned deletion back, and returns the backup.
func (c *Client) UndeleteBackup(ctx context.Context, id string) (Backup, error) {
	return post[Backup](ctx, c, BackupPath(id)+"/undelete", struct{}{})
}

// MarkBackup changes what people say of a backup, and returns it.
func (c *Client) MarkBackup(ctx context.Context, id string, r MarkBackup) (Backup, error) {
	return post[Backup](ctx, c, BackupPath(id)+"/mark", r)
}

// VerifyBackup plans a verification and returns its task.
func (c *Client) VerifyBackup(ctx context.Context, id string, r VerifyBackup) (Task, error) {
	return post[Task](ctx, c, BackupPath(id)+"/verify", r)
}

// ReplicateBackup plans the making or mending of copies and returns the task.
func (c *Client) ReplicateBackup(ctx context.Context, id string, r ReplicateBackup) (Task, error) {
	return post[Task](ctx, c, BackupPath(id)+"/replicate", r)
}
