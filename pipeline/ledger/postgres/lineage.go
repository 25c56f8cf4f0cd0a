package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// lineage says which ledger this is, and whose.
type lineage struct {
	ledger     string // a random id, made with the tables
	cluster    string // the group it belongs to
	generation int64  // raised by each Adopt
	mark       uint64 // highest token whose result it holds
	state      string // open | frozen
	reason     string
}

const lineageColumns = `ledger, cluster, generation, mark::bigint, state, reason`

func (in *lineage) fields() []any {
	return []any{&in.ledger, &in.cluster, &in.generation, &in.mark, &in.state, &in.reason}
}

// expectation is what this process and its group know of the ledger.
type expectation struct {
	ledger  string // "" before Open has seen it
	cluster string
	mark    uint64
}

// problem says why the ledger must not be used; nil when it may. The second result tells that it is an older copy, which
// everybody has to be told by freezing it.
func (in lineage) problem(want expectation) (err error, older bool) {
	switch {
	case in.cluster != want.cluster:
		return problem{"it belongs to group " + in.cluster + ", this one is " + want.cluster,
			"give each group a database of its own; a ledger that this group shall take over has to be adopted",
			[]error{ErrForeign, ledger.ErrUnavailable}}, false
	case in.state != "open":
		return frozen(in.reason), false
	case want.ledger != "" && in.ledger != want.ledger:
		return frozen("it is another ledger than the one that this node began with"), false
	case in.mark < want.mark:
		return frozen(fmt.Sprintf("it is an older copy: the last result it holds has token %d, the group knows of %d", in.mark, want.mark)), true
	}
	return nil, false
}

func frozen(why string) problem {
	return problem{"it is frozen: " + why, "compare it with the storages, then reconcile it; nothing is started, restored or deleted meanwhile",
		[]error{ErrFrozen, ledger.ErrUnavailable}}
}

// querier is a session or a pool.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// claimLineage makes the lineage row at the first use, and reads it.
func claimLineage(ctx context.Context, q querier, cluster string) (in lineage, err error) {
	err = q.QueryRow(ctx, `WITH made AS (
			INSERT INTO lineage (ledger, cluster, generation, mark, state) VALUES ($1, $2, 1, 0, 'open')
			ON CONFLICT DO NOTHING RETURNING `+lineageColumns+`)
		SELECT * FROM made UNION ALL SELECT `+lineageColumns+` FROM lineage`, rand.Text(), cluster).Scan(in.fields()...)
	if errors.Is(err, pgx.ErrNoRows) { // another node made it at the same moment
		err = q.QueryRow(ctx, `SELECT `+lineageColumns+` FROM lineage`).Scan(in.fields()...)
	}
	return in, err
}

// inspect compares the lineage row with what is expected, and freezes an older copy.
func inspect(ctx context.Context, q querier, in lineage, want expectation) error {
	err, older := in.problem(want)
	if !older {
		return err
	}
	var state string
	_ = q.QueryRow(ctx, `UPDATE lineage SET state = 'frozen', reason = $1 WHERE state = 'open' RETURNING state`,
		fmt.Sprintf("it is an older copy: its mark is %d, the group's %d", in.mark, want.mark)).Scan(&state) // each node finds out by itself too
	return err
}

// Adopt makes the ledger of c this group's, whoever had it, opens it when it was frozen, and raises its mark to the
// group's. A person decides it, after the ledger was compared with the storages; no node uses it meanwhile.
func Adopt(ctx context.Context, c Config) error {
	const doing = "adopt the ledger"
	c, err := c.checked()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	pool, err := connect(ctx, c, begin)
	if err != nil {
		return wrap(ctx, doing, err)
	}
	defer pool.Close()
	if err := migrate(ctx, pool, c.Protocol); err != nil {
		return wrap(ctx, doing, err)
	}
	if _, err := claimLineage(ctx, pool, c.Cluster); err != nil {
		return wrap(ctx, doing, err)
	}
	mark, err := c.groupMark(ctx)
	if err != nil {
		return wrap(ctx, doing, err)
	}
	_, err = pool.Exec(ctx, `UPDATE lineage SET cluster = $1, generation = generation + 1, state = 'open', reason = '', mark = GREATEST(mark, $2)`,
		c.Cluster, int64(mark))
	return wrap(ctx, doing, err)
}

// Highest is the highest token that the ledger of c knows, whoever it belongs to; 0 when it was never used. A group that is
// made anew begins above it.
func Highest(ctx context.Context, c Config) (uint64, error) {
	const doing = "read the ledger's highest token"
	c, err := c.checked()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	pool, err := connect(ctx, c, begin)
	if err != nil {
		return 0, wrap(ctx, doing, err)
	}
	defer pool.Close()
	is, err := version(ctx, pool)
	if err != nil || is == 0 {
		return 0, wrap(ctx, doing, err)
	}
	var high uint64
	err = pool.QueryRow(ctx, `SELECT GREATEST((SELECT max(token) FROM tasks), (SELECT max(token) FROM backups),
		(SELECT max(token) FROM fences), (SELECT max(mark) FROM lineage), 0)::bigint`).Scan(&high)
	return high, wrap(ctx, doing, err)
}

func (c Config) groupMark(ctx context.Context) (uint64, error) {
	if c.Mark == nil {
		return 0, nil
	}
	mark, err := c.Mark(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask the group for its mark: %w: %w", ledger.ErrUnavailable, err)
	}
	return mark, nil
}
