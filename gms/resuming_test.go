package gms

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// jump installs the state of a group that is ahead.
func (h *hearing) jump(ahead *looseGroup) {
	h.t.Helper()
	if err := h.rep.Restore(bytes.NewReader(ahead.snapshot())); err != nil {
		h.t.Fatal(err)
	}
	h.index = ahead.index
}

// PROTOCOL.md 7: after a snapshot the signals go on from the view seen last, by the views that the snapshot has.
func TestRule07_SignalsGoOnAfterASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := newLooseGroup(t)
		ahead.settle()
		h := newHearing(t)
		h.settle()
		_, before := h.heard()
		second := ahead.epochIn(2)
		ahead.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED))
		ahead.must(openCommand(4, "n4", 0))
		ahead.must(closeCommand(4, "n4", wire.Evidence_EVIDENCE_OPERATOR))
		ahead.must(openCommand(5, "n2", second))
		ahead.must(&wire.Command{Run: runOf(5).Bytes(), Op: &wire.Command_SetReady{SetReady: &wire.SetReady{Ready: true}}})
		ahead.must(lead("n3", 4))
		h.jump(ahead)
		f := h.expect("failure n2, join n4, failure n4, join n2, joined-and-ready n2, group-leadership n3")
		last := before[len(before)-1].View.Version
		for i, x := range f {
			if x.Gap || x.View.Version < last || i < 4 && x.PreviousView.Version >= x.View.Version {
				t.Errorf("%s of %s: gap %v, view %d after %d", x.Kind, x.Member.Node, x.Gap, x.View.Version, x.PreviousView.Version)
			}
			last = x.View.Version
		}
		if f[0].Evidence != signals.Lapsed || f[2].Evidence != signals.Operator {
			t.Errorf("evidence %q, %q", f[0].Evidence, f[2].Evidence)
		}
		h.must(closeCommand(3, "n3", wire.Evidence_EVIDENCE_LAPSED))
		x := h.expect("failure n3")[0]
		if len(x.PreviousView.Members) != 3 || len(x.View.Members) != 2 || x.View.Version <= last {
			t.Errorf("views %+v, %+v", x.PreviousView, x.View)
		}
	})
}

// PROTOCOL.md 7: who was away for more than 1,000 views gets one gap mark.
func TestRule07_OneGapMarkForWhoWasAwayTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := newLooseGroup(t)
		ahead.settle()
		h := newHearing(t)
		h.settle()
		_, before := h.heard()
		prev := uint64(0)
		for i := range 600 {
			run := []byte{0: 4, 1: byte(i), 2: byte(i >> 8), 15: 4}
			open, closing := openCommand(4, "n4", prev), closeCommand(4, "n4", wire.Evidence_EVIDENCE_LAPSED)
			open.Run, open.GetOpenRun().Run, closing.GetCloseRun().Run = run, run, run
			prev = ahead.must(open)[0].GetPosition()
			ahead.must(closing)
		}
		h.jump(ahead)
		_, f := h.heard()
		gaps := 0
		for _, x := range f {
			if x.Gap {
				gaps++
			}
		}
		if gaps != 1 || !f[0].Gap || len(f) != 1000 {
			t.Errorf("%d signals with %d gap marks, the first %v", len(f), gaps, f[0].Gap)
		}
		seen := before[len(before)-1].View.Version
		views, gap := h.ViewsSince(seen)
		if !gap || len(views) != 1000 {
			t.Errorf("%d views since %d, gap %v", len(views), seen, gap)
		}
		views, gap = h.ViewsSince(views[989].Version)
		if gap || len(views) != 10 || len(h.Views()) != 1000 {
			t.Errorf("%d views since one that is kept, gap %v", len(views), gap)
		}
	})
}

// A snapshot in which the own run is closed tells so, and of nothing after it.
func TestASnapshotThatClosesTheOwnRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := newLooseGroup(t)
		ahead.settle()
		h := newHearing(t)
		h.settle()
		_, _ = h.heard()
		first := ahead.epochIn(1)
		ahead.must(closeCommand(1, "n1", wire.Evidence_EVIDENCE_LAPSED))
		ahead.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED))
		ahead.must(lead("n3", 2))
		h.jump(ahead)
		h.expect("failure n1")
		ahead.must(openCommand(9, "n1", first))
		h.setRun(runOf(9))
		h.jump(ahead)
		h.expect("join n3, join n1, group-leadership n3")
	})
}

