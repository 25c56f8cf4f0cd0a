package state

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestSuspicionComesAndGoes(t *testing.T) {
	r := newRig(t)
	a := r.open("A1")
	r.ok(RunID{}, &wire.Suspect{Run: a.Bytes(), Why: "late"})
	if got := changeOf[SuspectedChanged](r); !got.Run.Suspected || got.Why != "late" {
		t.Errorf("suspicion shows as %+v", got)
	}
	r.want(wire.Code_CODE_NO_CHANGE, RunID{}, &wire.Suspect{Run: a.Bytes()})
	r.ok(RunID{}, &wire.Suspect{Run: a.Bytes(), Withdrawn: true})
	if mustRun(r, "A1").Suspected {
		t.Error("the suspicion stays after it was withdrawn")
	}
	r.close("A1")
	r.want(wire.Code_CODE_RUN_NOT_OPEN, RunID{}, &wire.Suspect{Run: a.Bytes()})
}

func TestReadyIsTheRunsOwn(t *testing.T) {
	r := newRig(t)
	a := r.open("A1")
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.SetReady{Ready: true})
	r.ok(a, &wire.SetReady{Ready: true})
	if !changeOf[ReadyChanged](r).Run.Ready || !mustRun(r, "A1").Ready {
		t.Error("the run is not ready")
	}
	r.want(wire.Code_CODE_NO_CHANGE, a, &wire.SetReady{Ready: true})
}

func TestRegisterComponent(t *testing.T) {
	r := newRig(t)
	a := r.open("A1")
	kept := mustRun(r, "A1")
	r.ok(a, &wire.RegisterComponent{Component: &wire.Component{Name: "backup"}})
	if kept.Registered("backup") || !mustRun(r, "A1").Registered("backup") {
		t.Error("a component was not registered, or a value that was handed out has changed")
	}
	r.want(wire.Code_CODE_NO_CHANGE, a, &wire.RegisterComponent{Component: &wire.Component{Name: "backup"}})
	r.want(wire.Code_CODE_INVALID, a, &wire.RegisterComponent{Component: &wire.Component{Name: "backup", Exclusion: wire.Exclusion_EXCLUSION_LEASE}})
	r.want(wire.Code_CODE_INVALID, a, &wire.RegisterComponent{})
	for i := 1; i < MaxComponents; i++ {
		r.ok(a, &wire.RegisterComponent{Component: &wire.Component{Name: strings.Repeat("x", i)}})
	}
	r.want(wire.Code_CODE_INVALID, a, &wire.RegisterComponent{Component: &wire.Component{Name: "one too many"}})
}

func TestPositionsOfHomesOnlyRise(t *testing.T) {
	r := newRig(t)
	r.open("A1")
	note := func(home string, index uint64) *wire.NotePositions {
		return &wire.NotePositions{Positions: []*wire.HomePosition{{Node: "A", Home: id16(home), Index: index}}}
	}
	r.ok(RunID{}, note("home A", 2))
	r.want(wire.Code_CODE_NO_CHANGE, RunID{}, note("home A", 1))
	r.want(wire.Code_CODE_NO_CHANGE, RunID{}, note("another", 2))
	r.want(wire.Code_CODE_NO_CHANGE, RunID{}, note("home A", 1000)) // more than the log has
	if n, _ := r.m.Node("A"); n.GetPosition() != 2 {
		t.Errorf("position %d, want 2", n.GetPosition())
	}
}

func TestForgetNode(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	r.want(wire.Code_CODE_BUSY, RunID{}, &wire.ForgetNode{Node: "A"})
	r.close("A1")
	r.want(wire.Code_CODE_BUSY, RunID{}, &wire.ForgetNode{Node: "A"})
	r.ok(RunID{}, &wire.DropRecovery{Component: "backup", Run: runID("A1").Bytes()})
	r.ok(RunID{}, &wire.ForgetNode{Node: "A"})
	if _, known := r.m.Node("A"); known || changeOf[NodeForgotten](r).Node != "A" {
		t.Error("the node is not forgotten")
	}
	r.want(wire.Code_CODE_NOT_FOUND, RunID{}, &wire.ForgetNode{Node: "A"})
	r.want(wire.Code_CODE_NOT_FOUND, RunID{}, &wire.ReplaceHome{Node: "A"})
	r.open("A2")
}

func TestOpenRunIsBounded(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("x", MaxName+1)
	for name, spoil := range map[string]func(*wire.OpenRun){
		"no node":            func(o *wire.OpenRun) { o.Node = "" },
		"long node":          func(o *wire.OpenRun) { o.Node = long },
		"node is no text":    func(o *wire.OpenRun) { o.Node = "\xff" },
		"short run":          func(o *wire.OpenRun) { o.Run = o.Run[:15] },
		"zero run":           func(o *wire.OpenRun) { o.Run = make([]byte, 16) },
		"no home":            func(o *wire.OpenRun) { o.Home = nil },
		"short key":          func(o *wire.OpenRun) { o.NodeKey = o.NodeKey[:31] },
		"short warden key":   func(o *wire.OpenRun) { o.WardenKey = o.NodeKey[:31] },
		"no role":            func(o *wire.OpenRun) { o.Role = 0 },
		"unknown role":       func(o *wire.OpenRun) { o.Role = 9 },
		"long address":       func(o *wire.OpenRun) { o.GossipAddr = long },
		"component twice":    func(o *wire.OpenRun) { o.Components = []*wire.Component{{Name: "a"}, {Name: "a"}} },
		"too many":           func(o *wire.OpenRun) { o.Components = make([]*wire.Component, MaxComponents+1) },
		"unknown selector":   func(o *wire.OpenRun) { o.Components = []*wire.Component{{Name: "a", Selector: 9}} },
		"too much to say":    func(o *wire.OpenRun) { o.Details = map[string][]byte{"a": make([]byte, MaxDetails)} },
		"detail is no text":  func(o *wire.OpenRun) { o.Details = map[string][]byte{"\xff": nil} },
		"address is no text": func(o *wire.OpenRun) { o.ClusterAddr = "\xff" },
	} {
		o := opening(r, "A", "A1")
		spoil(o)
		if got := r.do(RunID{}, o); got.GetCode() != wire.Code_CODE_INVALID {
			t.Errorf("%s: got %v, want CODE_INVALID", name, got)
		}
	}
}
