package postgres

import (
	"context"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// CheckAhead compares the highest token that the ledger has seen with the last one that the group has granted:
// ledger.ErrAhead when the ledger has seen more. Open does the same.
func (l *Ledger) CheckAhead(ctx context.Context) error {
	return l.repeat(ctx, "compare the ledger's numbers with the group's", func(ctx context.Context) error { return l.cfg.compare(ctx, l.pool) })
}

// compare reads the ledger first: what the group says afterwards covers all that it had granted until then. Tokens of
// tasks that have ended are not above the mark.
func (c Config) compare(ctx context.Context, q querier) error {
	if c.Reached == nil {
		return nil
	}
	var seen uint64
	err := q.QueryRow(ctx, `SELECT GREATEST((SELECT max(token) FROM tasks WHERE finished IS NULL), (SELECT max(token) FROM fences),
		(SELECT max(mark) FROM lineage), 0)::bigint`).Scan(&seen)
	if err != nil {
		return fmt.Errorf("read the highest token: %w", err)
	}
	given, err := c.Reached(ctx)
	if err != nil {
		return fmt.Errorf("ask the group for its last token: %w: %w", ledger.ErrUnavailable, err)
	}
	if seen <= given {
		return nil
	}
	return problem{fmt.Sprintf("it has seen token %d, the group has granted none above %d", seen, given), Rebase,
		[]error{ledger.ErrAhead, ledger.ErrUnavailable}}
}

// Rebase is what a person can do about a ledger that is ahead.
const Rebase = "if no other group writes there, raise this one's numbers: fencepost group rebase"
