package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// Verdict says what is left to do with a recovered task.
type Verdict int

// Verdicts.
const (
	Settled Verdict = iota + 1 // the task has ended: complete its claim
	Rerun                      // it is planned again, for the holder of the claim: lower the fence, then Resume
)

// Recover settles one task of a dead run. The caller holds the fence (g.Fence) and has adopted the task's claim with
// g.Token. Recover shuts the predecessors out before it looks at anything, takes the row, and carries out what Next
// decides: nothing of a lower token is left that could count, or what counts is in the ledger. An error that is
// ErrUnavailable means try again, here or elsewhere, under a new token or the same; ledger.ErrFenced that the fence or
// the claim has moved. May block until ctx ends. node is the recoverer's own.
func (w *Worker) Recover(ctx context.Context, g ledger.Guard, node string) (Verdict, error) {
	if g.Fence == nil {
		return 0, errors.New("recover task: no fence is held")
	}
	if err := w.cfg.Ledger.ShutOut(ctx, *g.Fence); err != nil {
		return 0, unavailable("recover task "+g.Item, err)
	}
	if err := w.takeOver(ctx, g, node); err != nil {
		if errors.Is(err, ledger.ErrFinal) { // perhaps its owner died before it was remembered
			err = w.rememberRow(ctx, g.Item)
		}
		if err == nil || errors.Is(err, ledger.ErrNotFound) {
			return Settled, nil
		}
		return 0, unavailable("recover task "+g.Item, err)
	}
	v, err := w.settle(ctx, g)
	return v, unavailable("recover task "+g.Item, err)
}

// takeOver takes the row; that this very token has it already (an earlier call that was interrupted) is well.
func (w *Worker) takeOver(ctx context.Context, g ledger.Guard, node string) error {
	_, err := w.cfg.Ledger.Take(ctx, g, g.Item, node)
	if !errors.Is(err, ledger.ErrFenced) {
		return err
	}
	row, readErr := w.cfg.Ledger.Task(ctx, g.Item)
	if readErr != nil {
		return readErr
	}
	switch {
	case row.Token != g.Token || row.Run != g.Run:
		return err
	case row.State.Final():
		return fmt.Errorf("take over: %w", ledger.ErrFinal)
	}
	return nil
}

// settle reverts what lower tokens left of a row that g has taken, and says what became of it.
func (w *Worker) settle(ctx context.Context, g ledger.Guard) (Verdict, error) {
	f, err := w.look(ctx, g)
	if err != nil {
		return 0, err
	}
	told := newTaskLog(w.conf(), g, f.Task.Attempt)
	defer told.end(ctx)
	for {
		var err error
		act := Next(f)
		switch act.Kind {
		case ActEntomb:
			f.Manifests, err = w.entombAll(ctx, f)
			f.Entombed = true
		case ActDrop:
			err = w.dropBelow(ctx, g, f, told.logger())
			f.Dropped = true
		case ActSettle:
			f.Outcome, err = w.settleTarget(ctx, g, f.Task)
			f.Settled = true
		default:
			if act.Kind == ActRerun && f.Task.State == ledger.Planned {
				return Rerun, nil // the row says so already
			}
			return w.finish(ctx, g, f, act, told.logger())
		}
		if err != nil {
			return 0, err
		}
	}
}

func (w *Worker) look(ctx context.Context, g ledger.Guard) (Found, error) {
	t, err := w.cfg.Ledger.Task(ctx, g.Item)
	if err != nil {
		return Found{}, err
	}
	if t.Token != g.Token {
		return Found{}, fmt.Errorf("task %s has token %d, not %d: %w", t.ID, t.Token, g.Token, ledger.ErrFenced)
	}
	f := Found{Task: t, Now: w.cfg.Now()}
	if t.Type == ledger.Delete {
		entry, err := w.cfg.Ledger.Backup(ctx, t.Backup)
		if errors.Is(err, ledger.ErrNotFound) {
			return f, nil
		}
		f.Entry = &entry
		return f, err
	}
	if t.Type != ledger.Create {
		return f, nil
	}
	if f.Need, err = Needed(t.Require, len(t.Storages)); err != nil {
		return Found{}, err
	}
	entry, err := w.cfg.Ledger.Backup(ctx, t.Backup)
	if err == nil && entry.State == ledger.BackupCreating {
		f.Entry = &entry
	}
	if errors.Is(err, ledger.ErrNotFound) {
		err = nil
	}
	return f, err
}

