package notify

import (
	order "cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// shelf is a Store in memory, shared by the nodes of a test.
type shelf struct {
	mu      sync.Mutex
	state   State
	version uint64
	pending map[string]Pending
	down    bool
}

func (s *shelf) Load(context.Context) (State, uint64, []Pending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return State{}, 0, nil, errors.New("no quorum")
	}
	out := slices.SortedFunc(maps.Values(s.pending), func(a, b Pending) int {
		return order.Or(a.Message.At.Compare(b.Message.At), strings.Compare(a.ID(), b.ID()))
	})
	return s.state, s.version, out, nil
}

func (s *shelf) Save(_ context.Context, state State, version uint64, add []Pending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != s.version {
		return ErrChanged
	}
	s.state, s.version = state, s.version+1
	for _, p := range add {
		s.pending[p.ID()] = p
	}
	return nil
}

func (s *shelf) Update(_ context.Context, p Pending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[p.ID()] = p
	return nil
}

func (s *shelf) Remove(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, id)
	return nil
}

// box is a receiver that remembers, and fails as long as it is told to.
type box struct {
	name string
	mu   sync.Mutex
	got  []string
	fail error
	asks int
}

func (b *box) Name() string { return b.name }

func (b *box) Deliver(_ context.Context, m Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asks++
	if b.fail == nil {
		b.got = append(b.got, m.Kind+" "+m.ID)
	}
	return b.fail
}

func (b *box) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

func (b *box) set(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

// world is a group whose nodes share a shelf and see the same.
type world struct {
	mu       sync.Mutex
	overview api.Overview
	teller   string
	store    *shelf
}

func (w *world) set(list ...api.Alarm) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.overview = api.Overview{Status: api.Status{Ready: true, Lease: "held"}, Alarms: list}
}

func (w *world) tellerIs(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.teller = node
}

func (w *world) node(name string, receivers ...Receiver) *Notifier {
	return New(Config{
		Telling: Telling{Rules: rules, Receivers: receivers}, Store: w.store, Now: time.Now,
		May: func(context.Context) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.teller == name || w.teller == "both"
		},
		Look: func(context.Context) (api.Overview, []api.Recovery) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.overview, nil
		},
	})
}

// TestOncePerEventInTheGroup: of three nodes one tells; when another takes over, what was told is not told again, and what
// was not yet delivered is; two that believe they may tell tell each thing once.
func TestOncePerEventInTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{teller: "n1", store: &shelf{pending: map[string]Pending{}}}
		w.set(alarm("failed", "shop"))
		chat := &box{name: "chat"}
		var nodes []*Notifier
		for i := range 3 {
			n := w.node(fmt.Sprintf("n%d", i+1), chat)
			n.Start(t.Context())
			nodes = append(nodes, n)
		}
		expect := func(after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if diff := cmp.Diff(want, chat.all()); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
		expect(2*time.Minute, "alarm shop-1")
		w.tellerIs("n2")
		expect(time.Hour, "alarm shop-1")
		chat.set(errors.New("down"))
		w.set()
		time.Sleep(2 * time.Minute)
		w.tellerIs("n3")
		chat.set(nil)
		expect(time.Hour, "alarm shop-1", "clear shop-2")
		w.tellerIs("both")
		w.set(alarm("backup", "books", critical))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := slices.Compact(chat.all()); len(got) != 3 || got[2] != "alarm shop-3" { // the same message may come twice
			t.Errorf("%q", got)
		}
		w.store.mu.Lock()
		left := len(w.store.pending)
		w.store.mu.Unlock()
		if left != 0 {
			t.Errorf("%d messages stay in the outbox", left)
		}
		for _, n := range nodes {
			n.Stop()
			n.Stop()
		}
	})
}

// TestReceiversThatAreAway: one that is away holds up no other, is asked less and less often, and given up after a day;
// status says so. One that is not configured any more leaves nothing behind.
func TestReceiversThatAreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{teller: "n1", store: &shelf{pending: map[string]Pending{}}}
		w.set(alarm("failed", "shop"), alarm("clock", "n1"))
		chat, pager := &box{name: "chat"}, &box{name: "pager", fail: errors.New("answered 500")}
		if err := w.store.Update(t.Context(), Pending{Receiver: "gone", Message: sample()}); err != nil {
			t.Fatal(err)
		}
		n := w.node("n1", chat, pager)
		n.Start(t.Context())
		defer n.Stop()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if len(chat.all()) != 2 { // a message for each cause
			t.Errorf("%q", chat.all())
		}
		pager.mu.Lock()
		asked := pager.asks
		pager.mu.Unlock()
		if asked < 7 || asked > 11 { // 10 s, 20 s, ... an hour
			t.Errorf("asked %d times in two hours", asked)
		}
		if p := n.Problems(); p["pager"] != "answered 500" || len(p) != 1 {
			t.Errorf("%v", p)
		}
		time.Sleep(30 * time.Hour)
		synctest.Wait()
		w.store.mu.Lock()
		for id, p := range w.store.pending {
			if p.Receiver != "pager" || time.Since(p.Message.At) > 26*time.Hour {
				t.Errorf("%s stays", id)
			}
		}
		w.store.mu.Unlock()
		pager.set(nil)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if p := n.Problems(); len(p) != 0 || len(pager.all()) == 0 {
			t.Errorf("%v, %q", p, pager.all())
		}
	})
}

