package componenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/ledgertest"
)

// Bench is an empty store of items, the ledger that it is in, and its group. Run is the run under which the items claim.
type Bench struct {
	Items  component.Items
	Ledger interface {
		ShutOut(ctx context.Context, f ledger.Fence) error
	}
	Group ledgertest.Group
	Run   string
}

// Run tests the contract of component.Items against what make makes.
func Run(t *testing.T, make func(t *testing.T) Bench) {
	for name, test := range map[string]func(*testing.T, Bench){
		"PutGetEditDrop":         putGetEditDrop,
		"BeginAndFinishOnce":     beginAndFinishOnce,
		"FencedWritesNothing":    fencedWritesNothing,
		"ShutOutWritesNothing":   shutOutWritesNothing,
		"ListingsAreOfNow":       listingsAreOfNow,
		"TwoComponentsOneItem":   twoComponentsOneItem,
		"EventsByHand":           eventsByHand,
		"EditsAreNotOverwritten": editsAreNotOverwritten,
		"TriggersMeanWhatMatch":  triggersMeanWhatMatchSays,
	} {
		t.Run(name, func(t *testing.T) {
			b := make(t)
			b.Group.OpenRun(b.Run)
			test(t, b)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b Bench) claim(t *testing.T, name, item string) component.Claim {
	t.Helper()
	token, err := b.Group.Claim(name, item, b.Run)
	must(t, err)
	return component.Claim{Component: name, Item: item, Token: token}
}

func result(c component.Claim, at time.Time, success bool) component.Result {
	return component.Result{
		Event:  component.Event{Type: c.Component, Start: at, Success: success, Token: c.Token, Agent: c.Component + "@n1"},
		Record: component.Record{Created: at},
	}
}

func putGetEditDrop(t *testing.T, b Bench) {
	ctx := t.Context()
	it := component.Item{Type: "file", ID: "a b/ü", Data: json.RawMessage(`{"x":1}`)}
	if _, err := b.Items.Put(ctx, it, false); err == nil {
		t.Fatal("an id with a slash was accepted")
	}
	it.ID = "a.b_ü"
	_, err := b.Items.Put(ctx, it, false)
	must(t, err)
	_, err = b.Items.Put(ctx, component.Item{Type: "file", ID: it.ID, Data: json.RawMessage(`{"x":2}`)}, false)
	must(t, err)
	got, err := b.Items.Get(ctx, "c", it.ID)
	must(t, err)
	if string(got.Data) != `{"x":1}` || got.ChangedAt.IsZero() || got.Record.Created.IsZero() {
		t.Errorf("got %+v", got)
	}
	must(t, b.Items.Append(ctx, it.ID, component.Event{Type: "seen", Start: time.Now(), Success: true}))
	changed, err := b.Items.Put(ctx, component.Item{Type: "file", ID: it.ID, Data: json.RawMessage(`{"x":3}`), ChangedAt: time.Now().Add(time.Hour)}, true)
	must(t, err)
	if !changed.ChangedAt.After(got.ChangedAt) || len(changed.Events) != 1 || string(changed.Data) != `{"x":3}` {
		t.Errorf("changed: %+v", changed)
	}
	brings := component.Item{Type: "file", ID: it.ID, Events: []component.Event{{Type: "weighed", Start: time.Now(), Success: true, Token: 7}}}
	for range 2 { // an answer may be lost: it is brought once
		changed, err = b.Items.Put(ctx, brings, true)
		must(t, err)
	}
	if e, ok := changed.Newest("weighed"); !ok || e.Token != 7 || len(changed.Events) != 2 || string(changed.Data) != `{"x":3}` {
		t.Errorf("changed, with an event: %+v", changed)
	}
	_, err = b.Items.Edit(ctx, it.ID, func(it component.Item) (component.Item, error) {
		it.Data = json.RawMessage(`{"x":4}`)
		return it, nil
	})
	must(t, err)
	if all, err := b.Items.All(ctx, "c", "file"); err != nil || len(all) != 1 || string(all[0].Data) != `{"x":4}` {
		t.Errorf("all: %+v, %v", all, err)
	}
	if none, err := b.Items.All(ctx, "c", "other"); err != nil || len(none) != 0 {
		t.Errorf("of another type: %+v, %v", none, err)
	}
	must(t, b.Items.Drop(ctx, it.ID))
	must(t, b.Items.Drop(ctx, it.ID))
	if _, err := b.Items.Get(ctx, "c", it.ID); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("after drop: %v", err)
	}
}

func beginAndFinishOnce(t *testing.T, b Bench) {
	ctx, now := t.Context(), time.Now().UTC().Truncate(time.Millisecond)
	_, err := b.Items.Put(ctx, component.Item{Type: "x", ID: "i1"}, false)
	must(t, err)
	c := b.claim(t, "copy", "i1")
	for range 2 {
		it, err := b.Items.Begin(ctx, c, now)
		must(t, err)
		if it.Record.Attempts != 1 || !it.Record.LastAttempt.Equal(now) {
			t.Fatalf("begun: %+v", it)
		}
	}
	r := result(c, now, true)
	r.Report.Data = json.RawMessage(`{"done":true}`)
	for range 2 {
		must(t, b.Items.Finish(ctx, c, r))
	}
	it, err := b.Items.Get(ctx, "copy", "i1")
	must(t, err)
	if len(it.Events) != 1 || !it.Events[0].Success || it.Record.Attempts != 0 || it.RoundTrip != 1 || string(it.Data) != `{"done":true}` {
		t.Errorf("finished: %+v", it)
	}
}

func fencedWritesNothing(t *testing.T, b Bench) {
	ctx, now := t.Context(), time.Now().UTC()
	_, err := b.Items.Put(ctx, component.Item{Type: "x", ID: "i1"}, false)
	must(t, err)
	old := b.claim(t, "copy", "i1")
	_, err = b.Items.Begin(ctx, old, now)
	must(t, err)
	b.Group.OpenRun("heir")
	b.Group.CloseRun(b.Run)
	_, err = b.Group.Adopt("copy", "i1", "heir")
	must(t, err)
	b.Group.OpenRun(b.Run) // the store claims under one run; the heir's larger token is what counts
	b.Group.CloseRun("heir")
	token, err := b.Group.Adopt("copy", "i1", b.Run)
	must(t, err)
	heir := component.Claim{Component: "copy", Item: "i1", Token: token}
	_, err = b.Items.Begin(ctx, heir, now)
	must(t, err)
	if _, err := b.Items.Begin(ctx, old, now); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("a late begin: %v", err)
	}
	if err := b.Items.Finish(ctx, old, result(old, now, true)); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("a late result: %v", err)
	}
	it, err := b.Items.Get(ctx, "copy", "i1")
	must(t, err)
	if len(it.Events) != 0 || it.Record.Attempts != 2 {
		t.Errorf("item: %+v", it)
	}
	must(t, b.Items.Finish(ctx, heir, result(heir, now, false)))
}

