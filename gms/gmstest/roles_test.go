package gmstest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// roles gives nodes other roles than core.
func roles(of map[string]signals.Role) Option {
	return WithConfig(func(node string, c *gms.Config) {
		if r := of[node]; r != "" {
			c.Role = r
		}
	})
}

// A watchdog's false report gets a living member recovered in 0.17 s. Here the leader asks the member, which answers; a
// report about one that does not answer for other reasons than death has it suspected, and closed only as everybody is.
func TestFault11FalseReportOfAWatchdog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 4, a.option(), roles(map[string]signals.Role{"n4": signals.Watchdog}))
		dog := w.Node("n4").Group
		_, err := w.Node("n2").Group.Claim(t.Context(), "work", "item", 1)
		must(t, err)
		view := dog.View().Version
		for _, name := range []string{"n1", "n2", "n3", "n4"} {
			if err := dog.AnnounceObservedFailure(t.Context(), name, "", "lies"); !errors.Is(err, gms.ErrAlive) {
				t.Errorf("a false report of %s: %v", name, err)
			}
		}
		Advance(time.Minute)
		if v := dog.View().Version; v != view {
			t.Errorf("view %d, before %d", v, view)
		}
		if heard := a.signalsOf("n1", signals.FailureSuspected, signals.FailureNotification); len(heard) > 0 {
			t.Errorf("signals: %+v", heard)
		}
		once(w, a)

		silent := w.Others(w.Leader(), "n4")[0]
		w.Pause(silent) // it does not answer, and it is not dead
		begun := time.Now()
		must(t, dog.AnnounceObservedFailure(t.Context(), silent, "", "it is silent"))
		w.Await("a suspicion", func() bool { return len(a.signalsOf(w.Leader(), signals.FailureSuspected)) > 0 })
		if took := time.Since(begun); took > time.Second {
			t.Errorf("suspected after %v", took)
		}
		Advance(time.Second)
		w.Resume(silent)
		Advance(10 * time.Second)
		once(w, a)
	})
}

// A firewall that rejects all ports between a new leader and a member that all others reach proves nothing: the member's
// renewals come by a detour, and it is suspected for as long, not closed.
func TestRule03_ANewLeaderIsRefusedAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 5, a.option(), WithConfig(func(_ string, c *gms.Config) { c.NoRefused = false }))
		former := w.Leader()
		voters := slices.DeleteFunc([]string{"n1", "n2", "n3"}, func(n string) bool { return n == former })
		w.Reject(voters[0], "n4") // whichever of the two leads next is kept from one
		w.Reject(voters[1], "n5")
		w.Kill(former)
		w.Await("a new leader", func() bool { l := w.Leader(); return l != "" && l != former })
		w.Await("a suspicion", func() bool { return len(a.signalsOf(w.Leader(), signals.FailureSuspected)) > 0 })
		Advance(20 * time.Second)
		for _, name := range append(voters, "n4", "n5") {
			if c := w.observer.closed(name); len(c) > 0 {
				t.Errorf("%s was closed: %v", name, c[0].Evidence)
			}
		}
		w.Heal()
		w.Await("no suspicion", func() bool { return len(a.signalsOf(w.Leader(), signals.FailureNoLongerSuspected)) > 0 })
		Advance(5 * time.Second)
		once(w, a, former)
	})
}

// A true report has a dead member closed at once, by what its host says: here one whose end nobody saw, since its host
// lost its power, so that its session seems to go on, and its lease would last for a minute.
func TestTrueReportOfAWatchdog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 4, a.option(), profile(gms.ProfilePatient), roles(map[string]signals.Role{"n4": signals.Watchdog}))
		dog := w.Node("n4").Group
		victim := w.Others(w.Leader(), "n4")[0]
		m, _ := dog.View().Member(victim)
		w.PowerCycle(victim)
		Advance(100 * time.Millisecond)
		if len(w.observer.closed(victim)) > 0 {
			t.Fatal("its end was seen")
		}
		begun := time.Now()
		must(t, dog.AnnounceObservedFailure(t.Context(), victim, m.Run, "its power is off"))
		w.Await("its closing", func() bool { return len(w.observer.closed(victim)) > 0 })
		if took := time.Since(begun); took > time.Second {
			t.Errorf("closed after %v", took)
		}
		if c := w.observer.closed(victim); len(c) != 1 || c[0].Evidence != wire.Evidence_EVIDENCE_REFUSED {
			t.Errorf("%+v", c)
		}
		must(t, dog.AnnounceObservedFailure(t.Context(), victim, m.Run, "again: it is closed by now"))
		w.AwaitGone(victim)
		awaitRecovered(w)
		once(w, a, victim)
	})
}

// A spectator sees all and recovers nothing; a watchdog reports and sends; a witness votes. None of them is appointed, and
// each is shown with its role.
func TestRoles(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		of := map[string]signals.Role{"n3": signals.Witness, "n4": signals.Spectator, "n5": signals.Watchdog}
		w := Cluster(t, 5, a.option(), roles(of))
		awaitVoters(w, 3)
		must(t, w.Node("n1").Router.AddMessageFactory("talk", signals.Handle(func(_ context.Context, _ signals.Signal) error { return nil })))
		for _, m := range w.Node("n1").Group.Members() {
			want := of[m.Node]
			if want == "" {
				want = signals.Core
			}
			if m.Role != want || m.Voter != (want == signals.Core || want == signals.Witness) || m.Fed == m.Voter {
				t.Errorf("%s: role %s, votes %v, is fed %v", m.Node, m.Role, m.Voter, m.Fed)
			}
		}
		must(t, w.Node("n5").Group.Send(t.Context(), "talk", []byte("hello"), "n1"))
		if _, err := w.Node("n3").Group.Claim(t.Context(), "work", "item", 1); !errors.Is(err, gms.ErrRole) {
			t.Errorf("a witness claims: %v", err)
		}
		w.Kill("n1")
		w.AwaitGone("n1")
		awaitRecovered(w)
		once(w, a, "n1")
		if done := a.done("n1"); len(done) != 1 || done[0].By != "n2" {
			t.Errorf("%+v", done)
		}
		w.Kill("n2") // two of three voters: nothing is closed until one is back
		Advance(10 * time.Second)
		w.Start("n1")
		w.AwaitView("n1", "n3", "n4", "n5")
		awaitRecovered(w)
		if by := recoverers(a); slices.ContainsFunc(by, func(n string) bool { return of[n] != "" }) {
			t.Errorf("recovered by %v", by)
		}
	})
}

func recoverers(a *app) (list []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.actions {
		list = append(list, d.By)
	}
	return list
}
