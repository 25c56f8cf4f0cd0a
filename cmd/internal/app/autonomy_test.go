package app

import (
	"context"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/gmstest"
	"github.com/fencepost/fencepost/pipeline/component"
)

// Eight runners on three nodes, both procedures, a real group and its ledger: kills, pauses and changes of the leader at
// random moments. Every item has exactly one success, no claim is left, and the log shows that nothing was worked on under a
// poll lock.
func TestEightRunnersOnThreeNodes(t *testing.T) {
	items, rounds := 500, 1
	if os.Getenv("FENCEPOST_LONG") != "" {
		rounds = 5
	}
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			p := newPlant(t, 0, bothProcedures)
			p.fill(items)
			p.run(false, freeing)
			p.check(freeing)
		})
	}
}

// An index that answers five seconds old: nothing is worked on twice, and what turned out stale under the claim is counted.
func TestIndexFiveSecondsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, 5*time.Second, bothProcedures)
		p.quick = true
		p.fill(60)
		p.run(true, freeing)
		p.check(freeing)
		for item, n := range p.worked {
			if n != 1 {
				t.Errorf("%s was worked on %d times", item, n)
			}
		}
		for _, name := range p.Names() {
			p.Stop(name)
		}
		if p.stale == 0 {
			t.Error("no stale item was counted: the index has not lagged")
		}
		t.Logf("%d items were stale under their claims", p.stale)
	})
}

// patient is work that goes on until it is let go, and tells of its jobs.
type patient struct {
	mu   sync.Mutex
	jobs []component.Job
	goOn chan struct{}
}

func (p *patient) Start(ctx context.Context, j component.Job) (component.Work, error) {
	p.mu.Lock()
	p.jobs = append(p.jobs, j)
	p.mu.Unlock()
	return component.Func(func(ctx context.Context, _ component.Job) (component.Report, error) {
		select {
		case <-p.goOn:
			return component.Report{}, nil
		case <-ctx.Done():
			return component.Report{}, context.Cause(ctx)
		}
	}).Start(ctx, j)
}

func (p *patient) of(component string) (list []component.Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range p.jobs {
		if j.Component == component {
			list = append(list, j)
		}
	}
	return list
}

// oneOn are one runner of a component on each node.
func oneOn(name string, w component.Worker) func(string) []component.Config {
	return func(string) []component.Config { return []component.Config{{Component: name, Worker: w}} }
}

// claim is the claim on the only item as some living node knows it.
func (p *plant) claim(component string) (c gms.ClaimState, ok bool) {
	for _, n := range p.Living() {
		if c, ok := n.Group.ClaimOn(component, "i000"); ok {
			return c, true
		}
	}
	return gms.ClaimState{}, false
}

// A dead run's claims arrive as orphans: one component frees them, for whoever comes next; another adopts them, as round
// trip n + 1, and works on at once. Every new attempt has a larger token, and the item one success of each.
func TestOrphansAreAdoptedOrFreed(t *testing.T) {
	for _, name := range []string{freeing, adopting} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &patient{goOn: make(chan struct{})}
				p := newPlant(t, 0, oneOn(name, w))
				p.fill(1)
				var was, now gms.ClaimState
				p.Await("it is worked on", func() bool { was, _ = p.claim(name); return len(w.of(name)) == 1 })
				p.Kill(was.Node)
				p.Await("it is worked on again", func() bool { now, _ = p.claim(name); return len(w.of(name)) == 2 })
				if now.Token <= was.Token || now.Orphan || now.Adopted || now.Node == was.Node {
					t.Errorf("claim %+v, was %+v", now, was)
				}
				if adopted := now.RoundTrip == was.RoundTrip+1; adopted != (name == adopting) {
					t.Errorf("round trip %d after %d", now.RoundTrip, was.RoundTrip)
				}
				if again := w.of(name)[1]; again.Token != now.Token || again.Attempt != 2 {
					t.Errorf("worked on again as %+v", again)
				}
				close(w.goOn)
				p.Start(was.Node)
				p.run(true, name)
				p.check(name)
			})
		})
	}
}

// An operator wants the claim of a dead run free, or set aside: its recovery has it first, and nothing else touches it; then
// the item is free, or set aside by a claim of its own.
func TestClaimOfADeadRun(t *testing.T) {
	for _, quarantine := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := &patient{goOn: make(chan struct{})}
			p := newPlant(t, 0, oneOn(freeing, w))
			p.fill(1)
			var c gms.ClaimState
			p.Await("it is worked on", func() bool { c, _ = p.claim(freeing); return len(w.of(freeing)) == 1 })
			p.Kill(c.Node)
			asked := p.apps[p.Living()[0]]
			got, err := (jobs{asked}).EndClaim(t.Context(), api.ClaimName{Component: freeing, Item: c.Item, Token: c.Token}, quarantine)
			want := map[bool]string{false: "free", true: "quarantined"}[quarantine]
			if err != nil || got.State != want {
				t.Fatalf("%+v, %v, want it %s", got, err, want)
			}
			if p.releases(freeing, c.Run) != 1 {
				t.Error("it was ended without its recovery")
			}
			gmstest.Advance(time.Minute)
			now, held := p.claim(freeing)
			if !held || now.Quarantined != quarantine {
				t.Errorf("a minute later: %+v, %v", now, held)
			}
			close(w.goOn)
			if !quarantine {
				p.Await("it is done", func() bool { return p.finished(freeing) })
			}
		})
	}
}

// releases counts how often the recovery of a run's component has ended, as a living node knows.
func (p *plant) releases(component, run string) (n int) {
	for _, e := range p.Living()[0].Group.Ended() {
		if e.Component == component && e.Run == run {
			n++
		}
	}
	return n
}
