package state

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestTheLogKnowsWhoLeads(t *testing.T) {
	r := newRig(t)
	r.ok(RunID{}, &wire.Lead{Node: "A", Term: 3})
	if c := changeOf[LeaderChanged](r); c.Node != "A" || c.Term != 3 {
		t.Errorf("change %+v", c)
	}
	r.want(wire.Code_CODE_NO_CHANGE, RunID{}, &wire.Lead{Node: "A", Term: 3})
	r.ok(RunID{}, &wire.Lead{Node: "A", Term: 5}) // elected again: no change of leaders
	if len(r.changes) != 0 {
		t.Errorf("changes %+v", r.changes)
	}
	r.want(wire.Code_CODE_STALE, RunID{}, &wire.Lead{Node: "B", Term: 4})
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.Lead{Term: 9})
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.Lead{Node: "B"})
	r.ok(RunID{}, &wire.Lead{Node: "B", Term: 6})
	if node, term := r.m.Leader(); node != "B" || term != 6 {
		t.Errorf("%s leads in %d", node, term)
	}
}

// PROTOCOL.md 6: what a leader found out counts for nothing once a later one is known.
func TestAnEarlierLeadersWordChangesNothing(t *testing.T) {
	r := newRig(t)
	a := r.open("A1")
	r.ok(a, &wire.Lock{Name: "l"})
	l, _ := r.m.Lock("l")
	r.ok(RunID{}, &wire.Lead{Node: "B", Term: 8})
	late := []proto.Message{
		&wire.CloseRun{Node: "A", Run: a.Bytes(), Evidence: wire.Evidence_EVIDENCE_LAPSED},
		&wire.ExpireLock{Name: "l", Token: l.GetToken()},
		&wire.Suspect{Run: a.Bytes()},
	}
	for _, op := range late {
		c := command(RunID{}, op)
		c.Term = 7
		before := proto.Clone(r.m.Snapshot()).(*wire.Snapshot)
		results, changes := r.m.Apply(r.m.Index()+1, entry(c))
		if results[0].GetCode() != wire.Code_CODE_STALE || len(changes) != 0 {
			t.Errorf("%T: %v, %v", op, results[0], changes)
		}
		before.Index++
		if !proto.Equal(before, r.m.Snapshot()) {
			t.Errorf("%T changed the state", op)
		}
	}
	c := command(RunID{}, late[0])
	c.Term = 8
	if results, _ := r.m.Apply(r.m.Index()+1, entry(c)); results[0].GetCode() != wire.Code_CODE_OK {
		t.Errorf("the present leader's closing: %v", results[0])
	}
}

// under says what is announced, as a word.
func under(m *Machine) string {
	var words []string
	if m.Starting() {
		words = append(words, "starting")
	}
	if m.Stopping() {
		words = append(words, "stopping")
	}
	return strings.Join(words, " ")
}

func announce(kind wire.AnnounceGroup_Kind, phase wire.AnnounceGroup_Phase) *wire.AnnounceGroup {
	return &wire.AnnounceGroup{Kind: kind, Phase: phase}
}

func TestAnnouncedStartsAndShutdowns(t *testing.T) {
	const (
		start, stop        = wire.AnnounceGroup_KIND_STARTUP, wire.AnnounceGroup_KIND_SHUTDOWN
		begun, done, wrong = wire.AnnounceGroup_PHASE_INITIATED, wire.AnnounceGroup_PHASE_COMPLETED, wire.AnnounceGroup_PHASE_FAILED
	)
	r := newRig(t)
	a := r.open("A1")
	r.open("B1")
	for i, step := range []struct {
		kind  wire.AnnounceGroup_Kind
		phase wire.AnnounceGroup_Phase
		want  string
	}{
		{start, begun, "starting"}, {start, done, ""},
		{start, begun, "starting"}, {start, wrong, ""},
		{stop, begun, "stopping"}, {stop, wrong, ""},
		{start, done, ""}, {stop, wrong, ""}, // of what is not under way
		{start, begun, "starting"}, {stop, begun, "stopping"}, {start, done, "stopping"}, {stop, done, "stopping"},
		{start, begun, "starting"}, {stop, begun, "stopping"},
	} {
		r.ok(a, announce(step.kind, step.phase))
		c := changeOf[GroupAnnounced](r)
		if got := under(r.m); got != step.want || c.Starting != r.m.Starting() || c.Stopping != r.m.Stopping() || c.Run.ID != a {
			t.Errorf("step %d: %q, change %+v, want %q", i, got, c, step.want)
		}
	}
	r.want(wire.Code_CODE_INVALID, a, announce(0, begun))
	r.want(wire.Code_CODE_INVALID, a, announce(start, 0))
	r.want(wire.Code_CODE_INVALID, RunID{}, announce(start, begun))

	// A run that leaves, and one that dies, know that the group is being shut down; so does who comes in between.
	r.ok(a, &wire.CloseRun{Node: "A", Run: a.Bytes(), Evidence: wire.Evidence_EVIDENCE_LEFT})
	if !changeOf[RunClosed](r).GroupShutdown || !r.m.View().Stopping {
		t.Error("the leaver does not know of the shutdown")
	}
	r.open("A2")
	r.close("B1")
	if !changeOf[RunClosed](r).GroupShutdown {
		t.Error("the last does not know of the shutdown")
	}
	// Nobody is left that was there when it was announced: it is over.
	if got := under(r.m); got != "" {
		t.Errorf("after all have left: %q", got)
	}
	r.close("A2")
	if changeOf[RunClosed](r).GroupShutdown {
		t.Error("a later end is taken for part of the shutdown")
	}
}

func readyNames(views []View) string {
	var list []string
	for _, v := range views {
		names := ""
		for _, m := range v.Members {
			names += m.Node
		}
		list = append(list, names)
	}
	return strings.Join(list, " ")
}

// The windows of who is ready: through start, stop, restart, kill, rejoin.
func TestReadyViews(t *testing.T) {
	r := newRig(t)
	ready := func(name string) { r.ok(runID(name), &wire.SetReady{Ready: true}) }
	r.open("A1")
	r.open("B1")
	if len(r.m.ReadyViews()) != 0 {
		t.Errorf("views of nobody: %v", r.m.ReadyViews())
	}
	ready("A1")
	ready("B1")
	c := changeOf[ReadyViewChanged](r)
	if readyNames([]View{c.Previous, c.View}) != "A AB" || c.View.Version != r.m.Position() {
		t.Errorf("change %+v", c)
	}
	r.open("B2") // at once, in the same entry B1 goes
	ready("B2")
	r.ok(runID("A1"), &wire.SetReady{})
	r.close("B2")
	r.close("A1")
	if got := readyNames(r.m.ReadyViews()); got != "A AB A AB B " {
		t.Errorf("views %q", got)
	}
	for i := range maxReadyViews {
		id := r.open(fmt.Sprint("C", i))
		r.ok(id, &wire.SetReady{Ready: true})
	}
	if n := len(r.m.ReadyViews()); n != maxReadyViews {
		t.Errorf("%d views are kept", n)
	}
}

func TestARunKnowsWhenItWasAdmitted(t *testing.T) {
	r := newRig(t)
	e := entry(command(RunID{}, opening(r, "A", "A1")))
	e.Time = 1234
	r.m.Apply(r.m.Index()+1, e)
	if run, _ := r.m.Run(runID("A1")); run.Started != 1234 {
		t.Errorf("run %+v", run)
	}
}
