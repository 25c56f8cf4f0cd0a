package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// tries is how often a change is rebuilt after its row changed under it: more than any number of honest writers of
// one row, few enough to end.
const tries = 64

// Config configures a Ledger.
type Config struct {
	// Store is where the rows live. Required.
	Store Store
	// History is how many finished tasks are kept; older ones are dropped when a task is planned. 0 means 1,000; at
	// least 1.
	History int
	// Archive keeps ended tasks before they are dropped, oldest first; one that it has kept already may come again. While it
	// fails they stay, as long as there is room. nil: they are just dropped. It may block until ctx ends.
	Archive func(ctx context.Context, ended []ledger.Task) error
	// Now is the clock for the times in rows; nil means time.Now. No decision but the dropping of old history depends
	// on it.
	Now func() time.Time
}

// Ledger implements ledger.Ledger on a Store. It has no goroutine of its own.
type Ledger struct {
	store   Store
	history int
	archive func(ctx context.Context, ended []ledger.Task) error
	now     func() time.Time
}

var _ ledger.Ledger = (*Ledger)(nil)

// New checks cfg and returns a Ledger; it does not touch the Store.
func New(cfg Config) (*Ledger, error) {
	if cfg.Store == nil {
		return nil, errors.New("embedded ledger: Store is missing")
	}
	if cfg.History < 0 {
		return nil, fmt.Errorf("embedded ledger: History is %d: need at least 1, or 0 for the default", cfg.History)
	}
	if cfg.History == 0 {
		cfg.History = 1000
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Ledger{store: cfg.Store, history: cfg.History, archive: cfg.Archive, now: cfg.Now}, nil
}

// Task implements ledger.Tasks.
func (l *Ledger) Task(ctx context.Context, id string) (ledger.Task, error) {
	t, _, err := l.task(ctx, id)
	if err != nil {
		return ledger.Task{}, err
	}
	it, err := l.store.Get(ctx, cancelPrefix+id)
	if err != nil {
		return ledger.Task{}, unavailable("read cancel request of "+id, err)
	}
	if it.Version == 0 {
		return t, nil
	}
	c, err := decode[cancelRow](it)
	t.CancelBy = c.By
	return t, err
}

// task reads a row and its version, without its cancel request.
func (l *Ledger) task(ctx context.Context, id string) (ledger.Task, uint64, error) {
	it, err := l.store.Get(ctx, taskPrefix+id)
	if err != nil {
		return ledger.Task{}, 0, unavailable("read task "+id, err)
	}
	if it.Version == 0 {
		return ledger.Task{}, 0, fmt.Errorf("read task %s: %w", id, ledger.ErrNotFound)
	}
	t, err := decode[ledger.Task](it)
	return t, it.Version, err
}

// Tasks implements ledger.Tasks.
func (l *Ledger) Tasks(ctx context.Context, f ledger.TaskFilter) ([]ledger.Task, error) {
	all, err := list[ledger.Task](ctx, l.store, taskPrefix)
	if err != nil {
		return nil, err
	}
	cancels, err := l.cancels(ctx)
	if err != nil {
		return nil, err
	}
	out := all[:0]
	for _, t := range all {
		if f.Matches(t) {
			t.CancelBy = cancels[t.ID]
			out = append(out, t)
		}
	}
	slices.SortFunc(out, newestTask)
	return limit(out, f.Limit), nil
}

func (l *Ledger) cancels(ctx context.Context) (map[string]string, error) {
	items, err := l.store.List(ctx, cancelPrefix)
	if err != nil {
		return nil, unavailable("list cancel requests", err)
	}
	by := make(map[string]string, len(items))
	for _, it := range items {
		c, err := decode[cancelRow](it)
		if err != nil {
			return nil, err
		}
		by[strings.TrimPrefix(it.Key, cancelPrefix)] = c.By
	}
	return by, nil
}

// Backup implements ledger.Backups.
func (l *Ledger) Backup(ctx context.Context, id string) (ledger.Backup, error) {
	b, _, err := l.backup(ctx, id)
	if err == nil && b == nil {
		return ledger.Backup{}, fmt.Errorf("read backup %s: %w", id, ledger.ErrNotFound)
	}
	if err != nil {
		return ledger.Backup{}, err
	}
	return *b, nil
}

// backup reads an entry and its version; nil when there is none.
func (l *Ledger) backup(ctx context.Context, id string) (*ledger.Backup, uint64, error) {
	it, err := l.store.Get(ctx, backupPrefix+id)
	if err != nil {
		return nil, 0, unavailable("read backup "+id, err)
	}
	if it.Version == 0 {
		return nil, 0, nil
	}
	b, err := decode[ledger.Backup](it)
	return &b, it.Version, err
}

// Backups implements ledger.Backups.
func (l *Ledger) Backups(ctx context.Context, f ledger.BackupFilter) ([]ledger.Backup, error) {
	all, err := list[ledger.Backup](ctx, l.store, backupPrefix)
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(all, func(b ledger.Backup) bool { return !f.Matches(b) })
	slices.SortFunc(out, newestBackup)
	return limit(out, f.Limit), nil
}

// Watch implements ledger.Ledger.
func (l *Ledger) Watch(ctx context.Context) <-chan struct{} { return l.store.Watch(ctx, "") }

// ShutOut implements ledger.Ledger: it confirms that the fence is held. The Store refuses the predecessors by itself
// from the position on at which the fence was raised.
func (l *Ledger) ShutOut(ctx context.Context, f ledger.Fence) error {
	return l.change(ctx, "shut out run "+f.Run, func() (Txn, error) {
		return Txn{Conditions: []Condition{held(f)}}, nil
	})
}

// change builds a transaction and commits it, again and again while rows change under it.
func (l *Ledger) change(ctx context.Context, what string, build func() (Txn, error)) error {
	for range tries {
		txn, err := build()
		if err != nil {
			return err
		}
		err = l.store.Commit(ctx, txn)
		var failed *ConditionError
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrFull):
			if roomErr := l.makeRoom(ctx); roomErr != nil {
				return fmt.Errorf("%s: %w: %w", what, ErrFull, roomErr)
			}
			continue
		case !errors.As(err, &failed):
			return unavailable(what, err)
		case failed.Condition.Kind != VersionIs:
			return fmt.Errorf("%s: %w (%w)", what, ledger.ErrFenced, err)
		}
	}
	return fmt.Errorf("%s: row changed %d times while it was written: %w", what, tries, ledger.ErrUnavailable)
}

// list reads and decodes all rows of one prefix.
func list[T any](ctx context.Context, s Store, prefix string) ([]T, error) {
	items, err := s.List(ctx, prefix)
	if err != nil {
		return nil, unavailable("list "+prefix, err)
	}
	rows := make([]T, 0, len(items))
	for _, it := range items {
		row, err := decode[T](it)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// unavailable classifies an error of the Store that is no failed condition.
func unavailable(what string, err error) error {
	if errors.Is(err, ledger.ErrUnavailable) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w: %w", what, ledger.ErrUnavailable, err)
}

func newestTask(a, b ledger.Task) int {
	if c := b.Created.Compare(a.Created); c != 0 {
		return c
	}
	return strings.Compare(b.ID, a.ID)
}

func newestBackup(a, b ledger.Backup) int {
	if c := b.Created.Compare(a.Created); c != 0 {
		return c
	}
	return strings.Compare(b.ID, a.ID)
}

func limit[T any](rows []T, n int) []T {
	if n > 0 && len(rows) > n {
		return rows[:n]
	}
	return rows
}
