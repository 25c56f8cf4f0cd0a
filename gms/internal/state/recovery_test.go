package state

import (
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

const (
	waiting   = wire.RecoveryState_RECOVERY_WAITING
	appointed = wire.RecoveryState_RECOVERY_APPOINTED
	raised    = wire.RecoveryState_RECOVERY_RAISED
	parked    = wire.RecoveryState_RECOVERY_PARKED
	queued    = wire.RecoveryState_RECOVERY_QUEUED
)

func (r *rig) state(want wire.RecoveryState, component, dead string) *wire.Recovery {
	r.t.Helper()
	rec := r.recovery(component, dead)
	if rec.GetState() != want {
		r.t.Fatalf("the recovery of %s is %v, want %v: %v", dead, rec.GetState(), want, rec)
	}
	return rec
}

// fail reports failures until the appointment has moved.
func (r *rig) fail(component, dead string) {
	r.t.Helper()
	rec := r.recovery(component, dead)
	for range r.m.maxAttempts() {
		r.ok(appointee(rec), &wire.FailRecovery{Recovery: refOf(rec), Why: "no"})
	}
}

func TestRule08_AppointedIsTheFirstThatHasNotTried(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	r.open("B1", "backup")
	r.open("C1", "backup")
	r.close("A1")
	first := appointee(r.state(appointed, "backup", "A1"))
	r.fail("backup", "A1")
	second := appointee(r.state(appointed, "backup", "A1"))
	if first == second {
		t.Fatal("the run that has tried was appointed again")
	}
	r.fail("backup", "A1")
	if changeOf[RecoveryParked](r).Recovery.GetState() != parked {
		t.Error("nobody is left, but it is not parked")
	}
}

func TestRule08_TheDeadRunsNodeIsLastAndStillACandidate(t *testing.T) {
	for _, selector := range []wire.Selector{wire.Selector_SELECTOR_RENDEZVOUS, wire.Selector_SELECTOR_SUCCESSOR} {
		r := newRig(t)
		r.ok(RunID{}, &wire.ChangeSettings{Settings: &wire.Settings{Selector: selector, MaxAttempts: 1}})
		r.open("B1", "backup")
		r.open("A1", "backup")
		c := r.open("C1", "backup")
		r.open("A2", "backup")
		tried := []RunID{}
		for range 3 {
			tried = append(tried, appointee(r.state(appointed, "backup", "A1")))
			r.fail("backup", "A1")
		}
		r.state(parked, "backup", "A1")
		if tried[2] != runID("A2") {
			t.Errorf("%v: the order is %v, want A2 last", selector, tried)
		}
		if selector == wire.Selector_SELECTOR_SUCCESSOR && tried[0] != c {
			t.Errorf("the successor of A1 is C1, but %v was appointed", tried[0])
		}
	}
}

// A component that was registered with a selector of its own is recovered by that one, the others by the group's.
func TestRule08_AComponentMayHaveASelectorOfItsOwn(t *testing.T) {
	r := newRig(t)
	dead := opening(r, "A", "A1", "alone", "spread")
	dead.Components[0].Selector = wire.Selector_SELECTOR_SUCCESSOR
	r.ok(RunID{}, dead)
	successor := r.open("B1", "alone", "spread")
	for _, name := range []string{"C1", "D1", "E1"} {
		r.open(name, "alone", "spread")
	}
	r.close("A1")
	if got := appointee(r.state(appointed, "alone", "A1")); got != successor {
		t.Errorf("%v was appointed, the next that joined is %v", got, successor)
	}
	if got := appointee(r.state(appointed, "spread", "A1")); got == successor {
		t.Error("both went by join order: the group spreads, and here to another")
	}
}

func TestRule08_WhoDoesNotQualifyIsNoCandidate(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	r.open("B1", "verify") // has not registered it
	spectator := opening(r, "S", "S1", "backup")
	spectator.Role = wire.Role_ROLE_SPECTATOR
	r.ok(RunID{}, spectator)
	r.open("C1", "backup")
	r.close("C1")
	r.close("A1")
	r.state(waiting, "backup", "A1")
}

func TestRule08_AWaitingOrParkedRecoveryWakesForWhoHasNotTriedIt(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	r.close("A1")
	r.state(waiting, "backup", "A1")
	if changeOf[RecoveryWaiting](r).Recovery.GetComponent() != "backup" {
		t.Error("that it waits is no change")
	}
	b := r.open("B1")
	r.state(waiting, "backup", "A1")
	r.ok(b, &wire.RegisterComponent{Component: &wire.Component{Name: "backup"}})
	if appointee(r.state(appointed, "backup", "A1")) != b {
		t.Fatal("who registers the component is not appointed")
	}
	r.fail("backup", "A1")
	r.state(parked, "backup", "A1")
	r.open("C1", "verify")
	r.state(parked, "backup", "A1")
	d := r.open("D1", "backup")
	if appointee(r.state(appointed, "backup", "A1")) != d {
		t.Fatal("the parked recovery has not woken")
	}
}

func TestRule08_AHostsOwnOrderGoesFirst(t *testing.T) {
	for _, want := range []string{"B1", "C1", "D1"} {
		r := newRig(t)
		for _, name := range []string{"A1", "B1", "C1", "D1", "A2"} {
			if name != "A2" {
				r.open(name, "backup")
			}
		}
		c := closingOf("A1", wire.Evidence_EVIDENCE_REFUSED)
		c.Orders = []*wire.CandidateOrder{{Component: "backup", Runs: [][]byte{runID("Z1").Bytes(), runID(want).Bytes()}}}
		r.ok(RunID{}, c)
		if appointee(r.state(appointed, "backup", "A1")) != runID(want) {
			t.Errorf("the host's order begins with %s, but somebody else is appointed", want)
		}
	}
}

func TestRule09_RecoveriesOfOneNodeFollowOneAnother(t *testing.T) {
	r := newRig(t)
	r.open("B1", "backup", "verify")
	r.open("A1", "backup", "verify")
	r.open("A2", "backup", "verify")
	r.close("A2")
	r.state(appointed, "backup", "A1")
	r.state(queued, "backup", "A2")
	r.state(queued, "verify", "A2")
	rec := r.recovery("backup", "A2")
	r.want(wire.Code_CODE_NOT_APPOINTED, runID("B1"), &wire.Acquire{Recovery: refOf(rec)})
	r.acquire("backup", "A1")
	r.release("backup", "A1")
	r.state(appointed, "backup", "A2")
	r.state(queued, "verify", "A2")
	r.ok(RunID{}, &wire.DropRecovery{Component: "verify", Run: runID("A1").Bytes()})
	r.state(appointed, "verify", "A2")
}

func TestRule09_OfTwoThatOneEntryClosedTheOlderGoesFirst(t *testing.T) {
	for _, last := range []string{"A2", "A3", "A4", "A5", "A6", "A7", "A8"} { // whichever id is the smaller one
		r := newRig(t)
		r.open("B1", "backup")
		r.open("A1", "backup")
		r.apply(command(RunID{}, opening(r, "A", last, "backup")), command(RunID{}, closingOf(last, wire.Evidence_EVIDENCE_REFUSED)))
		m, err := Restore(r.m.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		r.m = m
		for _, name := range []string{"A1", last} {
			r.state(appointed, "backup", name)
			r.acquire("backup", name)
			r.release("backup", name)
		}
	}
}

func TestRule10_FencedFromTheClosingToTheEnd(t *testing.T) {
	r := newRig(t)
	fenced := func(want bool, when string) {
		t.Helper()
		if r.m.IsFenced("backup", "A") != want {
			t.Errorf("%s: IsFenced is %v", when, !want)
		}
	}
	r.open("A1", "backup")
	fenced(false, "while it lives")
	r.close("A1")
	fenced(true, "waiting")
	r.open("A2", "backup")
	fenced(true, "appointed, at the new run")
	r.close("A2")
	fenced(true, "waiting, another queued")
	r.open("B1", "backup")
	r.fail("backup", "A1")
	fenced(true, "parked")
	r.ok(RunID{}, &wire.DropRecovery{Component: "backup", Run: runID("A1").Bytes()})
	fenced(true, "the next one appointed")
	r.acquire("backup", "A2")
	fenced(true, "raised")
	r.release("backup", "A2")
	fenced(false, "released")
	if r.m.IsFenced("backup", "B") || r.m.IsFenced("verify", "A") {
		t.Error("something else is fenced")
	}
}

func TestACrashLoopDoesNotGrowARecovery(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	r.close("A1")
	for _, name := range []string{"B1", "B2", "B3", "B4", "B5"} {
		r.open(name, "backup")
		r.close(name)
	}
	if rec := r.state(waiting, "backup", "A1"); len(rec.GetTried()) > 1 {
		t.Errorf("%d runs that never come back are remembered", len(rec.GetTried()))
	}
}
