package gossip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// limit is generous: it ends a test that hangs, and decides nothing.
const limit = 60 * time.Second

// bubble runs f with virtual time. A probe that is under way when the library is shut down ends by its time-out only, and
// time stops with the bubble's first goroutine, so some more passes after f.
func bubble(t *testing.T, f func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		f(t)
		<-time.After(time.Minute)
	})
}

// member makes a Gossip in memory: host 10.0.0.<n>, name "n<n>/<run>".
func member(t *testing.T, e *ether, n int, run string, edit func(*Config)) *Gossip {
	t.Helper()
	ip := fmt.Sprintf("10.0.0.%d", n)
	cfg := Config{Name: fmt.Sprintf("n%d/%s", n, run), Label: "g", BindAddr: ip + ":7946", Network: e.host(ip), Meta: []byte("meta of " + run)}
	if edit != nil {
		edit(&cfg)
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

func join(t *testing.T, g, to *Gossip) {
	t.Helper()
	if n, err := g.Join(t.Context(), []string{to.Addr()}); n != 1 || err != nil {
		t.Fatalf("joined %d: %v", n, err)
	}
}

func names(g *Gossip) string {
	var all []string
	for _, m := range g.Members() {
		all = append(all, m.Name)
	}
	return strings.Join(all, " ")
}

// await takes events until one is of that kind and name. Those that come before are lost to later calls: for events
// whose order is open there is [awaitAll].
func await(t *testing.T, g *Gossip, kind Kind, name string) Event {
	t.Helper()
	return awaitAll(t, g, kind, name)[name]
}

// awaitAll takes events until there was one of that kind for each of the names, in whatever order. It returns the first
// of each, by name.
func awaitAll(t *testing.T, g *Gossip, kind Kind, names ...string) map[string]Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	got := make(map[string]Event, len(names))
	for len(got) < len(names) {
		e, err := g.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for %v to be %v, with %d of them seen: %v", names, kind, len(got), err)
		}
		if _, again := got[e.Member.Name]; e.Kind == kind && slices.Contains(names, e.Member.Name) && !again {
			got[e.Member.Name] = e
		}
	}
	return got
}

func stopAll(all ...*Gossip) {
	var w sync.WaitGroup
	for _, g := range all {
		w.Go(g.Stop)
	}
	w.Wait()
}

func TestMembersComeChangeLeaveAndDie(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEther()
		a, b, c := member(t, e, 1, "a", nil), member(t, e, 2, "b", nil), member(t, e, 3, "c", nil)
		defer stopAll(a, b, c)
		if got := await(t, a, Alive, "n1/a"); string(got.Member.Meta) != "meta of a" || got.Member.Addr != "10.0.0.1:7946" {
			t.Errorf("the first event is %+v", got)
		}
		join(t, b, a)
		join(t, c, a)
		awaitAll(t, a, Alive, "n2/b", "n3/c") // each joiner is done before a has taken its news in
		await(t, b, Alive, "n3/c")
		if got := names(b); got != "n1/a n2/b n3/c" {
			t.Errorf("b knows %s", got)
		}

		if err := b.SetMeta(t.Context(), []byte("new")); err != nil {
			t.Fatal(err)
		}
		if got := await(t, a, Updated, "n2/b"); string(got.Member.Meta) != "new" {
			t.Errorf("the new meta is %q", got.Member.Meta)
		}

		if err := b.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Stop()
		await(t, a, Left, "n2/b")
		start := time.Now()
		c.Stop()
		await(t, a, Dead, "n3/c")
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("a silent death was noticed after %v", took)
		}
		if got := names(a); got != "n1/a" {
			t.Errorf("a knows %s", got)
		}
	})
}