// shutOutWritesNothing: from the shut-out of its run on a worker's writes change nothing, although nobody has begun after it.
func shutOutWritesNothing(t *testing.T, b Bench) {
	ctx, now := t.Context(), time.Now().UTC()
	var claims []component.Claim
	for _, id := range []string{"i1", "i2"} {
		_, err := b.Items.Put(ctx, component.Item{Type: "x", ID: id}, false)
		must(t, err)
		claims = append(claims, b.claim(t, "copy", id))
	}
	_, err := b.Items.Begin(ctx, claims[0], now)
	must(t, err)
	b.Group.OpenRun("heir")
	b.Group.CloseRun(b.Run)
	fence := ledger.Fence{Component: "copy", Node: "n1", Run: b.Run, Token: b.Group.RaiseFence("copy", "n1", b.Run, "heir")}
	must(t, b.Ledger.ShutOut(ctx, fence))
	if err := b.Items.Finish(ctx, claims[0], result(claims[0], now, true)); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("a result after the shut-out: %v", err)
	}
	if _, err := b.Items.Begin(ctx, claims[1], now); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("a begin after the shut-out: %v", err)
	}
	for i, c := range claims {
		it, err := b.Items.Get(ctx, "copy", c.Item)
		must(t, err)
		if len(it.Events) != 0 || it.Record.Attempts != 1-i {
			t.Errorf("item %s: %+v", c.Item, it)
		}
	}
}

