package app

import (
	"context"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// asker is who asks: a user's name, or at the socket the system's user and this node.
func (j jobs) asker(ctx context.Context) string {
	actor, known := accounts.Of(ctx)
	switch {
	case !known:
		return "the operator of " + j.a.cfg.Node
	case actor.Via == accounts.ViaSocket:
		return actor.Name + "@" + j.a.cfg.Node
	}
	return actor.Name
}

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
	b, err := w.planner.Undelete(ctx, id, j.asker(ctx))
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
		m.By = j.asker(ctx)
		return m
	})
	if err == nil {
		j.a.touchState(ctx)
	}
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
