package state

import (
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestRule14_LateCommandsOfAMovedAppointmentAreVoid(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	r.open("B1", "backup")
	r.close("A1")
	b := runID("B1")
	for round := range 4 { // always to B1 again: only the index tells one appointment from the next
		old := r.acquire("backup", "A1")
		ref := refOf(r.recovery("backup", "A1"))
		r.ok(b, &wire.FailRecovery{Recovery: ref, Unavailable: true})
		now := r.state(appointed, "backup", "A1")
		if now.GetIndex() <= ref.GetIndex() || appointee(now) != b {
			t.Fatalf("round %d: appointment %v follows %v", round, now, ref)
		}
		r.want(wire.Code_CODE_NOT_APPOINTED, b, &wire.Acquire{Recovery: ref})
		r.want(wire.Code_CODE_NOT_APPOINTED, b, &wire.Release{Recovery: ref, Token: old.GetToken()})
		r.want(wire.Code_CODE_NOT_APPOINTED, b, &wire.FailRecovery{Recovery: ref})
		r.want(wire.Code_CODE_NOT_APPOINTED, RunID{}, &wire.MoveAppointment{Recovery: ref})
		r.want(wire.Code_CODE_NOT_HOLDER, b, &wire.Release{Recovery: refOf(now), Token: old.GetToken()})
	}
}

func TestRule14_EachHandOverMakesANewIndexEvenWithinAnEntry(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	b := r.open("B1", "backup")
	r.close("A1")
	ref := refOf(r.recovery("backup", "A1"))
	away := command(b, &wire.FailRecovery{Recovery: ref, Unavailable: true})
	results := r.apply(away, away)
	if results[0].GetCode() != wire.Code_CODE_OK || results[1].GetCode() != wire.Code_CODE_NOT_APPOINTED {
		t.Fatalf("one entry reports twice: %v", results)
	}
	was := r.recovery("backup", "A1").GetIndex()
	again := command(b, &wire.FailRecovery{Recovery: &wire.RecoveryRef{Component: "backup", Run: ref.GetRun(), Index: was}, Unavailable: true})
	third := aboutIndex(again, r.m.Position()+1)
	r.apply(again, third)
	if now := r.recovery("backup", "A1").GetIndex(); now != r.m.Position()+1 {
		t.Errorf("two hand-overs of one entry end with index %d at position %d", now, r.m.Position())
	}
}

// aboutIndex is the same report about another appointment.
func aboutIndex(c *wire.Command, index uint64) *wire.Command {
	ref := c.GetFailRecovery().GetRecovery()
	run, _ := RunIDOf(c.GetRun())
	return command(run, &wire.FailRecovery{
		Recovery: &wire.RecoveryRef{Component: ref.GetComponent(), Run: ref.GetRun(), Index: index}, Unavailable: true,
	})
}

func TestRule14_OnlyTheAppointedRunActs(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	r.open("B1", "backup")
	r.open("C1", "backup")
	r.close("A1")
	rec := r.recovery("backup", "A1")
	other := runID("B1")
	if appointee(rec) == other {
		other = runID("C1")
	}
	r.want(wire.Code_CODE_NOT_APPOINTED, other, &wire.Acquire{Recovery: refOf(rec)})
	r.want(wire.Code_CODE_NOT_APPOINTED, other, &wire.FailRecovery{Recovery: refOf(rec)})
	f := r.acquire("backup", "A1")
	if got := r.want(wire.Code_CODE_NO_CHANGE, appointee(rec), &wire.Acquire{Recovery: refOf(rec)}); got.GetToken() != f.GetToken() {
		t.Errorf("a repeated Acquire gives token %d, want %d", got.GetToken(), f.GetToken())
	}
	r.want(wire.Code_CODE_NOT_APPOINTED, other, &wire.Release{Recovery: refOf(rec), Token: f.GetToken()})
	r.want(wire.Code_CODE_NOT_HOLDER, appointee(rec), &wire.Release{Recovery: refOf(rec), Token: f.GetToken() - 1})
	r.release("backup", "A1")
	r.want(wire.Code_CODE_NOT_APPOINTED, appointee(rec), &wire.Release{Recovery: refOf(rec), Token: f.GetToken()})
	if ended := r.m.Ended(); len(ended) != 1 || ended[0].GetDropped() || ended[0].GetEnded() == 0 {
		t.Errorf("ended: %v", ended)
	}
}

func TestRule15_UnavailabilityGoesRoundAndNeverParks(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	r.open("B1", "backup")
	r.open("C1", "backup")
	r.close("A1")
	seen := map[RunID]int{}
	for range 10 {
		rec := r.state(appointed, "backup", "A1")
		seen[appointee(rec)]++
		r.ok(appointee(rec), &wire.FailRecovery{Recovery: refOf(rec), Unavailable: true, Why: "ledger away"})
	}
	if seen[runID("B1")] != 5 || seen[runID("C1")] != 5 {
		t.Errorf("ten rounds went to %v, want five each", seen)
	}
	rec := r.state(appointed, "backup", "A1")
	if rec.GetRounds() != 5 || rec.GetAttempts() != 0 || len(rec.GetTried()) != 0 {
		t.Errorf("after ten rounds the recovery is %v", rec)
	}
	r.fail("backup", "A1") // a real failure counts on, and the other is asked again although it was away
	other := r.state(appointed, "backup", "A1")
	if appointee(other) == appointee(rec) {
		t.Error("a run that has failed is asked again")
	}
	r.ok(appointee(other), &wire.FailRecovery{Recovery: refOf(other), Unavailable: true})
	r.state(appointed, "backup", "A1")
	r.fail("backup", "A1")
	r.state(parked, "backup", "A1")
}

func TestRule15_AnAttemptIsCountedPerAppointee(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	r.open("B1", "backup")
	r.open("C1", "backup")
	r.close("A1")
	f := r.acquire("backup", "A1")
	rec := r.recovery("backup", "A1")
	r.ok(appointee(rec), &wire.FailRecovery{Recovery: refOf(rec), Why: "no"})
	if got := r.state(raised, "backup", "A1"); got.GetAttempts() != 1 || got.GetToken() != f.GetToken() || got.GetWhy() != "no" {
		t.Fatalf("after one failure: %v", got)
	}
	if changeOf[RecoveryFailed](r).Recovery.GetAttempts() != 1 {
		t.Error("the failed attempt is no change")
	}
	r.ok(appointee(rec), &wire.FailRecovery{Recovery: refOf(rec)})
	r.ok(appointee(rec), &wire.FailRecovery{Recovery: refOf(rec)})
	if changeOf[AppointmentEnded](r).Recovery.GetToken() != f.GetToken() {
		t.Error("that the fence moves is no change")
	}
	next := r.state(appointed, "backup", "A1")
	if next.GetAttempts() != 0 || appointee(next) == appointee(rec) || next.GetEndedHolder() != r.m.Position() {
		t.Errorf("the next appointment is %v", next)
	}
	if again := r.acquire("backup", "A1"); again.GetToken() <= f.GetToken() {
		t.Errorf("token %d follows %d", again.GetToken(), f.GetToken())
	}
}

func TestRule17_ForceHandsOverAndDropFrees(t *testing.T) {
	r := newRig(t)
	a := r.open("A1", "backup")
	r.open("B1", "backup")
	r.open("C1", "backup")
	r.claim(a, "one")
	r.close("A1")
	f := r.acquire("backup", "A1")
	rec := r.recovery("backup", "A1")
	r.want(wire.Code_CODE_NOT_HOLDER, appointee(rec), &wire.LowerFence{Component: "backup", Node: "A", Token: f.GetToken()})
	r.want(wire.Code_CODE_BUSY, RunID{}, &wire.RetryRecovery{Component: "backup", Run: rec.GetRun()})
	r.ok(RunID{}, &wire.MoveAppointment{Recovery: refOf(rec), Force: true, Why: "operator"})
	next := r.state(appointed, "backup", "A1")
	if appointee(next) == appointee(rec) || next.GetIndex() <= rec.GetIndex() {
		t.Fatalf("force made %v of %v", next, rec)
	}
	r.want(wire.Code_CODE_NOT_APPOINTED, appointee(rec), &wire.Release{Recovery: refOf(rec), Token: f.GetToken()})
	r.ok(RunID{}, &wire.DropRecovery{Component: "backup", Run: rec.GetRun(), Why: "operator"})
	if _, claimed := r.m.Claim("backup", "one"); claimed || len(r.m.Recoveries()) > 0 {
		t.Error("the drop freed nothing")
	}
	if !changeOf[RecoveryEnded](r).Dropped || !r.m.Ended()[0].GetDropped() {
		t.Error("the end does not say that it was dropped")
	}
	r.want(wire.Code_CODE_NOT_FOUND, RunID{}, &wire.DropRecovery{Component: "backup", Run: rec.GetRun()})
}

func TestRule17_AnOperatorRetriesAParkedRecovery(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	b := r.open("B1", "backup")
	r.want(wire.Code_CODE_NOT_FOUND, RunID{}, &wire.RetryRecovery{Component: "backup", Run: runID("A1").Bytes()})
	r.close("A1")
	r.fail("backup", "A1")
	r.state(parked, "backup", "A1")
	r.ok(RunID{}, &wire.RetryRecovery{Component: "backup", Run: runID("A1").Bytes()})
	if appointee(r.state(appointed, "backup", "A1")) != b {
		t.Error("nobody tries again")
	}
}

func TestRule22_SaysWhenTheLastHolderEnded(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	r.open("B1", "backup")
	r.open("C1", "backup")
	r.close("A1")
	if rec := r.recovery("backup", "A1"); rec.GetEndedHolder() != r.m.Position() {
		t.Errorf("the dead run ended at %d, not at %d", r.m.Position(), rec.GetEndedHolder())
	}
	closed := r.m.Position()
	rec := r.recovery("backup", "A1")
	r.ok(RunID{}, &wire.MoveAppointment{Recovery: refOf(rec)})
	if rec := r.recovery("backup", "A1"); rec.GetEndedHolder() != closed {
		t.Error("an appointment that never raised the fence counts as a holder")
	}
}

func TestADeadRecovererIsFollowedByTheNext(t *testing.T) {
	for _, acquires := range []bool{false, true} {
		r := newRig(t)
		r.open("A1", "backup")
		r.open("B1", "backup")
		r.open("C1", "backup")
		r.close("A1")
		if acquires {
			r.acquire("backup", "A1")
		}
		rec := r.recovery("backup", "A1")
		name := "B1"
		if appointee(rec) == runID("C1") {
			name = "C1"
		}
		r.close(name)
		next := r.state(appointed, "backup", "A1")
		if appointee(next) == appointee(rec) || next.GetIndex() != r.m.Position() {
			t.Errorf("after the recoverer's death: %v", next)
		}
		if acquires != (next.GetEndedHolder() == r.m.Position()) {
			t.Errorf("acquired %v, but the last holder ended at %d", acquires, next.GetEndedHolder())
		}
	}
}