// listingsAreOfNow: what was listed before keeps nobody from seeing what has become of it since.
func listingsAreOfNow(t *testing.T, b Bench) {
	ctx := t.Context()
	want := func(what, data string) {
		t.Helper()
		all, err := b.Items.All(ctx, "copy", "x")
		must(t, err)
		found, err := b.Items.Query(ctx, component.Query{Component: "copy", Triggers: []component.Trigger{{}}, At: time.Now()})
		must(t, err)
		for _, list := range [][]component.Item{all, found} {
			got := ""
			for _, it := range list {
				got += string(it.Data)
			}
			if got != data {
				t.Errorf("%s: listed %s, want %s", what, got, data)
			}
		}
	}
	put := func(data string) {
		t.Helper()
		_, err := b.Items.Put(ctx, component.Item{Type: "x", ID: "i1", Data: json.RawMessage(data)}, true)
		must(t, err)
	}
	want("nothing yet", "")
	put(`"a"`)
	want("put", `"a"`)
	put(`"b"`)
	want("changed", `"b"`)
	must(t, b.Items.Drop(ctx, "i1"))
	want("dropped", "")
	put(`"c"`)
	want("put anew", `"c"`)
}

// twoComponentsOneItem: each loses none of the other's events.
func twoComponentsOneItem(t *testing.T, b Bench) {
	ctx := t.Context()
	_, err := b.Items.Put(ctx, component.Item{Type: "x", ID: "i1"}, false)
	must(t, err)
	const n = 8
	var wait sync.WaitGroup
	for i := range n {
		c := b.claim(t, fmt.Sprintf("c%d", i), "i1")
		wait.Go(func() {
			if _, err := b.Items.Begin(ctx, c, time.Now()); err != nil {
				t.Errorf("begin: %v", err)
			}
			if err := b.Items.Finish(ctx, c, result(c, time.Now(), true)); err != nil {
				t.Errorf("finish: %v", err)
			}
		})
	}
	wait.Wait()
	it, err := b.Items.Get(ctx, "c0", "i1")
	must(t, err)
	if len(it.Events) != n {
		t.Errorf("%d events of %d components", len(it.Events), n)
	}
}

// editsAreNotOverwritten: what was changed while work went on stays; what it then reports of the data is passed over.
func editsAreNotOverwritten(t *testing.T, b Bench) {
	ctx, now := t.Context(), time.Now().UTC()
	_, err := b.Items.Put(ctx, component.Item{Type: "x", ID: "i1", Data: json.RawMessage(`1`)}, false)
	must(t, err)
	c := b.claim(t, "copy", "i1")
	_, err = b.Items.Begin(ctx, c, now)
	must(t, err)
	_, err = b.Items.Edit(ctx, "i1", func(it component.Item) (component.Item, error) { it.Data = json.RawMessage(`2`); return it, nil })
	must(t, err)
	r := result(c, now, true)
	r.Report.Data = json.RawMessage(`3`)
	must(t, b.Items.Finish(ctx, c, r))
	it, err := b.Items.Get(ctx, "copy", "i1")
	must(t, err)
	if string(it.Data) != "2" || len(it.Events) != 1 {
		t.Errorf("item: %+v", it)
	}
}

