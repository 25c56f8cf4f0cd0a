package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Items are the items of autonomous components, in the ledger's database. Triggers are matched by the server; what they
// mean is what component.Trigger.Match says. Times are kept to the microsecond.
type Items struct {
	l    *Ledger
	self func() string
}

var _ component.Items = (*Items)(nil)

// NewItems makes the items of a ledger. self is this node's present run, under which it claims.
func NewItems(l *Ledger, self func() string) *Items { return &Items{l: l, self: self} }

// itemRule makes of an item what is to be stored in its place.
type itemRule func(component.Kept) (component.Kept, error)

// write replaces an item by what rule makes of it, in one transaction; guarded by a claim when there is one. Rules have
// their effect once, so that a transaction whose outcome is not known is simply repeated.
func (s *Items) write(ctx context.Context, doing, id string, claim *component.Claim, rule itemRule) (next component.Kept, err error) {
	err = s.l.repeat(ctx, doing+" "+id, func(ctx context.Context) error {
		if claim != nil {
			if err := s.l.enrol(ctx, s.self()); err != nil {
				return err
			}
		}
		return pgx.BeginFunc(ctx, s.l.pool, func(tx pgx.Tx) error {
			next, err = s.step(ctx, tx, id, claim, rule)
			return err
		})
	})
	return next, err
}

func (s *Items) step(ctx context.Context, tx pgx.Tx, id string, claim *component.Claim, rule itemRule) (component.Kept, error) {
	b := &pgx.Batch{}
	var guard guardRows
	var g ledger.Guard
	if claim != nil {
		g = ledger.Guard{Run: s.self(), Component: claim.Component, Item: claim.Item, Token: claim.Token}
		b.Queue(`SELECT set_config('application_name', $1, true)`, tagOf(g).String())
		b.Queue(`SELECT pg_advisory_xact_lock_shared($1)`, runLock(g.Run))
		b.Queue(readGuard, g.Run, "", "", "").QueryRow(func(row pgx.Row) error {
			return row.Scan(append(guard.lineage.fields(), &guard.run, &guard.shutOut, &guard.fence)...)
		})
	}
	want := s.l.expects()
	if claim == nil {
		want.queue(b)
	}
	var kept []byte
	b.Queue(`SELECT kept FROM items WHERE id = $1 FOR UPDATE`, id).QueryRow(func(row pgx.Row) error { return found(row.Scan(&kept)) })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return component.Kept{}, err
	}
	if claim != nil {
		if err := guard.stands(g, want); err != nil {
			return component.Kept{}, err
		}
	}
	var k component.Kept
	if err := json.Unmarshal(kept, &k); err != nil {
		return k, fmt.Errorf("decode item %s: %w", id, err)
	}
	next, err := rule(k)
	if err != nil {
		return k, ruled{err}
	}
	return next, storeItem(ctx, tx, next)
}

