package state

import (
	"fmt"
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
	position := func() uint64 { n, _ := r.m.Node("A"); return n.GetPosition() }
	if position() != 2 {
		t.Errorf("position %d, want 2", position())
	}
	left := closingOf("A1", wire.Evidence_EVIDENCE_LEFT)
	left.Position = 3 // the leaver's own word
	r.ok(runID("A1"), left)
	if position() != 3 {
		t.Errorf("position %d after the leave, want 3", position())
	}
	r.open("A2")
	left = closingOf("A2", wire.Evidence_EVIDENCE_LEFT)
	left.Position = 1000
	r.ok(runID("A2"), left)
	if position() != 3 {
		t.Errorf("position %d after a leave beyond the log, want 3", position())
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
	r.open("A2") // forgotten, not burnt: it comes back
}

// A home that is replaced is given up: when it comes back beside the new one, or before it, it is refused under any name. As long as a
// run of it is open it is not: that may be a mistake, and the run works.
func TestReplacedHomeIsBurnt(t *testing.T) {
	r := newRig(t)
	r.open("A1")
	r.ok(RunID{}, &wire.ReplaceHome{Node: "A"})
	if len(r.m.Burnt()) != 0 {
		t.Error("the home of an open run is burnt")
	}
	r.close("A1")
	r.ok(RunID{}, &wire.ReplaceHome{Node: "A"})
	r.want(wire.Code_CODE_NO_CHANGE, RunID{}, &wire.ReplaceHome{Node: "A"})
	if n := len(r.m.Burnt()); n != 1 {
		t.Errorf("%d homes are burnt", n)
	}
	r.want(wire.Code_CODE_FORGOTTEN, RunID{}, opening(r, "A", "A2"))
	under := opening(r, "A", "B1")
	under.Node = "B"
	r.want(wire.Code_CODE_FORGOTTEN, RunID{}, under)
	next := opening(r, "A", "A2")
	next.Home, next.NodeKey = id16("another home"), keyOfNode("another")
	r.ok(RunID{}, next)
	if n, _ := r.m.Node("A"); n.GetReplaced() || string(n.GetHome()) != string(id16("another home")) {
		t.Errorf("after the replacement the node is %v", n)
	}
}

// A home that was burnt is not let in again, under no name; another one is, under its node's name, as a newcomer.
func TestForgetNodeForGood(t *testing.T) {
	r := newRig(t)
	r.open("A1")
	r.close("A1")
	r.ok(RunID{}, &wire.ForgetNode{Node: "A", Burn: true})
	if !changeOf[NodeForgotten](r).Burnt || len(r.m.Burnt()) != 1 {
		t.Error("the home is not burnt")
	}
	again := opening(r, "A", "A2")
	if !r.m.IsBurnt(again.GetHome()) {
		t.Error("the home is not on record")
	}
	r.want(wire.Code_CODE_FORGOTTEN, RunID{}, again)
	again.Node = "B"
	r.want(wire.Code_CODE_FORGOTTEN, RunID{}, again)
	again.Node, again.Home = "A", id16("another home")
	r.ok(RunID{}, again)
	r.ok(RunID{}, &wire.CloseRun{Node: "A", Run: again.GetRun(), Evidence: wire.Evidence_EVIDENCE_LEFT})
	for i := range maxBurnt + 3 {
		o := opening(r, "C", fmt.Sprint("C", i))
		o.Home = id16(fmt.Sprint("home ", i))
		r.ok(RunID{}, o)
		r.ok(RunID{}, &wire.CloseRun{Node: "C", Run: o.GetRun(), Evidence: wire.Evidence_EVIDENCE_LEFT})
		r.ok(RunID{}, &wire.ForgetNode{Node: "C", Burn: true})
	}
	if n := len(r.m.Burnt()); n != maxBurnt || r.m.IsBurnt(id16("home 1")) || !r.m.IsBurnt(id16("home 3")) {
		t.Errorf("%d burnt homes are kept", n)
	}
}

// A node is gone from the closing of its last run to the opening of the next.
func TestNodeIsGoneSince(t *testing.T) {
	r := newRig(t)
	r.open("A1")
	gone := func() int64 { n, _ := r.m.Node("A"); return n.GetGone() }
	if gone() != 0 {
		t.Errorf("gone since %d though it stands", gone())
	}
	e := entry(command(RunID{}, &wire.CloseRun{Node: "A", Run: runID("A1").Bytes(), Evidence: wire.Evidence_EVIDENCE_LAPSED}))
	e.Time = 777
	r.m.Apply(r.m.Index()+1, e)
	if gone() != 777 {
		t.Errorf("gone since %d", gone())
	}
	r.open("A2")
	if gone() != 0 {
		t.Errorf("gone since %d though it stands again", gone())
	}
}

// A witness only votes and a watchdog only reports: neither registers a component or claims, and nobody of them recovers.
func TestRolesThatDoNoWork(t *testing.T) {
	for _, role := range []wire.Role{wire.Role_ROLE_WITNESS, wire.Role_ROLE_WATCHDOG} {
		r := newRig(t)
		o := opening(r, "A", "A1")
		o.Role, o.Components = role, []*wire.Component{{Name: "backup"}}
		r.want(wire.Code_CODE_INVALID, RunID{}, o)
		o.Components = nil
		r.ok(RunID{}, o)
		r.want(wire.Code_CODE_INVALID, runID("A1"), &wire.RegisterComponent{Component: &wire.Component{Name: "backup"}})
		r.want(wire.Code_CODE_INVALID, runID("A1"), &wire.Claim{Component: "backup", Item: "one"})
		r.open("B1", "backup")
		r.close("B1")
		if rec, ok := r.m.Recovery("backup", runID("B1")); !ok || rec.GetState() != wire.RecoveryState_RECOVERY_WAITING {
			t.Errorf("%v: the recovery is %v", role, rec)
		}
	}
}

// Details are set and removed while the run stands, are bounded together, and are read after its death.
func TestSetDetail(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	a := runID("A1")
	set := func(key, value string) *wire.SetDetail { return &wire.SetDetail{Key: key, Value: []byte(value)} }
	before, _ := r.m.Run(a)
	r.ok(a, set("log", "/var/tx"))
	if len(before.Open.GetDetails()) != 0 {
		t.Error("what was handed out has changed")
	}
	r.want(wire.Code_CODE_NO_CHANGE, a, set("log", "/var/tx"))
	r.want(wire.Code_CODE_TOO_LARGE, a, set("big", strings.Repeat("x", MaxDetails)))
	r.want(wire.Code_CODE_INVALID, a, set("", "x"))
	r.want(wire.Code_CODE_INVALID, a, set("\xff", "x"))
	r.ok(a, set("other", "1"))
	r.ok(a, &wire.SetDetail{Key: "other", Remove: true})
	r.want(wire.Code_CODE_NO_CHANGE, a, &wire.SetDetail{Key: "other", Remove: true})
	r.close("A1")
	if run, ok := r.m.Run(a); !ok || string(run.Open.GetDetails()["log"]) != "/var/tx" || len(run.Open.GetDetails()) != 1 {
		t.Errorf("after its death: %v", run.Open.GetDetails())
	}
	r.want(wire.Code_CODE_RUN_NOT_OPEN, a, set("log", "/elsewhere"))
}

func TestOpenRunIsBounded(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("x", MaxName+1)
	for name, spoil := range map[string]func(*wire.OpenRun){
		"no node":          func(o *wire.OpenRun) { o.Node = "" },
		"long node":        func(o *wire.OpenRun) { o.Node = long },
		"node is no text":  func(o *wire.OpenRun) { o.Node = "\xff" },
		"long lease":       func(o *wire.OpenRun) { o.TtlMs = MaxLease + 1 },
		"long fence lease": func(o *wire.OpenRun) { o.FenceTtlMs = MaxLease + 1 },
		"short run":        func(o *wire.OpenRun) { o.Run = o.Run[:15] },
		"zero run":         func(o *wire.OpenRun) { o.Run = make([]byte, 16) },
		"no home":          func(o *wire.OpenRun) { o.Home = nil },
		"short key":        func(o *wire.OpenRun) { o.NodeKey = o.NodeKey[:31] },
		"short warden key": func(o *wire.OpenRun) { o.WardenKey = o.NodeKey[:31] },
		"no role":          func(o *wire.OpenRun) { o.Role = 0 },
		"long address":     func(o *wire.OpenRun) { o.GossipAddr = long },
		"component twice":  func(o *wire.OpenRun) { o.Components = []*wire.Component{{Name: "a"}, {Name: "a"}} },
		"too many":         func(o *wire.OpenRun) { o.Components = make([]*wire.Component, MaxComponents+1) },
		"too much to say":  func(o *wire.OpenRun) { o.Details = map[string][]byte{"a": make([]byte, MaxDetails)} },
		"too long in all": func(o *wire.OpenRun) {
			for i := range 2 {
				o.Orders = append(o.Orders, &wire.CandidateOrder{Component: fmt.Sprint(i)})
				for j := range 1000 {
					o.Orders[i].Runs = append(o.Orders[i].Runs, id16(fmt.Sprint(j)))
				}
				o.Orders[i].Component = strings.Repeat("c", MaxName)
			}
			for i := range 62 {
				o.Orders = append(o.Orders, &wire.CandidateOrder{Component: fmt.Sprint("x", i), Runs: o.Orders[0].GetRuns()})
			}
		},
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