// TestWhoMayNotTellsNothing: it does not even note what it sees.
func TestWhoMayNotTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{teller: "n1", store: &shelf{pending: map[string]Pending{}}}
		w.set(alarm("failed", "shop"))
		chat := &box{name: "chat"}
		n := w.node("n2", chat)
		n.Start(t.Context())
		defer n.Stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		if len(chat.all()) != 0 || w.store.version != 0 {
			t.Errorf("%q was told, state %d", chat.all(), w.store.version)
		}
	})
}

// TestNothingIsToldWithoutAStore: without a quorum nothing is told twice or lost; it is told when the quorum is back.
func TestNothingIsToldWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{teller: "n1", store: &shelf{pending: map[string]Pending{}, down: true}}
		w.set(alarm("failed", "shop"))
		chat := &box{name: "chat"}
		n := w.node("n1", chat)
		n.Start(t.Context())
		defer n.Stop()
		time.Sleep(10 * time.Minute)
		w.store.mu.Lock()
		w.store.down = false
		w.store.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := chat.all(); len(got) != 1 {
			t.Errorf("%q", got)
		}
	})
}

// TestHeartbeat: the outside watchers are called while all is well, each at its own pace, and not while a backup is overdue;
// others are, from the moment on that they are named.
func TestHeartbeat(t *testing.T) {
	url, got := listen(t, 200)
	w := &world{teller: "n1", store: &shelf{pending: map[string]Pending{}}}
	n := w.node("n1")
	n.Renew(Telling{Rules: rules, Beats: []Beat{{"dog", value(url), time.Minute}, {"cat", value("http://127.0.0.1:1/secret"), time.Minute}}})
	n.beat(t.Context(), map[string]time.Time{})
	if r := <-got; r.body != "" || n.Problems()["heartbeat dog"] != "" {
		t.Errorf("%+v, %v", r, n.Problems())
	}
	if p := n.Problems()["heartbeat cat"]; strings.Contains(p, "secret") || p == "" {
		t.Errorf("%q", p)
	}
	if n.Renew(Telling{Rules: rules, Beats: []Beat{{"dog", value(url), time.Minute}}}); len(n.Problems()) != 0 {
		t.Errorf("a heartbeat that is no more has a problem: %v", n.Problems())
	}
	synctest.Test(t, func(t *testing.T) {
		w := &world{teller: "n1", store: &shelf{pending: map[string]Pending{}}}
		w.set()
		var slow, fast int
		n := w.node("n1")
		count := func(n *int) func() (string, error) {
			return func() (string, error) { *n++; return "", errors.New("not in this test") }
		}
		beats := []Beat{{"slow", count(&slow), time.Minute}, {"fast", count(&fast), 10 * time.Second}}
		n.Renew(Telling{Rules: rules, Beats: beats})
		n.Start(t.Context())
		defer n.Stop()
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		if slow != 10 || fast != 60 {
			t.Errorf("%d and %d beats in ten minutes", slow, fast)
		}
		n.Renew(Telling{Rules: rules, Beats: beats[:1]})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if slow != 20 || fast != 60 {
			t.Errorf("%d and %d beats in twenty minutes", slow, fast)
		}
		w.set(alarm("backup", "shop", critical))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if slow > 20 {
			t.Error("it beats while a backup is overdue")
		}
	})
}

// TestWhoIsToldOfWhat: an event goes to those that its rule names, and what changes of the rules counts from the next look on.
func TestWhoIsToldOfWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{teller: "n1", store: &shelf{pending: map[string]Pending{}}}
		w.set(alarm("failed", "shop"), alarm("member", "n2"))
		chat, night := &box{name: "chat"}, &box{name: "night"}
		n := w.node("n1")
		to := func(some map[string]Rule) {
			n.Renew(Telling{Rules: telling(usual, some), Receivers: []Receiver{chat, night}})
		}
		to(map[string]Rule{"failed": {To: []string{"night"}}, "member": {Severity: None}})
		n.Start(t.Context())
		defer n.Stop()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([][]string{nil, {"alarm shop-1"}}, [][]string{chat.all(), night.all()}); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		to(map[string]Rule{"failed": {To: []string{"night"}}, "member": {To: []string{"chat", "night"}}})
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([][]string{{"alarm shop-2"}, {"alarm shop-1", "alarm shop-2"}}, [][]string{chat.all(), night.all()}); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestTest delivers to one, or to all, and says what became of each.
func TestTest(t *testing.T) {
	w := &world{store: &shelf{pending: map[string]Pending{}}}
	chat, pager := &box{name: "chat"}, &box{name: "pager", fail: errors.New("down")}
	n := w.node("n1", chat, pager)
	got, err := n.Test(t.Context(), "")
	if err != nil || got["chat"] != nil || got["pager"] == nil || len(chat.all()) != 1 || !strings.HasPrefix(chat.all()[0], "test shop-test-") {
		t.Errorf("%v, %v, %q", got, err, chat.all())
	}
	if got, err := n.Test(t.Context(), "chat"); err != nil || len(got) != 1 {
		t.Error(got, err)
	}
	var e *api.Error
	if _, err := n.Test(t.Context(), "nobody"); !errors.As(err, &e) || e.Code != api.CodeNotFound {
		t.Error(err)
	}
}

func TestPauses(t *testing.T) {
	for tries, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		if got := pause(tries); got != want {
			t.Errorf("after %d tries: %v", tries, got)
		}
	}
	if pause(100) != time.Hour {
		t.Error(pause(100))
	}
}