func eventsByHand(t *testing.T, b Bench) {
	ctx, now := t.Context(), time.Now().UTC()
	_, err := b.Items.Put(ctx, component.Item{Type: "x", ID: "i1"}, false)
	must(t, err)
	c := b.claim(t, "copy", "i1")
	_, err = b.Items.Begin(ctx, c, now)
	must(t, err)
	bad := result(c, now, false)
	bad.Record = component.Record{Created: now, Failures: 5, Quarantined: true}
	must(t, b.Items.Finish(ctx, c, bad))
	if again, err := b.Items.Query(ctx, component.Query{Component: "copy", Triggers: []component.Trigger{{}}, At: now.Add(time.Hour), Limit: 10}); err != nil || len(again) != 0 {
		t.Errorf("a quarantined item is offered: %+v, %v", again, err)
	}
	must(t, b.Items.Append(ctx, "i1", component.Event{Type: "other", Start: now, Token: 77}))
	n, err := b.Items.Forget(ctx, "i1", "copy")
	must(t, err)
	it, err := b.Items.Get(ctx, "copy", "i1")
	must(t, err)
	if n != 1 || len(it.Events) != 1 || it.Events[0].Token != 0 || it.Record.Quarantined || it.Record.Failures != 0 {
		t.Errorf("forgot %d: %+v", n, it)
	}
	if err := b.Items.Append(ctx, "none", component.Event{Type: "x"}); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("append to nothing: %v", err)
	}
	for i := range 2 * component.MaxEvents {
		must(t, b.Items.Append(ctx, "i1", component.Event{Type: "tick", Start: now.Add(time.Duration(i) * time.Second), Success: true}))
	}
	it, err = b.Items.Get(ctx, "copy", "i1")
	must(t, err)
	if _, ok := it.Newest("other"); len(it.Events) != component.MaxEvents || !ok {
		t.Errorf("%d events, the only one of its type kept: %v", len(it.Events), ok)
	}
}

// Triggers in the store mean what Match says, for any items and triggers: FENCEPOST_SEED repeats a run.
func triggersMeanWhatMatchSays(t *testing.T, b Bench) {
	seed := rand.Uint64()
	if text := os.Getenv("FENCEPOST_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("FENCEPOST_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	base := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
	moment := func() time.Time { return base.Add(time.Duration(rnd.IntN(4)) * time.Microsecond) } // ties on purpose
	words := []string{"a", "b", "c"}
	some := func() (out []string) {
		for _, w := range words {
			if rnd.IntN(3) == 0 {
				out = append(out, w)
			}
		}
		return out
	}
	for i := range 60 {
		it := component.Item{Type: words[rnd.IntN(3)], ID: fmt.Sprintf("%s%d", words[rnd.IntN(3)], i), ChangedAt: moment()}
		for range rnd.IntN(5) {
			it.Events = append(it.Events, component.Event{Type: words[rnd.IntN(3)], Start: moment(), Success: rnd.IntN(2) == 0, Token: uint64(rnd.IntN(3))})
		}
		_, err := b.Items.Put(t.Context(), it, false)
		must(t, err)
		if rnd.IntN(2) == 0 {
			c := b.claim(t, "me", it.ID)
			_, err := b.Items.Begin(t.Context(), c, moment())
			must(t, err)
			r := result(c, moment(), rnd.IntN(2) == 0)
			r.Event.Type = words[rnd.IntN(3)]
			r.Record = component.Record{Created: moment(), LastAttempt: moment(), Quarantined: rnd.IntN(6) == 0}
			if rnd.IntN(3) == 0 {
				r.Record.NotBefore = moment()
			}
			must(t, b.Items.Finish(t.Context(), c, r))
		}
	}
	all, err := b.Items.All(t.Context(), "me", "")
	must(t, err)
	ids := func(items []component.Item) (out []string) {
		for _, it := range items {
			out = append(out, it.ID)
		}
		return out
	}
	found := 0
	someItems := func() (list []string) {
		if rnd.IntN(4) == 0 {
			for range 1 + rnd.IntN(20) {
				list = append(list, all[rnd.IntN(len(all))].ID)
			}
		}
		return list
	}
	for range 150 {
		q := component.Query{Component: "me", At: moment(), Limit: 1 + rnd.IntN(70)}
		for range 1 + rnd.IntN(2) {
			q.Triggers = append(q.Triggers, component.Trigger{Past: some(), PastFailed: some(), Future: some(), Old: some(), Types: some(), Items: someItems()})
		}
		got, err := b.Items.Query(t.Context(), q)
		must(t, err)
		if want := ids(component.Answer(all, q)); !slices.Equal(ids(got), want) {
			t.Fatalf("query %+v:\n got %q\nwant %q", q, ids(got), want)
		}
		found += len(got)
	}
	if found == 0 {
		t.Error("no query found anything: the test shows nothing")
	}
}
