package gms

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// Tokens and positions go on above all that a person names and that the host finds, and what was granted before stands.
func TestRebaseOutrunsEverything(t *testing.T) {
	tg := newTestGroup(t, 1)
	var floor uint64
	n := tg.start("n1", func(c *Config) {
		c.Floor = func(context.Context) (uint64, error) { return floor, nil }
	})
	must(t, n.AwaitStanding(tg.ctx))
	held, err := n.TryLock(tg.ctx, "before")
	must(t, err)
	_, run := n.Self()
	for what, above := range map[string]func() (named uint64, want uint64){
		"what is named": func() (uint64, uint64) { h := n.numbers().High() + 1<<40; return h, h },
		"what is found": func() (uint64, uint64) { floor = n.numbers().High() + 1<<40; return 0, floor },
		"its own":       func() (uint64, uint64) { return 0, n.numbers().High() },
	} {
		named, want := above()
		after, err := n.Rebase(tg.ctx, named, what)
		if err != nil || after.Base <= want || after.Position <= after.Base || after.Token < after.Base {
			t.Fatalf("above %s, %d: %+v, %v", what, want, after, err)
		}
		l, err := n.TryLock(tg.ctx, what)
		if err != nil || l.Token <= want {
			t.Errorf("above %s: token %d, want more than %d, %v", what, l.Token, want, err)
		}
	}
	if held.Context().Err() != nil {
		t.Error("a lock that was held before was lost")
	}
	if _, now := n.Self(); now != run {
		t.Errorf("run %s, then %s", run, now)
	}
}

// What would leave too little room, and what cannot be known to be enough, is refused, and nothing is changed.
func TestRebaseThatIsRefused(t *testing.T) {
	tg := newTestGroup(t, 1)
	var away error
	n := tg.start("n1", func(c *Config) {
		c.Floor = func(context.Context) (uint64, error) { return 0, away }
	})
	must(t, n.AwaitStanding(tg.ctx))
	before := n.numbers().Base
	for _, above := range []uint64{MaxBase, MaxBase + 1, 1<<64 - 1} {
		if _, err := n.Rebase(tg.ctx, above, ""); !errors.Is(err, ErrTooLarge) {
			t.Errorf("above %d: %v", above, err)
		}
	}
	away = errors.New("a storage is away")
	if _, err := n.Rebase(tg.ctx, 0, ""); !errors.Is(err, away) {
		t.Errorf("with a storage that cannot be asked: %v", err)
	}
	if now := n.numbers().Base; now != before {
		t.Errorf("the base went from %d to %d", before, now)
	}
	away = nil
	if after, err := n.Rebase(tg.ctx, MaxBase-1, ""); err != nil || after.Base != MaxBase {
		t.Errorf("the highest: %+v, %v", after, err)
	}
}

// No token is granted twice, and none is smaller than an earlier one, however many are granted while the numbers are raised.
func TestRebaseAmongGrants(t *testing.T) {
	tg := newTestGroup(t, 3)
	for _, name := range tg.names {
		tg.start(name)
	}
	for _, name := range tg.names {
		must(t, tg.nodes[name].AwaitStanding(tg.ctx))
	}
	ctx, cancel := context.WithTimeout(tg.ctx, time.Minute)
	defer cancel()
	var mu sync.Mutex
	given := map[uint64]bool{}
	var granting sync.WaitGroup
	for _, name := range tg.names {
		granting.Go(func() {
			n, last := tg.nodes[name], uint64(0)
			for range 100 {
				l, err := n.TryLock(ctx, name)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				mu.Lock()
				if given[l.Token] || l.Token <= last {
					t.Errorf("%s: token %d after %d, given before: %v", name, l.Token, last, given[l.Token])
				}
				given[l.Token], last = true, l.Token
				mu.Unlock()
				if err := n.Unlock(ctx, l); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	var base uint64
	for range 20 {
		n, err := tg.nodes["n2"].Rebase(ctx, 0, "among grants")
		if err != nil || n.Base <= base {
			t.Errorf("base %d after %d, %v", n.Base, base, err)
		}
		base = n.Base
	}
	granting.Wait()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
