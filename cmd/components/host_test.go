package components

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/gmstest"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/recovery"
)

// crew are three nodes, each with a host of its own, and what their workers do.
type crew struct {
	*gmstest.World
	mu    sync.Mutex
	hosts map[*gmstest.Node]*Host
	jobs  []component.Job
	goOn  chan struct{} // closed: work ends by itself
}

// newCrew adds the components of orphans, by name, to each node.
func newCrew(t *testing.T, orphans map[string]Orphans) *crew {
	c := &crew{hosts: map[*gmstest.Node]*Host{}, goOn: make(chan struct{})}
	c.World = gmstest.Cluster(t, 3, gmstest.WithApp(func(n *gmstest.Node) (stop func(), err error) {
		manager, err := recovery.ForGroup(n.Group, recovery.Options{})
		if err != nil {
			return nil, err
		}
		h, err := NewHost(Config{Group: n.Group, Manager: manager})
		if err != nil {
			return nil, err
		}
		for name, o := range orphans {
			cfg := component.Config{Component: name, Trigger: component.Trigger{Future: []string{name}}, Worker: component.Func(c.work), Settle: 2 * time.Second}
			if err := h.AddComponent(cfg, o); err != nil {
				return nil, err
			}
		}
		c.mu.Lock()
		c.hosts[n] = h
		c.mu.Unlock()
		var starting sync.WaitGroup
		starting.Go(func() { _ = h.Start(context.Background()) }) // a restarted node waits for its standing
		return func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = h.Stop(ctx) // of a killed process nothing counts any more
			manager.Stop()
			starting.Wait()
		}, manager.Start(context.Background())
	}))
	return c
}

func (c *crew) work(ctx context.Context, j component.Job) (component.Report, error) {
	c.mu.Lock()
	c.jobs = append(c.jobs, j)
	c.mu.Unlock()
	select {
	case <-c.goOn:
		return component.Report{}, nil
	case <-ctx.Done():
		return component.Report{}, context.Cause(ctx)
	}
}

func (c *crew) begun() []component.Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]component.Job(nil), c.jobs...)
}

// living is the host of some living node.
func (c *crew) living() *Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts[c.Living()[0]]
}

func (c *crew) put(t *testing.T, id string) {
	t.Helper()
	if _, err := c.living().Items().Put(t.Context(), component.Item{Type: "thing", ID: id}, false); err != nil {
		t.Fatal(err)
	}
}

// events says what became of an item: ok or failed, and the attempt.
func (c *crew) events(t *testing.T, name, id string) string {
	t.Helper()
	it, err := c.living().Items().Get(t.Context(), name, id)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range it.Events {
		out = append(out, fmt.Sprintf("%s %v by attempt %d", e.Type, e.Success, e.Attempt))
	}
	return strings.Join(out, ", ")
}

// What a host adds runs on its group: each item once, on one of three nodes, as soon as it is there; and when that node dies,
// the item is freed for whoever comes next, or adopted as its next round trip, under a larger token.
func TestHostOnAGroup(t *testing.T) {
	for name, orphans := range map[string]Orphans{"freeing": Free, "adopting": Adopt} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, map[string]Orphans{name: orphans})
				c.put(t, "x")
				c.Await("it is worked on", func() bool { return len(c.begun()) == 1 })
				was, _ := c.Living()[0].Group.ClaimOn(name, "x")
				c.Kill(was.Node)
				c.Await("it is worked on again", func() bool { return len(c.begun()) == 2 })
				now, _ := c.Living()[0].Group.ClaimOn(name, "x")
				if now.Token <= was.Token || now.Node == was.Node || now.Token != c.begun()[1].Token {
					t.Errorf("claim %+v after %+v, worked on as %+v", now, was, c.begun()[1])
				}
				if adopted := now.RoundTrip == was.RoundTrip+1; adopted != (orphans == Adopt) {
					t.Errorf("round trip %d after %d", now.RoundTrip, was.RoundTrip)
				}
				close(c.goOn)
				c.Await("no claim is left", func() bool { return len(c.Living()[0].Group.Claims()) == 0 })
				if got := c.events(t, name, "x"); got != name+" true by attempt 2" {
					t.Errorf("events: %s", got)
				}
			})
		})
	}
}

