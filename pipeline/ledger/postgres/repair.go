package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Errors of a Repair.
var (
	// ErrOccupied: there is a ledger already where one was to be made.
	ErrOccupied = errors.New("there is a ledger already")
	// ErrChanged: the ledger is not as it was looked at. Nothing was changed; look again.
	ErrChanged = errors.New("the ledger was changed since it was looked at")
)

// Lineage says which ledger one is, and whose.
type Lineage struct {
	Ledger     string // random id, made with the ledger
	Cluster    string // group that it belongs to
	Generation int64  // raised by each Amend
	Mark       uint64 // highest token whose result it holds
	Frozen     bool
	Reason     string // why it is frozen
}

func (in lineage) shown() Lineage {
	return Lineage{Ledger: in.ledger, Cluster: in.cluster, Generation: in.generation, Mark: in.mark, Frozen: in.state != "open", Reason: in.reason}
}

// Repair is a ledger in the hands of a person: it is read, frozen and amended whatever its lineage says, while no node works
// with it. OpenRepair makes it, Close ends it. It is not for concurrent use.
type Repair struct {
	led  *Ledger // without watchers, and never enrolled
	seen lineage
	made bool // there is a lineage row
}

// OpenRepair connects and looks at the lineage. It changes nothing, whoever the ledger belongs to. Errors as of Open, but
// neither ErrForeign nor ErrFrozen.
func OpenRepair(ctx context.Context, c Config) (*Repair, error) {
	const doing = "look at the ledger"
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	pool, err := connect(ctx, c, begin)
	if err != nil {
		return nil, wrap(ctx, doing, err)
	}
	r := &Repair{led: &Ledger{cfg: c, pool: pool, enrolled: make(map[string]bool)}}
	if r.seen, r.made, err = readLineage(ctx, pool); err != nil {
		pool.Close()
		return nil, wrap(ctx, doing, err)
	}
	return r, nil
}

// Close ends all sessions.
func (r *Repair) Close() { r.led.pool.Close() }

// Lineage is that of OpenRepair, or of the last change by this Repair; false: the database holds no ledger.
func (r *Repair) Lineage() (Lineage, bool) { return r.seen.shown(), r.made }

// readLineage reads the lineage row; false when there are no tables, or nobody has used them yet.
func readLineage(ctx context.Context, pool *pgxpool.Pool) (in lineage, made bool, err error) {
	if is, err := version(ctx, pool); err != nil || is == 0 {
		return in, false, err
	}
	err = pool.QueryRow(ctx, `SELECT `+lineageColumns+` FROM lineage`).Scan(in.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		return in, false, nil
	}
	return in, err == nil, err
}

// Holding reads what the ledger says of backups, gone ones too, and of tasks that have not ended.
func (r *Repair) Holding(ctx context.Context) (backups []ledger.Backup, active []ledger.Task, err error) {
	if backups, err = r.led.allBackups(ctx); err != nil {
		return nil, nil, err
	}
	active, err = r.led.Tasks(ctx, ledger.TaskFilter{Active: true})
	return backups, active, err
}

