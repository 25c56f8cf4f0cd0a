package e2e

import (
	"errors"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestRestoreForPeople: a backup in several streams; the newest is proposed with what it would replace; after the restore
// the replaced database gets its name back, and that is taken back too.
func TestRestoreForPeople(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 2), bulk("bills", 1))
	name := nameIn(t, dsn)
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn}})
	c.up()
	cl := c.client("n1")
	backup, err := cl.CreateBackup(c.ctx, api.CreateBackup{Database: "shop", Jobs: 3})
	if err != nil {
		t.Fatal(err)
	}
	c.finishes("n1", backup.ID)
	backedUp := print(t, dsn)
	execute(t, dsn, "DROP TABLE bills")
	changed := print(t, dsn)

	plan, err := cl.PreviewRestore(c.ctx, api.RestoreBackup{Database: "shop", Replace: true})
	if err != nil || plan.Backup.ID != backup.Backup || plan.Target != name || !plan.Exists || plan.Bytes == 0 || plan.KeepOldMS == 0 || plan.Server == "" {
		t.Fatalf("plan %+v, %v", plan, err)
	}
	_, err = cl.PreviewRestore(c.ctx, api.RestoreBackup{Database: "shop"})
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Code != api.CodeConflict || refused.Hint == "" {
		t.Errorf("a target that exists: %v", err)
	}
	same(t, "target after two previews", changed, print(t, dsn))

	task, err := cl.Restore(c.ctx, api.RestoreBackup{Backup: plan.Backup.ID, Replace: true, Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	if done := c.finishes("n1", task.ID); done.Undo == "" {
		t.Errorf("no undo: %+v", done)
	}
	same(t, "target after the restore", backedUp, print(t, dsn))
	if _, err := cl.Undo(c.ctx, task.ID); err != nil {
		t.Fatal(err)
	}
	same(t, "target after the undo", changed, print(t, dsn))
	if _, err := cl.Undo(c.ctx, task.ID); err != nil {
		t.Fatal(err)
	}
	same(t, "target after the undo of the undo", backedUp, print(t, dsn))
	if _, err := cl.Undo(c.ctx, backup.ID); !errors.As(err, &refused) || refused.Code != api.CodeUsage {
		t.Errorf("undo of a backup: %v", err)
	}
}