// A claim of this run that nobody works on is given back in time, so that its item is not held for as long as the process
// lives; one that was met only now is left alone.
func TestLostClaimIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, nil)
		n := c.Living()[0]
		lost, err := n.Group.Claim(t.Context(), "own", "lost", 1)
		if err != nil {
			t.Fatal(err)
		}
		h := c.living()
		busy := func() {
			t.Helper()
			if _, err := h.TryClaim(t.Context(), "own", "lost", 2); !errors.Is(err, component.ErrBusy) {
				t.Fatalf("claim: %v, want busy", err)
			}
		}
		busy()
		gmstest.Advance(lostAfter - time.Second)
		busy()
		if _, held := n.Group.ClaimOn("own", "lost"); !held {
			t.Error("it was given back too early")
		}
		gmstest.Advance(2 * time.Second)
		busy() // and gives it back
		got, err := h.TryClaim(t.Context(), "own", "lost", 2)
		if err != nil || got.Token <= lost.Token {
			t.Errorf("claim after it: %+v, %v", got, err)
		}
	})
}

// An operator's message gives a claim back when its work has ended, or has its item set aside; other tokens are not meant.
func TestYieldOfAHostsClaim(t *testing.T) {
	for _, quarantine := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrew(t, map[string]Orphans{"own": Free})
			c.put(t, "x")
			c.Await("it is worked on", func() bool { return len(c.begun()) == 1 })
			was, _ := c.Living()[0].Group.ClaimOn("own", "x")
			send := func(token uint64) {
				text := fmt.Sprintf(`{"component":"own","item":"x","token":%d,"quarantine":%v}`, token, quarantine)
				if err := c.Living()[0].Group.Send(t.Context(), YieldComponent, []byte(text), was.Node); err != nil {
					t.Fatal(err)
				}
			}
			send(was.Token + 1)
			gmstest.Advance(10 * time.Second)
			if now, _ := c.Living()[0].Group.ClaimOn("own", "x"); now.Token != was.Token {
				t.Fatalf("another token's message ended it: %+v", now)
			}
			send(was.Token)
			c.Await("it has moved", func() bool {
				now, held := c.Living()[0].Group.ClaimOn("own", "x")
				return held && now.Quarantined == quarantine && (quarantine || now.Token > was.Token)
			})
			if got := c.events(t, "own", "x"); got != "" {
				t.Errorf("what was given back is as if it had never been, events: %s", got)
			}
			close(c.goOn)
		})
	}
}

// What a host does in the wrong order, or twice, is said; and Stop may come first, and twice.
func TestHostLaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, nil)
		n := c.Living()[0]
		manager, err := recovery.ForGroup(n.Group, recovery.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Group: n.Group, Manager: manager}
		if _, err := NewHost(Config{Group: n.Group}); err == nil {
			t.Error("a host without a manager")
		}
		if _, err := NewHost(Config{Group: n.Group, Manager: manager, Items: c.living().Items()}); err == nil {
			t.Error("items without their ledger")
		}
		h, err := NewHost(cfg)
		if err != nil {
			t.Fatal(err)
		}
		own := component.Config{Component: "late", Worker: component.Func(c.work)}
		for _, want := range []string{"", "added before"} {
			if err := h.AddComponent(own, Free); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("add: %v, want %q", err, want)
			}
		}
		if err := h.AddComponent(component.Config{Component: "a/b", Worker: own.Worker}, Free); err == nil {
			t.Error("a name with a slash")
		}
		for range 2 {
			if err := h.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := h.Start(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("start after stop: %v", err)
		}
		if err := h.AddComponent(component.Config{Component: "later", Worker: own.Worker}, Free); !errors.Is(err, ErrStopped) {
			t.Errorf("add after stop: %v", err)
		}
		if h.Runner("late") == nil || h.Runner("none") != nil || fmt.Sprint(h.Components()) != "[late]" {
			t.Errorf("components %v", h.Components())
		}
		if err := c.living().AddComponent(own, Free); err == nil || !strings.Contains(err.Error(), "started already") {
			t.Errorf("add after start: %v", err)
		}
		if err := c.living().Start(t.Context()); err == nil {
			t.Error("started twice")
		}
	})
}