// storeItem writes an item and what is asked for.
func storeItem(ctx context.Context, tx pgx.Tx, k component.Kept) error {
	it := k.Item
	kept, err := encode("item "+it.ID, k)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO items (id, type, changed_at, round_trip, kept) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET changed_at = $3, round_trip = $4, kept = $5, revision = items.revision + 1`,
		it.ID, it.Type, it.ChangedAt, it.RoundTrip, kept)
	b.Queue(`DELETE FROM item_events WHERE item = $1`, it.ID)
	b.Queue(`DELETE FROM item_records WHERE item = $1`, it.ID)
	done := map[string]bool{}
	for _, e := range it.Events {
		if newest, ok := it.Newest(e.Type); ok && !done[e.Type] {
			done[e.Type] = true
			b.Queue(`INSERT INTO item_events (item, type, start, success) VALUES ($1, $2, $3, $4)`, it.ID, e.Type, newest.Start, newest.Success)
		}
	}
	for name, r := range k.Records {
		b.Queue(`INSERT INTO item_records (item, component, created, last_attempt, not_before, quarantined) VALUES ($1, $2, $3, $4, $5, $6)`,
			it.ID, name, orNull(r.Created), orNull(r.LastAttempt), orNull(r.NotBefore), r.Quarantined)
	}
	b.Queue(notify.sql)
	return tx.SendBatch(ctx, b).Close()
}

// micro is t as the server keeps it, so that what is matched is what is shown.
func micro(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func fencedIf(fenced bool, c component.Claim) error {
	if fenced {
		return fmt.Errorf("%s with token %d: %w", component.ItemLock(c.Component, c.Item, c.RoundTrip), c.Token, ledger.ErrFenced)
	}
	return nil
}

// Begin implements component.Store. Like Take it asks the group first.
func (s *Items) Begin(ctx context.Context, c component.Claim, at time.Time) (component.Item, error) {
	if s.l.cfg.Check != nil {
		g := ledger.Guard{Run: s.self(), Component: c.Component, Item: c.Item, Token: c.Token}
		if err := s.l.cfg.Check(ctx, g); err != nil {
			return component.Item{}, fmt.Errorf("begin on item %s: %w", c.Item, err)
		}
	}
	next, err := s.write(ctx, "begin on item", c.Item, &c, func(k component.Kept) (component.Kept, error) {
		next, fenced := k.AfterBegin(c, micro(at))
		return next, fencedIf(fenced, c)
	})
	return next.Seen(c.Component), err
}

// Finish implements component.Store.
func (s *Items) Finish(ctx context.Context, c component.Claim, r component.Result) error {
	r.Event.Start, r.Event.Details = micro(r.Event.Start), text(r.Event.Details)
	_, err := s.write(ctx, "finish item", c.Item, &c, func(k component.Kept) (component.Kept, error) {
		next, fenced := k.AfterFinish(c, r)
		return next, fencedIf(fenced, c)
	})
	return err
}

// since is from when on an item waits for its turn, as component.Order has it.
const since = `GREATEST(COALESCE(r.not_before, '-infinity'), COALESCE(r.last_attempt, '-infinity'), COALESCE(r.created, i.changed_at))`

// Query implements component.Index.
func (s *Items) Query(ctx context.Context, q component.Query) (items []component.Item, err error) {
	var c conditions
	c.args = append(c.args, q.Component)
	var any []string
	for _, t := range q.Triggers {
		any = append(any, "("+triggerSQL(&c, t)+")")
	}
	if len(any) == 0 {
		return nil, nil
	}
	c.add("NOT COALESCE(r.quarantined, false)")
	c.add("COALESCE(r.not_before, '-infinity') <= %s", q.At)
	limit := ""
	if q.Limit > 0 {
		limit = fmt.Sprintf(" LIMIT %d", q.Limit)
	}
	sql := `SELECT i.kept FROM items i LEFT JOIN item_records r ON r.item = i.id AND r.component = $1` + c.where() + ` AND (` + strings.Join(any, " OR ") + `)
		ORDER BY ` + since + `, COALESCE(r.last_attempt, '-infinity'), COALESCE(r.created, i.changed_at), i.type, i.id, i.round_trip` + limit
	err = s.l.repeat(ctx, "query items", func(ctx context.Context) error {
		items, err = collect(ctx, s.l, seenBy(q.Component), sql, c.args...)
		return err
	})
	return items, err
}

// triggerSQL is a trigger as a condition on i; its arguments are added to c. An empty one is true.
func triggerSQL(c *conditions, t component.Trigger) string {
	parts := []string{"true"}
	arg := func(v any) string {
		c.args = append(c.args, v)
		return fmt.Sprintf("$%d", len(c.args))
	}
	exists := func(types []string, not, more string) {
		for _, typ := range types {
			parts = append(parts, not+"EXISTS (SELECT FROM item_events e WHERE e.item = i.id AND e.type = "+arg(typ)+more+")")
		}
	}
	exists(t.Past, "", " AND e.success")
	exists(t.PastFailed, "", " AND NOT e.success")
	exists(t.Future, "NOT ", "")
	exists(t.Old, "NOT ", " AND e.start > i.changed_at")
	if len(t.Types) > 0 {
		parts = append(parts, "i.type = ANY ("+arg(t.Types)+")")
	}
	if len(t.Items) > 0 {
		parts = append(parts, "i.id = ANY ("+arg(t.Items)+")")
	}
	return strings.Join(parts, " AND ")
}

func seenBy(name string) pgx.RowToFunc[component.Item] {
	return func(row pgx.CollectableRow) (component.Item, error) {
		var kept []byte
		if err := row.Scan(&kept); err != nil {
			return component.Item{}, err
		}
		var k component.Kept
		if err := json.Unmarshal(kept, &k); err != nil {
			return component.Item{}, fmt.Errorf("decode an item: %w", err)
		}
		return k.Seen(name), nil
	}
}

// Put implements component.Items.
func (s *Items) Put(ctx context.Context, it component.Item, change bool) (after component.Item, err error) {
	if err := component.CheckItem(it); err != nil {
		return after, err
	}
	err = s.l.repeat(ctx, "put item "+it.ID, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.l.pool, func(tx pgx.Tx) error {
			var kept []byte
			var now time.Time
			b := &pgx.Batch{}
			s.l.expects().queue(b)
			b.Queue(`SELECT pg_advisory_xact_lock($1)`, lockKey("item "+it.ID))
			b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
			b.Queue(`SELECT kept FROM items WHERE id = $1 FOR UPDATE`, it.ID).QueryRow(func(row pgx.Row) error { return none(row.Scan(&kept)) })
			if err := tx.SendBatch(ctx, b).Close(); err != nil {
				return err
			}
			put := it
			if put.ChangedAt = micro(it.ChangedAt); it.ChangedAt.IsZero() {
				put.ChangedAt = micro(now)
			}
			put.Events = slices.Clone(it.Events)
			for i := range put.Events {
				put.Events[i].Start = micro(put.Events[i].Start)
			}
			k := component.Kept{Item: put}
			if kept != nil {
				k = component.Kept{}
				if err := json.Unmarshal(kept, &k); err != nil {
					return fmt.Errorf("decode item %s: %w", it.ID, err)
				}
				if !change {
					after = k.Seen("")
					return nil
				}
				k = k.AfterPut(put)
			}
			after = k.Seen("")
			return storeItem(ctx, tx, k)
		})
	})
	return after, err
}

// Edit implements component.Items.
func (s *Items) Edit(ctx context.Context, id string, edit func(component.Item) (component.Item, error)) (component.Item, error) {
	next, err := s.write(ctx, "edit item", id, nil, func(k component.Kept) (component.Kept, error) {
		it, err := edit(k.Seen(""))
		if err == nil {
			err = component.CheckItem(component.Item{ID: k.Item.ID, Type: k.Item.Type, Data: it.Data})
		}
		k.Item.Data = it.Data
		k.Edits++
		return k, err
	})
	return next.Seen(""), err
}

// Get implements component.Items.
func (s *Items) Get(ctx context.Context, name, id string) (it component.Item, err error) {
	err = s.l.repeat(ctx, "read item "+id, func(ctx context.Context) error {
		rows, err := s.l.pool.Query(ctx, `SELECT kept FROM items WHERE id = $1`, id)
		if err != nil {
			return err
		}
		it, err = pgx.CollectExactlyOneRow(rows, seenBy(name))
		if errors.Is(err, pgx.ErrNoRows) {
			return ledger.ErrNotFound
		}
		return err
	})
	return it, err
}

// All implements component.Items.
func (s *Items) All(ctx context.Context, name, itemType string) (items []component.Item, err error) {
	err = s.l.repeat(ctx, "list items", func(ctx context.Context) error {
		items, err = collect(ctx, s.l, seenBy(name), `SELECT kept FROM items WHERE $1 = '' OR type = $1 ORDER BY id`, itemType)
		return err
	})
	return items, err
}

// Drop implements component.Items.
func (s *Items) Drop(ctx context.Context, id string) error {
	return s.l.repeat(ctx, "drop item "+id, func(ctx context.Context) error {
		_, err := s.l.pool.Exec(ctx, `DELETE FROM items WHERE id = $1`, id)
		return err
	})
}

// Append implements component.Items.
func (s *Items) Append(ctx context.Context, id string, e component.Event) error {
	if err := component.CheckEvent(e); err != nil {
		return err
	}
	e.Token, e.Start, e.Details, e.Agent = 0, micro(e.Start), text(e.Details), text(e.Agent)
	_, err := s.write(ctx, "append to item", id, nil, func(k component.Kept) (component.Kept, error) {
		k.Item.Events = component.Bounded(append(append([]component.Event(nil), k.Item.Events...), e))
		return k, nil
	})
	return err
}

// Forget implements component.Items.
func (s *Items) Forget(ctx context.Context, id, eventType string) (n int, err error) {
	_, err = s.write(ctx, "forget of item", id, nil, func(k component.Kept) (component.Kept, error) {
		var next component.Kept
		next, n = k.AfterForget(eventType)
		return next, nil
	})
	return n, err
}
