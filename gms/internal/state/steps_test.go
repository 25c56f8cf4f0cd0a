package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// timeLine is what the steps of a recovery say, in short.
func timeLine(r *wire.Recovery) string {
	var list []string
	for _, s := range r.GetSteps() {
		what := strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "KIND_"))
		if s.GetNode() != "" {
			what += " " + s.GetNode()
		}
		list = append(list, what)
	}
	return strings.Join(list, ", ")
}

func TestTheTimeLineOfARecovery(t *testing.T) {
	r := newRig(t)
	for _, n := range []string{"A", "B", "C"} {
		r.open(n+"1", "backup")
	}
	r.close("A1")
	first := r.recovery("backup", "A1")
	r.acquire("backup", "A1")
	r.ok(RunID{}, &wire.NoteQuiesced{Run: runID("A1").Bytes()})
	r.ok(RunID{}, &wire.MoveAppointment{Recovery: refOf(r.recovery("backup", "A1")), Why: "hung"})
	r.acquire("backup", "A1")
	r.release("backup", "A1")
	ended := r.m.Ended()
	got := ended[len(ended)-1].GetRecovery()
	one, two := "B", "C"
	if nodeOfRun(r, first.GetAppointee()) == "C" {
		one, two = two, one
	}
	want := fmt.Sprintf("closed A, appointed %[1]s, raised %[1]s, quiesced A, handed_over %[1]s, appointed %[2]s, raised %[2]s, released %[2]s", one, two)
	if timeLine(got) != want {
		t.Errorf("time line\n%s, want\n%s", timeLine(got), want)
	}
	steps := got.GetSteps()
	for i, s := range steps[1:] {
		if s.GetPosition() < steps[i].GetPosition() {
			t.Errorf("step %d goes back", i+1)
		}
	}
	if steps[4].GetWhy() != "hung" || steps[2].GetToken() == 0 || steps[6].GetToken() <= steps[2].GetToken() {
		t.Errorf("steps %v", steps)
	}
}

func nodeOfRun(r *rig, b []byte) string {
	id, _ := RunIDOf(b)
	run, _ := r.m.Run(id)
	return run.Node()
}

// TestATimeLineIsBounded: a recovery that goes round for ever keeps its beginning and its present.
func TestATimeLineIsBounded(t *testing.T) {
	r := newRig(t)
	for _, n := range []string{"A", "B"} {
		r.open(n+"1", "backup")
	}
	r.close("A1")
	for range 50 {
		x := r.recovery("backup", "A1")
		r.ok(appointee(x), &wire.FailRecovery{Recovery: refOf(x), Unavailable: true, Why: strings.Repeat("é", 300)})
	}
	steps := r.recovery("backup", "A1").GetSteps()
	if len(steps) != MaxSteps || steps[0].GetKind() != wire.RecoveryStep_KIND_CLOSED || steps[MaxSteps-1].GetKind() != wire.RecoveryStep_KIND_APPOINTED {
		t.Errorf("%d steps: %v", len(steps), steps)
	}
	for _, s := range steps {
		if len(s.GetWhy()) > maxWhy {
			t.Errorf("a step says %d bytes", len(s.GetWhy()))
		}
	}
	if _, err := Restore(r.m.Snapshot()); err != nil {
		t.Error(err)
	}
}

func TestRule22_OnlyAClosedRunIsQuiesced(t *testing.T) {
	r := newRig(t)
	id := r.open("A1", "backup")
	r.open("B1", "backup")
	r.want(wire.Code_CODE_BUSY, RunID{}, &wire.NoteQuiesced{Run: id.Bytes()})
	r.want(wire.Code_CODE_NOT_FOUND, RunID{}, &wire.NoteQuiesced{Run: runID("Z1").Bytes()})
	r.close("A1")
	r.ok(RunID{}, &wire.NoteQuiesced{Run: id.Bytes()})
	r.want(wire.Code_CODE_NO_CHANGE, RunID{}, &wire.NoteQuiesced{Run: id.Bytes()})
	if run, _ := r.m.Run(id); !run.Quiesced {
		t.Error("it is not on record")
	}
	m, err := Restore(r.m.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	if run, _ := m.Run(id); !run.Quiesced {
		t.Error("a snapshot forgets it")
	}
}

// TestAnOpeningBringsTheHostsOrder: also a run that a newer one closes is recovered in the order that the host chose.
func TestAnOpeningBringsTheHostsOrder(t *testing.T) {
	for _, want := range []string{"B1", "C1", "D1"} {
		r := newRig(t)
		for _, n := range []string{"A", "B", "C", "D"} {
			r.open(n+"1", "backup")
		}
		open := opening(r, "A", "A2")
		open.Components = []*wire.Component{{Name: "backup"}}
		open.Orders = []*wire.CandidateOrder{{Component: "backup", Runs: [][]byte{runID(want).Bytes()}}}
		r.ok(RunID{}, open)
		if got := appointee(r.recovery("backup", "A1")); got != runID(want) {
			t.Errorf("appointed %v, want %s", got, want)
		}
		if run, _ := r.m.Run(runID("A2")); run.Open.GetOrders() != nil {
			t.Error("the order is kept with a run that it does not concern")
		}
	}
}