// allBackups lists entries of all states.
func (l *Ledger) allBackups(ctx context.Context) (all []ledger.Backup, err error) {
	for _, state := range []ledger.BackupState{ledger.BackupCreating, ledger.BackupCompleted, ledger.BackupDeleting, ledger.BackupGone} {
		list, err := l.Backups(ctx, ledger.BackupFilter{State: state})
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// Freeze has no node write to the ledger of the own group from now on, for a reason, until Amend. One that is frozen keeps its
// reason; another group's is left as it is.
func (r *Repair) Freeze(ctx context.Context, reason string) error {
	return r.led.repeat(ctx, "freeze the ledger", func(ctx context.Context) error {
		_, err := r.led.pool.Exec(ctx, `UPDATE lineage SET state = 'frozen', reason = $1 WHERE state = 'open' AND cluster = $2`, text(reason), r.led.cfg.Cluster)
		if err == nil {
			r.seen, r.made, err = readLineage(ctx, r.led.pool)
		}
		return err
	})
}

// Compare freezes the own group's ledger when it is an older copy than the group's mark says.
func (r *Repair) Compare(ctx context.Context) error {
	mark, err := r.led.cfg.groupMark(ctx) // before the lineage is read, which the nodes raise meanwhile
	if err == nil {
		r.seen, r.made, err = readLineage(ctx, r.led.pool)
	}
	if err != nil || !r.made || r.seen.cluster != r.led.cfg.Cluster || r.seen.mark >= mark {
		return wrap(ctx, "compare the ledger with the group's mark", err)
	}
	return r.Freeze(ctx, olderCopy(r.seen.mark, mark))
}

// Amendment is what a person has decided about a ledger after it was compared with the storages.
type Amendment struct {
	Backups []ledger.Backup // entries, put in place of what there is
	Tasks   []ledger.Task   // that end, as they say; one that has ended meanwhile, or was taken, is ErrChanged
}

// Amend makes all changes, makes the ledger this group's, whoever had it, opens it when it was frozen and raises its mark to the
// group's: in one transaction, and only when the lineage is as this Repair has seen it last (ErrChanged).
func (r *Repair) Amend(ctx context.Context, a Amendment) error {
	const doing = "amend the ledger"
	c := r.led.cfg
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	mark, err := c.groupMark(ctx)
	if err == nil {
		err = migrate(ctx, r.led.pool, c.Protocol)
	}
	if err != nil {
		return wrap(ctx, doing, err)
	}
	err = pgx.BeginFunc(ctx, r.led.pool, func(tx pgx.Tx) error {
		var in lineage
		var now time.Time
		err := tx.QueryRow(ctx, `SELECT `+lineageColumns+`, clock_timestamp() FROM lineage FOR UPDATE`).Scan(append(in.fields(), &now)...)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if in.ledger == "" || in.ledger != r.seen.ledger || in.cluster != r.seen.cluster || in.generation != r.seen.generation {
			return changed("another decision was carried out meanwhile")
		}
		for _, b := range a.Backups {
			if err := putEntry(ctx, tx, b); err != nil {
				return err
			}
		}
		for _, t := range a.Tasks {
			if err := endTask(ctx, tx, t, now.UTC()); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, notify.sql); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `UPDATE lineage SET cluster = $1, generation = generation + 1, state = 'open', reason = '', mark = GREATEST(mark, $2)
			RETURNING `+lineageColumns, c.Cluster, int64(mark)).Scan(r.seen.fields()...)
	})
	return wrap(ctx, doing, err)
}

func changed(why string) problem {
	return problem{why, "look at it again, and decide anew", []error{ErrChanged}}
}

// putEntry puts a backup's entry in place of what there is.
func putEntry(ctx context.Context, tx pgx.Tx, b ledger.Backup) error {
	if err := ledger.ValidID(b.ID); err != nil {
		return ruled{err}
	}
	var there bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM backups WHERE id = $1)`, b.ID).Scan(&there); err != nil {
		return err
	}
	steps, err := storeBackup(b, !there)
	if err != nil {
		return err
	}
	return run(ctx, tx, steps...)
}

// endTask ends a task that nobody holds.
func endTask(ctx context.Context, tx pgx.Tx, t ledger.Task, now time.Time) error {
	if !t.State.Final() {
		return ruled{fmt.Errorf("end task %s: %s is no end", t.ID, t.State)}
	}
	t.Updated, t.Finished, t.CancelBy = now, now, ""
	t.Error, t.Hint = text(ledger.Clip(t.Error)), text(ledger.Clip(t.Hint))
	detail, err := encode("task "+t.ID, t)
	if err != nil {
		return err
	}
	op := rand.Text()
	tag, err := tx.Exec(ctx, `UPDATE tasks SET state = $3, updated = $4, finished = $4, detail = $5, write = $6, revision = revision + 1
		WHERE id = $1 AND token = $2 AND finished IS NULL`, t.ID, int64(t.Token), t.State, now, detail, op)
	switch {
	case err != nil:
		return err
	case tag.RowsAffected() != 1:
		return changed("task " + t.ID + " has ended, or was taken, meanwhile")
	}
	return run(ctx, tx, history(t, op), event("ended", t))
}

// run carries out statements one after the other.
func run(ctx context.Context, tx pgx.Tx, steps ...statement) error {
	for _, s := range steps {
		if _, err := tx.Exec(ctx, s.sql, s.args...); err != nil {
			return err
		}
	}
	return nil
}

// Found makes a ledger of c's group in a database that holds none (ErrOccupied), with contents. A reason makes it frozen from
// the beginning: a copy that nobody is to work with by mistake. It is all there or nothing.
func Found(ctx context.Context, c Config, contents ledger.Contents, frozen string) (Lineage, error) {
	const doing = "make the ledger"
	r, err := OpenRepair(ctx, c)
	if err != nil {
		return Lineage{}, err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, max(r.led.cfg.Timeout, foundWithin))
	defer cancel()
	if r.made {
		return r.seen.shown(), wrap(ctx, doing, occupied(r.seen))
	}
	mark, err := r.led.cfg.groupMark(ctx)
	if err == nil {
		err = migrate(ctx, r.led.pool, r.led.cfg.Protocol)
	}
	if err == nil {
		err = mayUse(ctx, r.led.pool)
	}
	if err != nil {
		return Lineage{}, wrap(ctx, doing, err)
	}
	state := "open"
	if frozen != "" {
		state = "frozen"
	}
	err = pgx.BeginFunc(ctx, r.led.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `INSERT INTO lineage (ledger, cluster, generation, mark, state, reason) VALUES ($1, $2, 1, $3, $4, $5)
			ON CONFLICT DO NOTHING RETURNING `+lineageColumns, rand.Text(), r.led.cfg.Cluster, int64(max(mark, contents.Highest())), state, text(frozen)).
			Scan(r.seen.fields()...)
		if errors.Is(err, pgx.ErrNoRows) {
			return occupied(r.seen)
		}
		if err != nil {
			return err
		}
		return fill(ctx, tx, contents)
	})
	return r.seen.shown(), wrap(ctx, doing, err)
}

// foundWithin bounds the making of a ledger with all that another one holds, at least.
const foundWithin = 10 * time.Minute

func occupied(in lineage) problem {
	what := "the database holds a ledger already"
	if in.cluster != "" {
		what += ", of group " + in.cluster
	}
	return problem{what, "name an empty database; a ledger that nobody needs any more goes by DROP SCHEMA " + schema + " CASCADE", []error{ErrOccupied}}
}

// byCreation orders tasks so that those planned first come first.
func byCreation(tasks []ledger.Task) []ledger.Task {
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(a, b ledger.Task) int { return a.Created.Compare(b.Created) })
	return tasks
}