// A process that is started again goes on after the view that its host has handled.
func TestRule07_SignalsGoOnAfterTheViewThatTheHostHandled(t *testing.T) {
	for name, c := range map[string]struct {
		from func(g *looseGroup) uint64
		want string
		gap  bool
	}{
		"known":   {func(g *looseGroup) uint64 { return g.epochIn(3) }, "failure n1, failure n2, join n4, join n1, group-leadership n4", false},
		"unknown": {func(*looseGroup) uint64 { return 7 }, "join n3, join n4, join n1, group-leadership n4", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHearing(t)
				h.settle()
				from, prev := c.from(h.looseGroup), h.epochIn(1)
				h.setRun(runOf(9)) // the process is another one
				h.must(closeCommand(1, "n1", wire.Evidence_EVIDENCE_LAPSED))
				h.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED))
				h.must(openCommand(4, "n4", 0))
				h.must(lead("n4", 2))
				h.must(openCommand(9, "n1", prev))
				h.signalled.from = from
				f := h.expect(c.want)
				if f[0].Gap != c.gap || f[1].Gap {
					t.Errorf("gap marks %v, %v", f[0].Gap, f[1].Gap)
				}
			})
		})
	}
}

func lead(node string, term uint64) *wire.Command {
	return &wire.Command{Op: &wire.Command_Lead{Lead: &wire.Lead{Node: node, Term: term}}}
}

// Fault 12 of the original: hundreds of leadership signals. Here one for each change, and one at the begin.
func TestOneSignalPerChangeOfLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		h.must(formCommand())
		h.must(lead("n1", 2))
		h.expect("")
		h.must(openCommand(1, "n1", 0))
		if f := h.expect("join n1, group-leadership n1"); f[1].Member.Run != runOf(1).String() {
			t.Errorf("facts %+v", f[1])
		}
		h.must(openCommand(2, "n2", 0))
		h.must(lead("n1", 3)) // elected again
		h.expect("join n2")
		h.must(lead("n2", 5))
		h.apply(lead("n1", 4)) // late
		if f := h.expect("group-leadership n2"); f[0].Member.Run != runOf(2).String() {
			t.Errorf("facts %+v", f[0])
		}
		h.must(lead("n7", 6)) // between two runs
		h.expect("group-leadership n7")
	})
}

// Fault 14 of the original: the argument of a shutdown was ignored.
func TestGroupAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		h.settle()
		_, _ = h.heard()
		say := func(k wire.AnnounceGroup_Kind, p wire.AnnounceGroup_Phase) {
			h.must(&wire.Command{Run: runOf(2).Bytes(), Op: &wire.Command_AnnounceGroup{AnnounceGroup: &wire.AnnounceGroup{Kind: k, Phase: p}}})
		}
		say(wire.AnnounceGroup_KIND_STARTUP, wire.AnnounceGroup_PHASE_INITIATED)
		f := h.expect("group-startup n2")[0]
		if f.Phase != signals.PhaseInitiated || !f.View.GroupStarting || f.PreviousView.GroupStarting {
			t.Errorf("facts %+v", f)
		}
		say(wire.AnnounceGroup_KIND_STARTUP, wire.AnnounceGroup_PHASE_COMPLETED)
		if f := h.expect("group-startup n2")[0]; f.Phase != signals.PhaseCompleted || f.View.GroupStarting {
			t.Errorf("facts %+v", f)
		}
		say(wire.AnnounceGroup_KIND_SHUTDOWN, wire.AnnounceGroup_PHASE_INITIATED)
		h.expect("group-shutdown n2")
		if !h.IsGroupBeingShutdown() {
			t.Error("the shutdown is not known")
		}
		for _, n := range []byte{3, 2} {
			node := fmt.Sprintf("n%d", n)
			left := closeCommand(n, node, wire.Evidence_EVIDENCE_LEFT)
			left.Run = runOf(n).Bytes()
			h.must(left)
			if f := h.expect("planned-shutdown " + node)[0]; f.Shutdown != signals.ShutdownGroup || !f.View.GroupStopping {
				t.Errorf("facts %+v", f)
			}
		}
	})
}

func TestAnnouncementsOfNoPhaseAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		if err := g.AnnounceGroupStartup(t.Context(), "soon"); err == nil {
			t.Error("accepted")
		}
		if err := g.AnnounceGroupShutdown(t.Context(), ""); err == nil {
			t.Error("accepted")
		}
	})
}

// The alive-and-ready windows: each of the three signals shows who was ready before, and who is after.
func TestReadyViewsOfSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		h.settle()
		_, _ = h.heard()
		check := func(f signals.Facts, before, after string) {
			t.Helper()
			if b, a := viewNames(f.PreviousReadyView), viewNames(f.ReadyView); b != before || a != after {
				t.Errorf("%s: ready %q, then %q; want %q, then %q", f.Kind, b, a, before, after)
			}
		}
		ready := func(n byte, is bool) {
			h.must(&wire.Command{Run: runOf(n).Bytes(), Op: &wire.Command_SetReady{SetReady: &wire.SetReady{Ready: is}}})
		}
		ready(2, true)
		check(h.expect("joined-and-ready n2")[0], "", "n2")
		ready(3, true)
		check(h.expect("joined-and-ready n3")[0], "n2", "n2 n3")
		ready(3, false)
		h.expect("")
		h.must(openCommand(4, "n2", h.epochIn(2))) // a restart: not ready again
		f := h.expect("failure n2, join n2")
		check(f[0], "n2", "")
		ready(4, true)
		check(h.expect("joined-and-ready n2")[0], "", "n2")
		left := closeCommand(4, "n2", wire.Evidence_EVIDENCE_LEFT)
		left.Run = runOf(4).Bytes()
		h.must(left)
		check(h.expect("planned-shutdown n2")[0], "n2", "")
		var windows []string
		for _, v := range h.ReadyViews() {
			windows = append(windows, "["+viewNames(v)+"]")
		}
		if got := fmt.Sprint(windows); got != "[[n2] [n2 n3] [n2] [] [n2] []]" {
			t.Errorf("windows %s", got)
		}
	})
}

func TestStartTimesComeFromTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		h.must(formCommand())
		before := time.Now().Truncate(time.Millisecond)
		b := newBatcher(func(_ context.Context, data []byte) ([]*wire.Result, uint64, error) {
			h.index++
			return h.rep.Apply(h.index, data).([]*wire.Result), h.index, nil
		}, firstProtocol)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.run(ctx) })
		if _, _, err := b.submit(ctx, []*wire.Command{openCommand(1, "n1", 0)}); err != nil {
			t.Fatal(err)
		}
		cancel()
		wg.Wait()
		f := h.expect("join n1")[0]
		if f.StartTime != f.Member.StartTime || !f.StartTime.Equal(before) {
			t.Errorf("started %v, want %v", f.StartTime, before)
		}
	})
}

// QuorumLost and QuorumRegained come once each, and the return also when another run stands by then.
func TestQuorumSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		say := func(lost bool) { h.signalled.quorum.set(lost); h.signalled.tellQuorum() }
		say(true)
		h.expect("") // no run stands
		h.settle()
		_, _ = h.heard()
		say(true)
		say(true)
		h.expect("quorum-lost n1")
		h.must(closeCommand(1, "n1", wire.Evidence_EVIDENCE_LAPSED))
		h.expect("failure n1")
		say(false)
		say(false)
		h.expect("quorum-regained n1")
	})
}

func TestTheQuorumIsLostAfterHalfATTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Node: "me", Timing: Timing{TTL: ttl}, Clock: newBubbleClock()}.withDefaults()
		x := newSession([16]byte{7}, cfg, newFakeMembers("n2", "n2"), nil)
		var mu sync.Mutex
		var said []bool
		x.quorum = func(lost bool) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, lost)
		}
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() { x.watchDeadlines(ctx) })
		check := func(when, want string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if got := fmt.Sprint(said); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		renew := func() { x.acknowledged(ack(x.renewal())) }
		renew()
		pass(x.ttl/2 - time.Millisecond)
		check("before half a TTL", "[]")
		renew()
		pass(x.ttl/2 + time.Millisecond)
		check("after half a TTL", "[true]")
		pass(2 * x.ttl)
		check("long after", "[true]")
		renew()
		renew()
		check("after an answer", "[true false]")
		cancel()
		wg.Wait()
	})
}
