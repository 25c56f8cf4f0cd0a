package app

import (
	"context"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// asker is who asks through the admin socket of this node.
func (j jobs) asker() string { return "the operator of " + j.a.cfg.Node }

// DeleteBackup implements admin.Keeping.
func (j jobs) DeleteBackup(ctx context.Context, id string, r api.DeleteBackup) (api.Task, error) {
	w, err := j.now()
	if err != nil {
		return api.Task{}, err
	}
	t, err := w.planner.PlanDelete(ctx, pipeline.DeleteRequest{Backup: id, Now: r.Now})
	return taskOf(t), err
}

// UndeleteBackup implements admin.Keeping.
func (j jobs) UndeleteBackup(ctx context.Context, id string) (api.Backup, error) {
	w, err := j.now()
	if err != nil {
		return api.Backup{}, err
	}
	b, err := w.planner.Undelete(ctx, id, j.asker())
	return backupOf(b), err
}

// MarkBackup implements admin.Keeping.
func (j jobs) MarkBackup(ctx context.Context, id string, r api.MarkBackup) (api.Backup, error) {
	w, err := j.now()
	if err != nil {
		return api.Backup{}, err
	}
	b, err := w.planner.Mark(ctx, id, func(m ledger.Mark) ledger.Mark {
		if r.Pinned != nil {
			m.Pinned = *r.Pinned
		}
		if r.Accepted != nil {
			m.Accepted = *r.Accepted
		}
		if r.Note != nil {
			m.Note = *r.Note
		}
		m.By = j.asker()
		return m
	})
	return backupOf(b), err
}

// VerifyBackup implements admin.Keeping.
func (j jobs) VerifyBackup(ctx context.Context, id string, r api.VerifyBackup) (api.Task, error) {
	w, err := j.now()
	if err != nil {
		return api.Task{}, err
	}
	t, err := w.planner.PlanVerify(ctx, pipeline.CheckRequest{Backup: id, Storages: r.Storages, Scratch: r.Scratch})
	return taskOf(t), err
}

// ReplicateBackup implements admin.Keeping.
func (j jobs) ReplicateBackup(ctx context.Context, id string, r api.ReplicateBackup) (api.Task, error) {
	w, err := j.now()
	if err != nil {
		return api.Task{}, err
	}
	t, err := w.planner.PlanReplicate(ctx, pipeline.CopyRequest{Backup: id, Storages: r.Storages})
	return taskOf(t), err
}
