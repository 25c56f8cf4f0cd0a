package gmstest

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// Each kind of signal is raised in a whole group, by what it stands for.
func TestEveryKindOfSignal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		var messages atomic.Int32
		w := Cluster(t, 5, a.option(), WithApp(func(n *Node) (func(), error) {
			return nil, n.Router.AddMessageFactory("talk", signals.Handle(func(_ context.Context, s signals.Signal) error {
				if s.Kind() == signals.MessageReceived {
					messages.Add(1)
				}
				return nil
			}))
		}))
		awaitVoters(w, 3)
		watcher := w.Others(w.Leader())[0]
		n := w.Node(watcher)
		hears := func(k signals.Kind) {
			t.Helper()
			w.Await(string(k), func() bool { return len(a.signalsOf(watcher, k)) > 0 })
		}
		must(t, n.Group.AnnounceGroupStartup(t.Context(), signals.PhaseInitiated))
		hears(signals.GroupStartup)
		hears(signals.JoinNotification)
		must(t, n.Group.AnnounceGroupStartup(t.Context(), signals.PhaseCompleted))
		must(t, n.Group.SetReady(t.Context(), true))
		hears(signals.JoinedAndReadyNotification)
		hears(signals.GroupLeadershipNotification)
		must(t, w.Node(w.Leader()).Group.Send(t.Context(), "talk", []byte("hello"), watcher))
		w.Await("the message", func() bool { return messages.Load() == 1 })

		rest := w.Others(watcher, w.Leader())
		w.Pause(rest[0])
		hears(signals.FailureSuspected)
		w.Resume(rest[0])
		hears(signals.FailureNoLongerSuspected)
		w.Kill(rest[0])
		hears(signals.FailureNotification)
		awaitRecovered(w)
		if len(a.done(rest[0])) != 1 { // the action of FailureRecovery
			t.Errorf("%s was recovered %d times", rest[0], len(a.done(rest[0])))
		}
		w.Stop(rest[1])
		hears(signals.PlannedShutdown)
		awaitVoters(w, 3)
		Advance(2 * time.Second)

		others := w.Others(watcher)
		w.Kill(others...)
		hears(signals.QuorumLost)
		for _, name := range others {
			w.Start(name)
		}
		hears(signals.QuorumRegained)
		w.AwaitView(append(others, watcher)...)
		must(t, n.Group.AnnounceGroupShutdown(t.Context(), signals.PhaseInitiated))
		hears(signals.GroupShutdown)
		for _, k := range signals.Kinds() {
			if k != signals.FailureRecovery && k != signals.MessageReceived && !slices.ContainsFunc(a.signalsOf(watcher), func(f signals.Facts) bool { return f.Kind == k }) {
				t.Errorf("%s was not heard", k)
			}
		}
	})
}
