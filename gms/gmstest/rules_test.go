package gmstest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/recovery/warden"
	"github.com/fencepost/fencepost/signals"
)

// PROTOCOL.md 11: two nodes were restarted and each has to recover the other, fenced as both are, since the only other one
// that can has died. Who waited for its own fence first would wait for the other, which waits for it.
func TestRule11_TwoRestartedNodesRecoverEachOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		a.only = func(node, _ string) bool { return node != "n1" }
		a.act = func(ctx context.Context, n *Node, s signals.FailureRecoverySignal) error {
			if n.Name == "n4" {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			_, err := freeAll(ctx, s)
			return err
		}
		w := Cluster(t, 4, a.option(), WithConfig(func(_ string, c *gms.Config) {
			c.Order = func(_ string, _ signals.Member, candidates []signals.Member) (first []string) {
				for _, m := range candidates {
					if m.Node == "n4" {
						first = append(first, m.Run)
					}
				}
				return first
			}
		}))
		for _, name := range []string{"n2", "n3"} {
			_, err := w.Node(name).Group.Claim(t.Context(), "work", "item of "+name, 1)
			must(t, err)
			w.Restart(name)
			w.AwaitView(w.Names()...)
		}
		for _, name := range []string{"n2", "n3"} {
			if fenced, _, err := w.Node("n1").Group.IsFenced(t.Context(), "work", name); !fenced || err != nil {
				t.Errorf("%s: fenced %t, %v", name, fenced, err)
			}
		}
		w.Kill("n4")
		w.AwaitGone("n4")
		t.Logf("both were recovered after %v", awaitRecovered(w))
		for _, d := range append(a.done("n2"), a.done("n3")...) {
			if d.By == d.Node {
				t.Errorf("%s recovered itself: there was another", d.By)
			}
		}
		if len(a.done("n2")) != 1 || len(a.done("n3")) != 1 {
			t.Errorf("recovered: n2 %+v, n3 %+v", a.done("n2"), a.done("n3"))
		}
	})
}

// PROTOCOL.md 22: a component whose resource cannot check tokens is recovered under its fence at once, but its action begins
// only when the dead run's lease has run out, or the run's warden has said that nothing of it is left.
func TestRule22_QuiescedInsteadOfTheLease(t *testing.T) {
	const ttl = 3 * time.Second // of the profile
	for _, c := range []struct {
		name        string
		obituaries  []warden.What
		least, most time.Duration
	}{
		{"nobody says anything", nil, ttl, 2 * ttl},
		{"it died", []warden.What{warden.Died}, ttl, 2 * ttl},
		{"it died and is quiesced", []warden.What{warden.Died, warden.Quiesced}, 0, ttl / 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var begun time.Time
				lease := signals.HandleRecovery(func(ctx context.Context, s signals.FailureRecoverySignal) error {
					_, err := freeAll(ctx, s)
					begun = time.Now()
					return err
				})
				w := Cluster(t, 3, WithConfig(withWardens(nil)), WithConfig(func(_ string, c *gms.Config) { c.NoRefused = false }),
					WithApp(func(n *Node) (func(), error) {
						if err := n.Router.AddRecoveryFactory("work", lease, signals.WithExclusion(signals.ExclusionLease)); err != nil {
							return nil, err
						}
						m, err := recovery.New(recovery.Options{Log: recovery.GroupLog(n.Group), Router: n.Router, Node: n.Name})
						if err != nil {
							return nil, err
						}
						return m.Stop, m.Start(context.Background())
					}))
				victim := w.Others(w.Leader())[0]
				x := &scene{t: t, w: w, victim: victim}
				Advance(10 * time.Second) // homes remember where the others are
				w.Kill(victim)
				w.AwaitGone(victim)
				closed := w.observer.closed(victim)[0].At
				for _, what := range c.obituaries {
					if err := x.announce(w.Leader(), x.obituary(what, victim, victim, victim)); err != nil && !errors.Is(err, gms.ErrRunClosed) {
						t.Fatal(err)
					}
				}
				awaitRecovered(w)
				took := begun.Sub(closed)
				t.Logf("the action began %v after the closing", took)
				if took < c.least-ttl/10 || took > c.most {
					t.Errorf("the action began %v after the closing, want from %v to %v", took, c.least, c.most)
				}
			})
		})
	}
}
