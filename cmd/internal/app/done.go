package app

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// doneComponent keeps in the state cache which restores and deletes were completed: done/<task>, a time in RFC 3339. It is part
// of the group's log, which is never put back to an older copy without being noticed; a ledger in a database may be.
const doneComponent = "done"

// rememberedFor is how long. A copy of a ledger that is older has been missed long before, by its mark.
const rememberedFor = 30 * 24 * time.Hour

// forgottenAtOnce bounds a transaction.
const forgottenAtOnce = 100

// doneTasks implements pipeline.Memory.
type doneTasks struct{ a *App }

func doneKey(task string) gms.Key { return gms.Key{Component: doneComponent, Key: task} }

func (d doneTasks) Remember(ctx context.Context, t ledger.Task) error {
	if d.Done(t.ID) {
		return nil
	}
	at := d.a.clock.Now().UTC().Format(time.RFC3339)
	_, err := d.a.group.Cache().Commit(ctx, gms.Txn{Puts: []gms.Put{{Key: doneKey(t.ID), Value: []byte(at)}}})
	return err
}

func (d doneTasks) Done(task string) bool {
	_, err := d.a.group.Cache().GetLocal(doneKey(task))
	return err == nil
}

// forget ends the memory of what was completed long ago. The leader calls it now and then.
func (d doneTasks) forget(ctx context.Context) {
	before := d.a.clock.Now().Add(-rememberedFor)
	var txn gms.Txn
	for _, e := range d.a.group.Cache().ListLocal(doneComponent, "", "") {
		at, err := time.Parse(time.RFC3339, string(e.Value))
		if err == nil && at.Before(before) && len(txn.Deletes) < forgottenAtOnce {
			txn.Deletes = append(txn.Deletes, e.Key)
		}
	}
	if len(txn.Deletes) == 0 {
		return
	}
	if _, err := d.a.group.Cache().Commit(ctx, txn); err != nil && !errors.Is(err, gms.ErrNotFound) && ctx.Err() == nil {
		d.a.log.Debug("app: what was completed long ago is still remembered; it is tried again", "error", err)
	}
}
