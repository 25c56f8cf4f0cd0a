package app

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/overview"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// usageFresh is for how long what was added up counts: it takes a read of all entries of the ledger.
const usageFresh = time.Minute

// used is what was added up last, and when.
type used struct {
	mu   sync.Mutex
	last api.Usage
	at   time.Time // zero: never
}

// Usage implements admin.Users.
func (j jobs) Usage(ctx context.Context) (api.Usage, error) {
	w, err := j.now()
	if err != nil {
		return api.Usage{}, err
	}
	j.a.used.mu.Lock()
	defer j.a.used.mu.Unlock()
	if time.Since(j.a.used.at) < usageFresh {
		return j.a.used.last, nil
	}
	u, err := usageOf(ctx, w, j.a.clock.Now())
	if err != nil {
		return u, err
	}
	j.a.used.last, j.a.used.at = u, time.Now()
	return u, nil
}

func usageOf(ctx context.Context, w *work, now time.Time) (api.Usage, error) {
	var all []overview.Kept
	for _, state := range []ledger.BackupState{"", ledger.BackupGone} {
		list, err := w.ledger.Backups(ctx, ledger.BackupFilter{State: state})
		if err != nil {
			return api.Usage{}, err
		}
		for _, b := range list {
			all = append(all, keptOf(b)...)
		}
	}
	free := map[string]int64{}
	for name, s := range w.stores() {
		teller, ok := storage.As[interface{ Free() (int64, error) }](s)
		if !ok {
			continue
		}
		if left, err := teller.Free(); err == nil { // one that is away is told of by the overview
			free[name] = left
		}
	}
	return overview.Usage(all, free, now), nil
}

// keptOf are the copies of a backup that was once complete.
func keptOf(b ledger.Backup) (list []overview.Kept) {
	if b.Completed.IsZero() {
		return nil
	}
	for _, c := range b.Copies {
		if c.State != ledger.CopyMissing {
			list = append(list, overview.Kept{Storage: c.Storage, Database: b.Database, Bytes: c.Bytes, Since: b.Completed, Gone: b.Gone})
		}
	}
	return list
}
