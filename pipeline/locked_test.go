package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/retention"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// lockedDisk keeps every object for some time after it was made.
type lockedDisk struct {
	storage.Storage
	keeps time.Duration
	away  error
}

func (l *lockedDisk) Unwrap() storage.Storage { return l.Storage }

func (l *lockedDisk) LockedUntil(ctx context.Context, name string) (time.Time, error) {
	info, err := l.Stat(ctx, name)
	if err != nil || l.away != nil {
		return time.Time{}, errors.Join(l.away, err)
	}
	return info.Modified.Add(l.keeps), nil
}

// What a storage locks is not deleted while it does: nobody can plan it, retention keeps it and says until when, and a delete
// that was planned before, or while the storage could not be asked, changes nothing.
func TestLockedBackups(t *testing.T) {
	inRig(t, func(r *rig) {
		lock := &lockedDisk{Storage: r.disks["two"], keeps: 2 * time.Hour}
		catalog := func(c *Config) { c.Catalog.Storages["two"] = lock }
		n := r.start("keeper", catalog, nil)
		var b []ledger.Task
		for range 3 {
			b = append(b, r.awaitState(r.backup("all").ID, ledger.Completed))
			r.must(pause(r.Context(), time.Second))
		}
		plan := func(delay time.Duration) (ledger.Task, error) {
			p := r.planner(func(c *PlannerConfig) { c.Catalog.Storages["two"], c.DeleteDelay = lock, delay })
			return p.PlanDelete(r.Context(), DeleteRequest{Backup: b[0].Backup})
		}
		refused := func(err error) {
			r.Helper()
			var bad *RequestError
			if !errors.As(err, &bad) || !errors.Is(err, ledger.ErrRefused) || !strings.Contains(err.Error(), "is locked in storage two until 20") || bad.Hint == "" {
				r.Errorf("want it refused: %v", err)
			}
		}
		_, err := plan(time.Hour)
		refused(err)
		pruner := r.pruner(n, retention.Policy{Last: 1, Unverified: true})
		pruner.planner.cfg.Catalog.Storages["two"] = lock
		dry, err := pruner.Decide(r.Context(), "shop", true)
		r.must(err)
		for _, d := range dry.Decisions[1:] {
			if d.Action != retention.Keep || !strings.Contains(d.Reason, "locked until 20") {
				r.Errorf("retention: %+v", d)
			}
		}

		lock.away = errBoom // then it is decided when it goes
		task, err := plan(time.Minute)
		r.must(err)
		lock.away = nil
		failed := r.awaitState(task.ID, ledger.Failed)
		if !strings.Contains(failed.Error, "is locked in storage two until 20") || failed.Hint == "" {
			r.Errorf("%q, hint %q", failed.Error, failed.Hint)
		}
		r.wantEntry(b[0].Backup, ledger.BackupCompleted)
		for _, disk := range []string{"one", "two"} {
			if got := len(r.objects(disk)); got != 9 {
				r.Errorf("disk %s holds %q", disk, r.objects(disk))
			}
		}

		task, err = plan(lock.keeps) // it goes when the lock has ended
		r.must(err)
		r.must(pause(r.Context(), lock.keeps))
		r.awaitState(task.ID, ledger.Completed)
		r.wantEntry(b[0].Backup, ledger.BackupGone)
		r.wantNoClaims()
	})
}