func TestRealSockets(t *testing.T) {
	var all []*Gossip
	for _, name := range []string{"n1/a", "n2/b"} {
		g, err := New(Config{Name: name, Label: "g", BindAddr: "127.0.0.1:0", Network: system{}, Meta: []byte(name)})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	defer stopAll(all...)
	join(t, all[1], all[0])
	if got := await(t, all[0], Alive, "n2/b"); string(got.Member.Meta) != "n2/b" || got.Member.Addr != all[1].Addr() {
		t.Errorf("%+v", got)
	}
	if err := all[1].SetMeta(t.Context(), []byte("new")); err != nil {
		t.Fatal(err)
	}
	await(t, all[0], Updated, "n2/b")
	all[1].Stop()
	await(t, all[0], Dead, "n2/b")
}

// A foreign cluster's members, and a run that the log has closed, stay out, whatever gossip says.
func TestAdmitKeepsOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEther()
		var mu sync.Mutex
		closed := map[string]bool{"n3/foreign": true}
		a := member(t, e, 1, "a", func(c *Config) {
			c.Admit = func(m Member) error {
				mu.Lock()
				defer mu.Unlock()
				if closed[m.Name] {
					return errors.New("not with us")
				}
				return nil
			}
		})
		b := member(t, e, 2, "b", nil)
		foreign := member(t, e, 3, "foreign", nil)
		defer stopAll(a, b, foreign)
		join(t, b, a)
		join(t, foreign, b) // a hears of it from b
		await(t, b, Alive, "n3/foreign")
		<-time.After(time.Minute)
		if got := names(a); got != "n1/a n2/b" {
			t.Errorf("a knows %s", got)
		}

		e.setCut("10.0.0.2", true)
		await(t, a, Dead, "n2/b")
		mu.Lock()
		closed["n2/b"] = true // the log has closed the run
		mu.Unlock()
		e.setCut("10.0.0.2", false)
		if _, err := b.Join(t.Context(), []string{a.Addr()}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if got := names(a); got != "n1/a" {
			t.Errorf("after the closed run came back a knows %s", got)
		}
		for {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			ev, err := a.Next(ctx)
			cancel()
			if err != nil {
				break
			}
			t.Errorf("event %v of %s", ev.Kind, ev.Member.Name)
		}

		again := member(t, e, 2, "b2", func(c *Config) { c.BindAddr = "10.0.0.2:7950" }) // a new run may
		defer again.Stop()
		join(t, again, a)
		await(t, a, Alive, "n2/b2")
	})
}

func TestOtherLabelAndOtherKeyAreDeaf(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEther()
		key, old := []byte("0123456789abcdef"), []byte("fedcba9876543210")
		a := member(t, e, 1, "a", func(c *Config) { c.Keys = [][]byte{key, old} })
		friend := member(t, e, 2, "friend", func(c *Config) { c.Keys = [][]byte{old, key} }) // in the middle of a rotation
		plain := member(t, e, 3, "plain", nil)
		other := member(t, e, 4, "other", func(c *Config) { c.Keys = [][]byte{key}; c.Label = "h" })
		defer stopAll(a, friend, plain, other)
		join(t, friend, a)
		for _, g := range []*Gossip{plain, other} {
			if n, err := g.Join(t.Context(), []string{a.Addr()}); n != 0 || err == nil {
				t.Errorf("joined %d: %v", n, err)
			}
		}
		<-time.After(time.Minute)
		if got := names(a); got != "n1/a n2/friend" {
			t.Errorf("a knows %s", got)
		}
		if _, err := New(Config{Name: "x", BindAddr: "10.0.0.9:1", Network: e.host("10.0.0.9"), Keys: [][]byte{{1}}}); err != nil {
			t.Fatal(err)
		}
	})
}

// After a partition nobody finds anybody by itself; a join heals it.
func TestJoinHealsPartition(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEther()
		a, b := member(t, e, 1, "a", nil), member(t, e, 2, "b", nil)
		defer stopAll(a, b)
		join(t, b, a)
		await(t, a, Alive, "n2/b")
		e.setCut("10.0.0.2", true)
		await(t, a, Dead, "n2/b")
		<-time.After(10 * time.Minute)
		e.setCut("10.0.0.2", false)
		join(t, b, a)
		await(t, a, Alive, "n2/b")
		if got := names(b); got != "n1/a n2/b" {
			t.Errorf("b knows %s", got)
		}
	})
}

// Dead addresses cost one time-out together, names are resolved by the host, and one answer is enough.
func TestJoinAsksAllAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEther()
		a := member(t, e, 1, "a", nil)
		b := member(t, e, 2, "b", func(c *Config) {
			c.Resolve = func(_ context.Context, name string) ([]string, error) {
				if name == "a.example" {
					return []string{"10.0.0.9", "10.0.0.1"}, nil // the first refuses
				}
				return nil, errors.New("no such host")
			}
		})
		defer stopAll(a, b)
		addrs := []string{"a.example:7946", "nobody.example:7946", "not an address"}
		for i := range 20 {
			ip := fmt.Sprintf("10.0.1.%d", i)
			e.setCut(ip, true)
			addrs = append(addrs, ip+":7946")
		}
		start := time.Now()
		n, err := b.Join(t.Context(), addrs)
		if n != 1 || err == nil {
			t.Errorf("joined %d: %v", n, err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
		await(t, a, Alive, "n2/b")
	})
}

func TestStopEndsCallsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEther()
		a, b := member(t, e, 1, "a", nil), member(t, e, 2, "b", nil)
		defer b.Stop()
		join(t, a, b)
		e.setCut("10.0.0.9", true)
		joined, left, next := make(chan error), make(chan error), make(chan error)
		go func() { _, err := a.Join(context.Background(), []string{"10.0.0.9:1"}); joined <- err }()
		go func() { left <- a.Leave(context.Background()) }()
		await(t, a, Left, "n1/a") // its own; now it lingers
		go func() {
			for {
				if _, err := a.Next(context.Background()); err != nil {
					next <- err
					return
				}
			}
		}()
		synctest.Wait()
		start := time.Now()
		a.Stop()
		if took := time.Since(start); took > 500*time.Millisecond { // the last word of leaving, and no time-out
			t.Errorf("Stop took %v", took)
		}
		if err := <-joined; !errors.Is(err, ErrStopped) {
			t.Errorf("Join ended with %v", err)
		}
		if err := <-left; err != nil {
			t.Errorf("Leave ended with %v", err)
		}
		if err := <-next; !errors.Is(err, ErrStopped) {
			t.Errorf("Next ended with %v", err)
		}
	})
}

func TestLifeIsLivedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEther()
		never, err := New(Config{Name: "n9/x", BindAddr: "10.0.0.9:1", Network: e.host("10.0.0.9")})
		if err != nil {
			t.Fatal(err)
		}
		if err := never.Leave(t.Context()); !errors.Is(err, ErrNotStarted) {
			t.Errorf("Leave before Start: %v", err)
		}
		if _, err := never.Join(t.Context(), nil); !errors.Is(err, ErrNotStarted) {
			t.Errorf("Join before Start: %v", err)
		}
		never.Stop()
		never.Stop()
		if err := never.Start(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("Start after Stop: %v", err)
		}

		g := member(t, e, 1, "a", nil)
		if err := g.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
		if err := g.Leave(t.Context()); err != nil {
			t.Errorf("Leave: %v", err)
		}
		if err := g.Leave(t.Context()); !errors.Is(err, ErrLeft) {
			t.Errorf("Leave twice: %v", err)
		}
		g.Stop()
		if err := g.Leave(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("Leave after Stop: %v", err)
		}
		if err := g.SetMeta(t.Context(), nil); !errors.Is(err, ErrStopped) {
			t.Errorf("SetMeta after Stop: %v", err)
		}
	})
}

// Nobody takes events, and gossip goes on.
func TestSlowReaderHoldsNothingUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEther()
		a, b := member(t, e, 1, "a", nil), member(t, e, 2, "b", nil)
		defer stopAll(a, b)
		join(t, b, a)
		for i := range 300 {
			if err := b.SetMeta(t.Context(), fmt.Appendf(nil, "%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Second)
		got := await(t, a, Alive, "n2/b")
		if string(got.Member.Meta) != "299" {
			t.Errorf("the one event has meta %q", got.Member.Meta)
		}
		a.events.mu.Lock()
		left := len(a.events.events)
		a.events.mu.Unlock()
		if left != 0 {
			t.Errorf("%d more events wait", left)
		}
	})
}

func TestMetaIsBounded(t *testing.T) {
	e := newEther()
	cfg := Config{Name: "n1/a", BindAddr: "10.0.0.1:1", Network: e.host("10.0.0.1"), Meta: make([]byte, MaxMeta+1)}
	if _, err := New(cfg); !errors.Is(err, ErrMetaTooLarge) {
		t.Errorf("New: %v", err)
	}
	bubble(t, func(t *testing.T) {
		g := member(t, newEther(), 1, "a", func(c *Config) { c.Meta = make([]byte, MaxMeta) })
		defer g.Stop()
		if err := g.SetMeta(t.Context(), make([]byte, MaxMeta+1)); !errors.Is(err, ErrMetaTooLarge) {
			t.Errorf("SetMeta: %v", err)
		}
	})
}

// What Members gives is the caller's: scribbling on it changes nothing.
func TestMembersAreCopies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := member(t, newEther(), 1, "a", nil)
		defer g.Stop()
		g.Members()[0].Meta[0] = 'X'
		ev := await(t, g, Alive, "n1/a")
		ev.Member.Meta[0] = 'Y'
		if got := string(g.Members()[0].Meta); got != "meta of a" {
			t.Errorf("the meta is %q", got)
		}
	})
}

func TestStartStopStress(t *testing.T) {
	for range 20 {
		g, err := New(Config{Name: "n1/a", BindAddr: "127.0.0.1:0", Network: system{}})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if i%2 == 0 {
					_ = g.Start(context.Background()) // may come second, or too late
				}
				g.Members()
				_ = g.SetMeta(context.Background(), []byte("x"))
				if i%3 == 0 {
					_ = g.Leave(context.Background())
				}
				_, _ = g.Join(context.Background(), []string{"127.0.0.1:1"})
				g.Stop()
				g.Stop()
			})
		}
		all.Wait()
	}
}
