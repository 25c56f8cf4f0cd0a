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
	generation int64  // raised by each Amend
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
			"give each group a database of its own; one whose group is no more: fencepost ledger adopt",
			[]error{ErrForeign, ledger.ErrUnavailable}}, false
	case in.state != "open":
		return frozen(in.reason), false
	case want.ledger != "" && in.ledger != want.ledger:
		return another, false
	case in.mark < want.mark:
		return frozen(olderCopy(in.mark, want.mark)), true
	}
	return nil, false
}

func olderCopy(mark, group uint64) string {
	return fmt.Sprintf("it is an older copy: the last result it holds has token %d, the group knows of %d", mark, group)
}

func frozen(why string) problem {
	return problem{"it is frozen: " + why, "nothing is started, restored or deleted meanwhile; fencepost ledger reconcile compares it with the storages",
		[]error{ErrFrozen, ledger.ErrUnavailable}}
}

// another is what a node says of a ledger that is not the one that its group uses.
var another = problem{"it is another ledger than the one that the group uses",
	"give ledger.dsn of this node what the other nodes have, and start it again; if the group is to use this one: fencepost ledger adopt",
	[]error{ErrFrozen, ledger.ErrUnavailable}}

// queue has a transaction look at the lineage before it changes what no guard protects.
func (want expectation) queue(b *pgx.Batch) {
	b.Queue(`SELECT ` + lineageColumns + ` FROM lineage`).QueryRow(func(row pgx.Row) error {
		var in lineage
		if err := row.Scan(in.fields()...); err != nil {
			return err
		}
		err, _ := in.problem(want)
		return err
	})
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

// inspect compares the lineage row with what is expected, and freezes an older copy. What is expected was learnt before the row
// was read; a row that holds it by now is not frozen.
func inspect(ctx context.Context, q querier, in lineage, want expectation) error {
	err, older := in.problem(want)
	if !older {
		return err
	}
	var state string
	_ = q.QueryRow(ctx, `UPDATE lineage SET state = 'frozen', reason = $1 WHERE state = 'open' AND mark < $2 RETURNING state`,
		olderCopy(in.mark, want.mark), int64(want.mark)).Scan(&state) // each node finds out by itself too
	return err
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

func (c Config) uses(ctx context.Context, found string) (string, error) {
	if c.Uses == nil {
		return "", nil
	}
	id, err := c.Uses(ctx, found)
	if err != nil {
		return "", fmt.Errorf("ask the group which ledger it uses: %w: %w", ledger.ErrUnavailable, err)
	}
	return id, nil
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
