package app

import (
	"context"
	"fmt"
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
// poll lock. The long form plays more such histories, each from a seed that it prints, with orphans that are freed and with
// such that are adopted.
func TestEightRunnersOnThreeNodes(t *testing.T) {
	rounds := 1
	if os.Getenv("FENCEPOST_LONG") != "" {
		rounds = 20
	}
	for round := range rounds {
		name := []string{freeing, adopting}[round%2]
		t.Run(fmt.Sprintf("%d %s", round+1, name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlant(t, 0, bothProcedures(name))
				p.fill(500)
				p.run(false, name)
				p.check(name)
			})
		})
	}
}

// An index that answers five seconds old: nothing is worked on twice, and what turned out stale under the claim is counted.
func TestIndexFiveSecondsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, 5*time.Second, bothProcedures(freeing))
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

// deafWorker is work that goes on after the end of its context until it is let go.
type deafWorker struct {
	patient
	told chan struct{} // closed when the context of the first job has ended
	once sync.Once
}

func (d *deafWorker) Start(ctx context.Context, j component.Job) (component.Work, error) {
	context.AfterFunc(ctx, func() { d.once.Do(func() { close(d.told) }) })
	return d.patient.Start(context.WithoutCancel(ctx), j)
}

// Whoever has a claim given back waits as long as the request says, in one request; the claim is free when the work has ended,
// and not when it was told to.
func TestLongEndOfAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &deafWorker{patient: patient{goOn: make(chan struct{})}, told: make(chan struct{})}
		p := newPlant(t, 0, oneOn(freeing, w))
		p.fill(1)
		var c gms.ClaimState
		p.Await("it is worked on", func() bool { c, _ = p.claim(freeing); return len(w.of(freeing)) == 1 })
		name := api.ClaimName{Component: freeing, Item: c.Item, Token: c.Token}
		asked := jobs{p.apps[p.Living()[0]]}
		if _, err := asked.EndClaim(t.Context(), name, false); api.ExitCode(err) < api.ExitBusy {
			t.Errorf("after %s: %v", endWithin, err)
		}
		<-w.told
		name.WithinMS = time.Minute.Milliseconds()
		time.AfterFunc(2*endWithin, func() { close(w.goOn) })
		began := time.Now()
		got, err := asked.EndClaim(t.Context(), name, false)
		if err != nil || got.State != "free" || time.Since(began) < 2*endWithin {
			t.Errorf("after %s: %+v, %v", time.Since(began), got, err)
		}
		for _, ms := range []int64{-1, endMost.Milliseconds() + 1, 1 << 60} {
			name.WithinMS = ms
			if _, err := asked.EndClaim(t.Context(), name, false); api.ExitCode(err) != api.ExitUsage {
				t.Errorf("within %d ms: %v", ms, err)
			}
		}
	})
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
