package gmstest

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// Advance lets virtual time pass, in a synctest bubble. It is the one helper that does.
func Advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// awaitLimit is virtual time, far more than anything here takes.
const awaitLimit = 5 * time.Minute

// Await lets virtual time pass until cond is true; it looks at each entry that a member applies, and each five
// milliseconds. It ends the test when cond stays false for five virtual minutes. It returns how long it took.
func (w *World) Await(what string, cond func() bool) time.Duration {
	w.t.Helper()
	begun := time.Now()
	for {
		moved := w.observer.moved()
		synctest.Wait()
		if cond() {
			return time.Since(begun)
		}
		if time.Since(begun) > awaitLimit {
			w.t.Fatalf("waited in vain for %s\n%s", what, w)
		}
		select {
		case <-moved:
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// AwaitView waits until the named nodes hold their leases and see each other and nobody else.
func (w *World) AwaitView(names ...string) time.Duration {
	w.t.Helper()
	return w.Await(fmt.Sprintf("one view of %v", names), func() bool { return w.oneView(names) })
}

func (w *World) oneView(names []string) bool {
	var first signals.View
	for i, name := range names {
		n := w.Node(name)
		v := n.Group.View()
		if i == 0 {
			first = v
		}
		if !n.Standing() || v.Version != first.Version || len(v.Members) != len(names) {
			return false
		}
		if m, ok := v.Member(name); !ok || m.Run != n.Run() {
			return false
		}
	}
	return true
}

// AwaitGone waits until no living node but the named ones themselves sees them.
func (w *World) AwaitGone(names ...string) time.Duration {
	w.t.Helper()
	return w.Await(fmt.Sprintf("views without %v", names), func() bool {
		for _, n := range w.Living() {
			for _, name := range names {
				if _, here := n.Group.View().Member(name); here && n.Name != name {
					return false
				}
			}
		}
		return true
	})
}

// AwaitRecovered waits until a recovery of the component of a dead run of node has been released and none is open, as every
// living node sees it.
func (w *World) AwaitRecovered(component, node string) time.Duration {
	w.t.Helper()
	return w.Await(fmt.Sprintf("the recovery of %s of %s", component, node), func() bool {
		for _, n := range w.Living() {
			if !hasRecovered(n.Group, component, node) {
				return false
			}
		}
		return true
	})
}

func hasRecovered(g *gms.Group, component, node string) bool {
	open, _ := g.Recoveries()
	for _, r := range open {
		if r.Component == component && r.Node == node {
			return false
		}
	}
	return slices.ContainsFunc(g.Ended(), func(e gms.EndedRecovery) bool {
		return e.Component == component && e.Node == node && !e.Dropped
	})
}
