package gmstest

import (
	"context"
	"testing"

	"github.com/fencepost/fencepost/gms"
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
