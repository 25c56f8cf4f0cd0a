package gms

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// hearing is a loose group whose signals are heard.
type hearing struct {
	*looseGroup
	mu   sync.Mutex
	list []signals.Facts
}

func newHearing(t *testing.T) *hearing {
	h := &hearing{looseGroup: newLooseGroup(t)}
	err := h.router.AddActionFactory(signals.Handle(func(_ context.Context, s signals.Signal) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.list = append(h.list, s.Facts())
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.router.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.router.Stop)
	return h
}

// heard delivers what the log brought and gives it as "kind node, …", and the facts.
func (h *hearing) heard() (string, []signals.Facts) {
	feed, _ := h.rep.take()
	for _, f := range feed {
		h.signalled.entry(f)
	}
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.list
	h.list = nil
	var words []string
	for _, f := range list {
		words = append(words, fmt.Sprintf("%s %s", f.Kind, f.Member.Node))
	}
	return strings.Join(words, ", "), list
}

func (h *hearing) expect(want string) []signals.Facts {
	h.t.Helper()
	got, facts := h.heard()
	if got != want {
		h.t.Errorf("signals %q, want %q", got, want)
	}
	return facts
}

func TestSignalsBeginWithTheOwnRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		h.must(formCommand())
		h.must(openCommand(2, "n2", 0))
		h.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED))
		h.must(openCommand(3, "n3", 0))
		h.expect("")
		own := h.must(openCommand(1, "n1", 0))[0].GetPosition()
		facts := h.expect("join n3, join n1") // the one that is here already, and the own one
		for _, f := range facts {
			if f.Position != own || len(f.View.Members) != 2 {
				t.Errorf("%s of %s at %d with view %+v", f.Kind, f.Member.Node, f.Position, f.View)
			}
		}
	})
}

// The order of changes in one entry is kept, and nobody is told of twice.
func TestSignalsOfOneEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		h.must(formCommand())
		h.must(openCommand(2, "n2", 0), openCommand(1, "n1", 0), openCommand(3, "n3", 0))
		h.expect("join n2, join n1, join n3")
	})
}

func TestEachChangeGivesItsSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		h.settle()
		h.expect("join n1, join n2, join n3")

		h.must(&wire.Command{Op: &wire.Command_Suspect{Suspect: &wire.Suspect{Run: runOf(2).Bytes(), Why: "late"}}})
		if f := h.expect("failure-suspected n2"); f[0].Why != "late" || f[0].View.Version != f[0].PreviousView.Version {
			t.Errorf("facts %+v", f[0])
		}
		h.must(&wire.Command{Op: &wire.Command_Suspect{Suspect: &wire.Suspect{Run: runOf(2).Bytes(), Withdrawn: true}}})
		h.expect("failure-no-longer-suspected n2")

		h.must(&wire.Command{Run: runOf(3).Bytes(), Op: &wire.Command_SetReady{SetReady: &wire.SetReady{Ready: true}}})
		f := h.expect("joined-and-ready n3")
		if m, _ := memberIn(f[0].View, "n3"); !m.Ready {
			t.Error("the view does not show the member ready")
		}
		if m, _ := memberIn(f[0].PreviousView, "n3"); m.Ready {
			t.Error("the previous view shows the member ready")
		}
		h.must(&wire.Command{Run: runOf(3).Bytes(), Op: &wire.Command_SetReady{SetReady: &wire.SetReady{}}})
		h.expect("")

		h.must(openCommand(4, "n2", h.epochIn(2)))
		f = h.expect("failure n2, join n2")
		if f[0].Evidence != signals.NewerRun || f[0].Member.Run != runOf(2).String() || !f[1].Rejoin || f[1].Member.Run != runOf(4).String() {
			t.Errorf("facts %+v, %+v", f[0], f[1])
		}
		if len(f[0].View.Members) != 3 || f[0].PreviousView.Version >= f[0].View.Version {
			t.Errorf("views %+v, %+v", f[0].View, f[0].PreviousView)
		}

		left := closeCommand(3, "n3", wire.Evidence_EVIDENCE_LEFT)
		left.Run = runOf(3).Bytes()
		h.must(left)
		if f := h.expect("planned-shutdown n3"); f[0].Shutdown != signals.ShutdownInstance || f[0].Evidence != signals.Left {
			t.Errorf("facts %+v", f[0])
		}
	})
}

func memberIn(v signals.View, node string) (signals.Member, bool) {
	for _, m := range v.Members {
		if m.Node == node {
			return m, true
		}
	}
	return signals.Member{}, false
}

// A signal shows the view of its position, also when the replica is far ahead by the time it is made.
func TestSignalsShowTheViewOfTheirPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		h.settle()
		h.must(&wire.Command{Op: &wire.Command_Suspect{Suspect: &wire.Suspect{Run: runOf(3).Bytes(), Why: "late"}}})
		h.must(closeCommand(3, "n3", wire.Evidence_EVIDENCE_LAPSED))
		h.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED))
		facts := h.expect("join n1, join n2, join n3, failure-suspected n3, failure n3, failure n2")
		var sizes []int
		var last uint64
		for _, f := range facts {
			sizes = append(sizes, len(f.View.Members))
			if f.View.Version < last || f.View.Version > f.Position {
				t.Errorf("%s at %d shows view %d after %d", f.Kind, f.Position, f.View.Version, last)
			}
			last = f.View.Version
		}
		if fmt.Sprint(sizes) != "[1 2 3 3 2 1]" {
			t.Errorf("members in the views: %v", sizes)
		}
	})
}

// Details of a closed run stay readable in what tells of its end.
func TestTheDeadAreShownWithTheirDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		h.must(formCommand())
		h.must(openCommand(1, "n1", 0))
		c := openCommand(2, "n2", 0, "c", "d")
		c.GetOpenRun().Details = map[string][]byte{"rack": []byte("7")}
		h.must(c)
		_, _ = h.heard()
		h.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_REFUSED))
		f := h.expect("failure n2")[0]
		if string(f.Member.Details["rack"]) != "7" || len(f.Member.Components) != 2 || f.Why != "test" {
			t.Errorf("facts %+v", f)
		}
		if m, ok := memberIn(f.PreviousView, "n2"); !ok || string(m.Details["rack"]) != "7" {
			t.Errorf("previous view %+v", f.PreviousView)
		}
	})
}

// The own end is the last signal of a run; the next run begins anew, and what lies between is not told.
func TestSignalsEndWithTheOwnRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		h.settle()
		_, _ = h.heard()
		h.must(closeCommand(1, "n1", wire.Evidence_EVIDENCE_LAPSED))
		h.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED))
		h.setRun(runOf(9))
		h.expect("failure n1")
		var prev uint64
		h.rep.read(func(m *state.Machine) { n, _ := m.Node("n1"); prev = n.GetLastEpoch() })
		h.must(openCommand(9, "n1", prev))
		if f := h.expect("join n3, join n1"); !f[1].Rejoin {
			t.Errorf("facts %+v", f[1])
		}
	})
}
