package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// Scenes are histories that a plan of a seed has rarely, or not at all, and which some judges are there for.

func scene(t *testing.T) {
	t.Helper()
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (a minute of real processes)")
	}
}

// Hosts that reach the resource and no other member, for longer than any lease lasts, again and again: what their host apps
// held is others' meanwhile, and they do not take it for theirs.
func TestChaosOfLeases(t *testing.T) {
	scene(t)
	p := plan{Seed: 1, Nodes: 3, Voters: 3, Until: 40 * time.Second}
	for i := range 3 {
		at := time.Duration(3+12*i) * time.Second
		p.Faults = append(p.Faults, fault{At: at, For: 8 * time.Second, Kind: mute, Node: i}, fault{At: at, For: 8 * time.Second, Kind: deafen, Node: i})
	}
	play(t, p)
}

// A group that is lost with all its homes and made anew, while there is a resource that remembers the first one: whatever the
// second one gives out is above everything that the first one gave out.
func TestChaosMadeAnew(t *testing.T) {
	scene(t)
	w := newWorld(t, t.Context(), plan{Seed: 1, Nodes: 3, Voters: 3, Bare: true})
	t.Cleanup(w.stopAll)
	for _, what := range []string{"the first group", "the group made anew"} {
		before := w.held()
		working, done := context.WithCancel(w.ctx)
		var all sync.WaitGroup
		all.Go(func() { w.keep(working) })
		err := w.await(what+" works", func() error {
			for name, n := range w.held() {
				if n < before[name]+20 {
					return fmt.Errorf("%s has noted %d times that it holds something, and %d times before", name, n, before[name])
				}
			}
			return nil
		})
		done()
		all.Wait()
		w.must(err)
		undo, err := w.dead(w.ctx, w.everybody()...)
		for _, name := range w.everybody() {
			err = errors.Join(err, os.RemoveAll(w.in(name)))
		}
		w.must(errors.Join(err, undo()))
	}
	told, err := w.resource.told(w.ctx)
	w.must(err)
	notes := w.noted()
	w.verdict("stale writes accepted by the resource", told.Wrong)
	w.verdict("claims, locks and fences: one holder at a time, growing tokens", judgeHolds(notes))
	w.verdict("locks: linearizable", judgeHistory("locks", lockModel(), lockHistory(notes), w.picture("locks-anew")))
}

// held counts the notes of each host app that say what it holds.
func (w *world) held() map[string]int {
	count := map[string]int{}
	for name, notes := range w.noted() {
		count[name] = 0
		for _, n := range notes {
			if n.Kind == "hold" {
				count[name]++
			}
		}
	}
	return count
}
