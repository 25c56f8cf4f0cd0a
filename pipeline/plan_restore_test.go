package pipeline

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// listing is a ledger that has just these backups.
type listing struct {
	ledger.Ledger
	backups []ledger.Backup
}

func (l listing) Backups(context.Context, ledger.BackupFilter) ([]ledger.Backup, error) {
	return l.backups, nil
}

// The newest good backup is proposed: not one that is suspect, unless somebody has accepted it.
func TestNewestGood(t *testing.T) {
	one := func(id string, suspect, accepted bool) ledger.Backup {
		b := ledger.Backup{ID: id, Database: "shop", State: ledger.BackupCompleted}
		if suspect {
			b.Suspect = []string{"half the usual size"}
		}
		b.Mark.Accepted = accepted
		return b
	}
	part := one("p", false, false)
	part.Info.Options = source.DumpOptions{SchemaOnly: true}
	for want, list := range map[string][]ledger.Backup{
		"a":       {one("a", false, false), one("b", false, false)},
		"b":       {one("a", true, false), one("b", false, false)},
		"c":       {one("c", true, true), one("b", false, false)},
		"suspect": {one("a", true, false)},
		"w":       {part, one("w", false, false)},
		"part":    {part},
		"none":    nil,
	} {
		p := &Planner{cfg: PlannerConfig{Ledger: listing{backups: list}}}
		b, err := p.backup(t.Context(), RestoreRequest{Database: "shop"})
		if refused := want == "suspect" || want == "part" || want == "none"; (err != nil) != refused || !refused && b.ID != want {
			t.Errorf("want %s, got %s, %v", want, b.ID, err)
		}
	}
}

// A preview and an undo reach the source of the restore's database.
func (s *fakeServer) Preview(_ context.Context, o source.RestoreOptions) (source.Preview, error) {
	db, ok := s.get(o.Target)
	return source.Preview{Server: "fake", Exists: ok, Bytes: int64(len(db.data))}, nil
}

func (s *fakeServer) Undo(_ context.Context, a source.Attempt, p source.Prepared, keep time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undone = append(s.undone, p)
	return nil
}

func TestPreviewAndUndo(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		before := len(r.server.names())
		r.start("n1", nil, nil)
		p := r.planner(nil)
		plan, err := p.PreviewRestore(r.Context(), RestoreRequest{Database: "shop", Replace: true})
		r.must(err)
		if plan.Backup.ID != b.Backup || !plan.Preview.Exists || plan.Preview.Bytes != 700_000 || plan.Storage != "one" || plan.Task.Target != "shop" {
			r.Errorf("plan %+v", plan)
		}
		if tasks, err := r.led.Tasks(r.Context(), ledger.TaskFilter{Active: true}); err != nil || len(tasks) != 0 || len(r.server.names()) != before {
			r.Errorf("a preview planned %v, %v", tasks, err)
		}
		wantRequestError(r, p.Undo(r.Context(), b.ID, time.Hour), "task", "restore")
		wantRequestError(r, p.Undo(r.Context(), "nope", time.Hour), "task", "list")
		done := r.awaitState(r.restoreTask(b.Backup, nil).ID, ledger.Completed)
		r.must(p.Undo(r.Context(), done.ID, time.Hour))
		if len(r.server.undone) != 1 || r.server.undone[0] != done.Prepared {
			r.Errorf("undone %+v", r.server.undone)
		}
	})
}