// each calls do for each storage of a task. One that this node does not know is for another node to settle.
func (w *Worker) each(t ledger.Task, do func(storage.Storage) error) error {
	var errs []error
	for _, name := range t.Storages {
		st := w.conf().Catalog.Storages[name]
		if st == nil {
			errs = append(errs, fmt.Errorf("storage %q is not configured on this node: %w", name, ErrUnavailable))
			continue
		}
		if err := do(st); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", ErrUnavailable, &storageError{name: name, err: err}))
		}
	}
	return errors.Join(errs...)
}

func (w *Worker) tomb(t ledger.Task, token uint64) Manifest {
	return w.cfg.Signer.sign(Tombstone(t.Backup, token, "the attempt's node ended; reverted by a successor", w.cfg.Now().UTC()))
}

// entombAll makes tombstones for the dead attempt and counts the storages in which it was committed before.
func (w *Worker) entombAll(ctx context.Context, f Found) (real int, err error) {
	if mutant == "tombstone" {
		return 0, nil
	}
	err = w.each(f.Task, func(st storage.Storage) error {
		m, err := entomb(ctx, st, w.tomb(f.Task, f.Entry.Token))
		if m != nil {
			real++
		}
		return err
	})
	return real, err
}

// dropBelow removes what lower tokens stored, and ends what the dead dump left on its server. The latter has no effect
// that anybody could see, so that a server which is away does not hold the recovery up.
func (w *Worker) dropBelow(ctx context.Context, g ledger.Guard, f Found, log *slog.Logger) error {
	if _, err := w.settleTarget(ctx, g, f.Task); err != nil {
		log.WarnContext(ctx, "sessions of the dead dump not ended", "err", err)
	}
	return w.each(f.Task, func(st storage.Storage) error {
		return revertBelow(ctx, st, f.Task.Backup, g.Token, func(token uint64) Manifest { return w.tomb(f.Task, token) })
	})
}

// settleTarget ends the dead attempts at the database's server.
func (w *Worker) settleTarget(ctx context.Context, g ledger.Guard, t ledger.Task) (source.Outcome, error) {
	src, ok := w.conf().Catalog.Sources[t.Database]
	if t.Scratch != "" {
		src, ok = w.conf().Catalog.Scratch[t.Scratch]
	}
	if !ok {
		return 0, fmt.Errorf("database %q is not configured on this node: %w", t.Database, ErrUnavailable)
	}
	return src.Settle(ctx, source.Attempt{Task: t.ID, Token: g.Token}, known(t))
}

// known is what a task's row tells about where its earlier attempts may have had an effect.
func known(t ledger.Task) source.Prepared {
	if t.Choices.InPlace && t.Prepared.ID == 0 {
		return source.Prepared{Target: t.Target, InPlace: true}
	}
	return t.Prepared
}

// finish writes what became of the task, under the guard.
func (w *Worker) finish(ctx context.Context, g ledger.Guard, f Found, act Action, log *slog.Logger) (Verdict, error) {
	c := ledger.Change{Task: f.Task}
	c.Task.Error, c.Task.Prepared = act.Reason, source.Prepared{}
	verdict := Settled
	switch act.Kind {
	case ActAdopt:
		m, copies, err := w.adopted(ctx, f)
		if err != nil {
			return 0, err
		}
		c.Task.State, c.Task.Error, c.Backup = ledger.Completed, "", m.entry(copyRows(copies, m))
	case ActComplete:
		c.Task.State, c.Task.Error, c.Task.Prepared = ledger.Completed, "", f.Task.Prepared
	case ActRerun:
		c.Task.State, verdict = ledger.Planned, Rerun
	case ActFinish:
		c.Task.State = act.State
		if f.Entry != nil && f.Task.Type == ledger.Create {
			gone := *f.Entry
			gone.State = ledger.BackupGone
			c.Backup = &gone
		}
	}
	log.InfoContext(ctx, "task settled", "was", f.Task.State, "is", c.Task.State, "reason", act.Reason)
	return verdict, w.cfg.Ledger.Write(ctx, g, c)
}

// adopted reads the dead attempt's manifest where it is real.
func (w *Worker) adopted(ctx context.Context, f Found) (m Manifest, copies []*copyOf, err error) {
	for _, name := range f.Task.Storages {
		c := &copyOf{name: name, store: w.conf().Catalog.Storages[name]}
		if c.store == nil {
			return m, nil, fmt.Errorf("storage %q is not configured on this node: %w", name, ErrUnavailable)
		}
		copies = append(copies, c)
		there, err := readManifest(ctx, c.store, f.Task.Backup, f.Entry.Token)
		switch {
		case err != nil:
			return m, nil, fmt.Errorf("%w: %w", ErrUnavailable, &storageError{name: name, err: err})
		case there.Manifest.Void:
			c.err = errors.New("the attempt's node ended before this copy was committed")
		default:
			m = there.Manifest
		}
	}
	return m, copies, nil
}
