package components

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/gmstest"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
)

// A ledger in the state cache takes nothing any more from the entry on that says that it is elsewhere, also from a node that
// has not heard of it; and goes on when that is taken back.
func TestLedgerElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := gmstest.Cluster(t, 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g1, g2 := w.Node("n1").Group, w.Node("n2").Group
		led, err := embedded.New(embedded.Config{Store: Store(g1), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		plan := func(id string) error { return led.Plan(ctx, ledger.Task{ID: id, MaxAttempts: 1}) }
		if err := plan("t1"); err != nil {
			t.Fatal(err)
		}
		for _, l := range []Lineage{{Kind: LedgerEmbedded, Moving: "env:DSN"}, {Kind: LedgerPostgres, Ledger: "L"}} {
			_, version, err := ReadLineage(ctx, g2)
			if err != nil {
				t.Fatal(err)
			}
			stale := cacheStore{g: g1, bound: true} // a write that was decided before, and arrives after
			if err := WriteLineage(ctx, g2, l, version); err != nil {
				t.Fatal(err)
			}
			if again, err := stale.commit(ctx, embedded.Txn{Puts: []embedded.Put{{Key: "task/late", Value: []byte("{}")}}}, version); !again || !errors.Is(err, ErrLedgerElsewhere) {
				t.Errorf("%+v: a late write: %v, %v", l, again, err)
			}
			if err := plan("t2"); !errors.Is(err, ErrLedgerElsewhere) || !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("%+v: plan: %v", l, err)
			}
			if err := WriteLineage(ctx, g1, l, version); !errors.Is(err, gms.ErrConflict) {
				t.Errorf("%+v: two that decide at once: %v", l, err)
			}
		}
		_, version, err := ReadLineage(ctx, g2)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteLineage(ctx, g2, Lineage{Kind: LedgerEmbedded}, version); err != nil {
			t.Fatal(err)
		}
		if err := g1.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		if err := plan("t2"); err != nil {
			t.Errorf("plan once it is back: %v", err)
		}
		if rows, err := BareStore(g1).List(ctx, "task/"); err != nil || len(rows) != 2 {
			t.Errorf("rows %+v, %v", rows, err)
		}
	})
}
