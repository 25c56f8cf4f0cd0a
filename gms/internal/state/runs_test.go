package state

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestRule01_OpenRunNamesTheLastRunThatItsSenderKnows(t *testing.T) {
	r := newRig(t)
	late := opening(r, "A", "A1")
	r.open("A1")
	r.open("A2")
	if got := r.want(wire.Code_CODE_STALE, RunID{}, late); got.GetEpoch() != mustRun(r, "A2").Epoch {
		t.Errorf("a stale opening names epoch %d, want that of A2", got.GetEpoch())
	}
	if !r.m.IsOpen(runID("A2")) || r.m.IsOpen(runID("A1")) {
		t.Fatal("a late OpenRun of A1 closed the living A2")
	}
	unknown := opening(r, "A", "A3")
	unknown.PrevEpoch = 0
	r.want(wire.Code_CODE_STALE, RunID{}, unknown)
	unknown.PrevEpoch = mustRun(r, "A2").Epoch + 1
	r.want(wire.Code_CODE_STALE, RunID{}, unknown)
}

func TestRule01_ARepeatedOpenRunChangesNothing(t *testing.T) {
	r := newRig(t)
	first := opening(r, "A", "A1")
	epoch := r.ok(RunID{}, first).GetPosition()
	if got := r.want(wire.Code_CODE_NO_CHANGE, RunID{}, first); got.GetPosition() != epoch {
		t.Errorf("repeated opening answers epoch %d, want %d", got.GetPosition(), epoch)
	}
	r.close("A1")
	r.want(wire.Code_CODE_STALE, RunID{}, first)
	first.PrevEpoch = epoch
	r.want(wire.Code_CODE_STALE, RunID{}, first) // a closed run never comes back
}

func TestRule01_EpochsOfANodeGrowEvenWithinAnEntry(t *testing.T) {
	r := newRig(t)
	one, two := opening(r, "A", "A1"), opening(r, "A", "A2")
	two.PrevEpoch = r.m.Position() + 1
	results := r.apply(command(RunID{}, one), command(RunID{}, two))
	if results[0].GetCode() != wire.Code_CODE_OK || results[1].GetCode() != wire.Code_CODE_STALE {
		t.Fatalf("two openings of a node in one entry: %v", results)
	}
}

func TestRule01_ARunIdIsUsedOnce(t *testing.T) {
	r := newRig(t)
	r.open("A1")
	r.open("A2")
	again := opening(r, "A", "A1")
	r.want(wire.Code_CODE_INVALID, RunID{}, again)
	elsewhere := opening(r, "B", "A2")
	r.want(wire.Code_CODE_INVALID, RunID{}, elsewhere)
}

// Every command that a run can issue, sent by a run that is closed, unknown or not yet open, leaves no trace: not in
// the state, and not in the table of answers.
func TestRule02_ACommandOfARunThatIsNotOpenChangesNothing(t *testing.T) {
	r := newRig(t)
	a := r.open("A1", "backup")
	r.open("B1", "backup")
	lock := r.ok(a, &wire.Lock{Name: "l"}).GetToken()
	r.claim(a, "one")
	r.close("A1")
	f := r.acquire("backup", "A1")
	rec := r.recovery("backup", "A1")
	ops := []proto.Message{
		&wire.Claim{Component: "backup", Item: "two"},
		&wire.EndClaim{Component: "backup", Item: "one", Token: r.claimed("one").GetToken(), How: wire.EndClaim_HOW_COMPLETE},
		&wire.EndClaim{Component: "backup", Item: "one", Token: r.claimed("one").GetToken(), How: wire.EndClaim_HOW_FREE, Fence: f},
		&wire.Adopt{Component: "backup", Item: "one", Fence: f},
		&wire.Lock{Name: "l", Wait: true}, &wire.Unlock{Name: "l", Token: lock}, &wire.Unlock{Name: "l"},
		&wire.SetReady{Ready: true}, &wire.RegisterComponent{Component: &wire.Component{Name: "x"}},
		&wire.CacheTxn{Puts: []*wire.CachePut{{Key: &wire.CacheKey{Component: "c", Key: "k"}}}},
		&wire.RaiseFence{Component: "backup", Node: "B"}, &wire.LowerFence{Component: "backup", Node: "B"},
		&wire.Acquire{Recovery: refOf(rec)}, &wire.Release{Recovery: refOf(rec), Token: rec.GetToken()},
		&wire.FailRecovery{Recovery: refOf(rec)}, &wire.MoveAppointment{Recovery: refOf(rec)},
		&wire.RetryRecovery{Component: "backup", Run: rec.GetRun()}, &wire.DropRecovery{Component: "backup", Run: rec.GetRun()},
		closingOf("B1", wire.Evidence_EVIDENCE_OPERATOR), &wire.Suspect{Run: runID("B1").Bytes()}, opening(r, "D", "D1"),
		&wire.Rebase{Base: 1 << 40}, &wire.ChangeSettings{Settings: &wire.Settings{MaxAttempts: 9}},
		&wire.ReplaceHome{Node: "A"}, &wire.ForgetNode{Node: "A"}, &wire.ExpireLock{Name: "l", Token: lock},
		&wire.NotePositions{Positions: []*wire.HomePosition{{Node: "A", Home: id16("home A"), Index: 1}}},
	}
	for _, issuer := range []RunID{a, runID("Z9")} {
		for _, op := range ops {
			was := content(t, r.m, true)
			c := command(issuer, op)
			c.Client, c.Seq = id16("client"), 1
			if got := r.apply(c)[0]; got.GetCode() != wire.Code_CODE_RUN_NOT_OPEN {
				t.Errorf("%T: got %v, want CODE_RUN_NOT_OPEN", op, got)
			}
			if content(t, r.m, true) != was || len(r.changes) > 0 {
				t.Errorf("%T of a run that is not open left a trace", op)
			}
		}
	}
}

func TestRule02_ARefusedOpeningByItsOwnRunLeavesNoTrace(t *testing.T) {
	r := newRig(t)
	a := r.open("A1")
	r.close("A1")
	was := content(t, r.m, true)
	c := command(a, opening(r, "A", "A1"))
	c.Client, c.Seq = id16("client"), 1
	if got := r.apply(c)[0]; got.GetCode() != wire.Code_CODE_STALE || content(t, r.m, true) != was {
		t.Fatalf("a closed run that opens itself: %v", got)
	}
}

func TestRule03_ANewerRunOfTheSameHomeClosesTheOlderInItsEntry(t *testing.T) {
	r := newRig(t)
	r.open("B1", "backup")
	a := r.open("A1", "backup")
	r.claim(a, "one")
	r.ok(RunID{}, opening(r, "A", "A2", "backup"))
	old := mustRun(r, "A1")
	if old.IsOpen() || old.Evidence != wire.Evidence_EVIDENCE_NEWER_RUN || old.Closed != mustRun(r, "A2").Epoch {
		t.Fatalf("the older run is %+v", old)
	}
	opened := changeOf[RunOpened](r)
	if opened.Previous == nil || opened.Previous.ID != a || opened.Previous.IsOpen() {
		t.Errorf("the opening names %+v as the run before", opened.Previous)
	}
	if !r.claimed("one").GetOrphan() || r.recovery("backup", "A1").GetState() != wire.RecoveryState_RECOVERY_APPOINTED {
		t.Error("the closing had no consequences")
	}
	view := changeOf[ViewChanged](r)
	if len(view.View.Members) != 2 || view.View.Members[1].Run != runID("A2") || len(view.Previous.Members) != 2 {
		t.Errorf("one entry made the view %+v of %+v", view.View, view.Previous)
	}
}

func TestRule03_AnotherHomeIsRefused(t *testing.T) {
	r := newRig(t)
	r.open("A1")
	other := func(name string) *wire.OpenRun {
		o := opening(r, "A", name)
		o.Home, o.NodeKey = id16("another home"), keyOfNode("another")
		return o
	}
	forged := opening(r, "A", "A2")
	forged.NodeKey = keyOfNode("another")
	if got := r.want(wire.Code_CODE_NAME_TAKEN, RunID{}, other("A2")); !isRun(got.GetHolder(), runID("A1")) {
		t.Errorf("the name is taken by %x", got.GetHolder())
	}
	r.want(wire.Code_CODE_NAME_TAKEN, RunID{}, forged)
	r.ok(RunID{}, &wire.ReplaceHome{Node: "A"})
	r.want(wire.Code_CODE_NAME_TAKEN, RunID{}, other("A2"))
	r.close("A1")
	r.ok(RunID{}, opening(r, "A", "A3")) // the old home itself does not use the permission up
	r.close("A3")
	r.ok(RunID{}, &wire.NotePositions{Positions: []*wire.HomePosition{{Node: "A", Home: id16("home A"), Index: 2}}})
	r.ok(RunID{}, other("A4"))
	if n, _ := r.m.Node("A"); n.GetReplaced() || n.GetPosition() != 0 || string(n.GetHome()) != string(id16("another home")) {
		t.Errorf("after the replacement the node is %v", n)
	}
	r.close("A4")
	r.want(wire.Code_CODE_OTHER_HOME, RunID{}, opening(r, "A", "A5"))
}

func TestRule03_OnlyTheRunItselfLeaves(t *testing.T) {
	r := newRig(t)
	a, b := r.open("A1"), r.open("B1")
	r.want(wire.Code_CODE_INVALID, b, closingOf("A1", wire.Evidence_EVIDENCE_LEFT))
	r.ok(a, closingOf("A1", wire.Evidence_EVIDENCE_LEFT))
	r.want(wire.Code_CODE_NO_CHANGE, RunID{}, closingOf("A1", wire.Evidence_EVIDENCE_LAPSED))
	r.want(wire.Code_CODE_RUN_NOT_OPEN, RunID{}, closingOf("Z1", wire.Evidence_EVIDENCE_LAPSED))
	r.want(wire.Code_CODE_INVALID, RunID{}, closingOf("B1", wire.Evidence_EVIDENCE_UNSPECIFIED))
	wrong := closingOf("B1", wire.Evidence_EVIDENCE_LAPSED)
	wrong.Node = "A"
	r.want(wire.Code_CODE_INVALID, RunID{}, wrong)
}

func TestRule18_AppointsForWhatWasRegisteredOrClaimed(t *testing.T) {
	r := newRig(t)
	r.open("B1", "backup", "verify")
	a := r.open("A1", "verify")
	r.claim(a, "one") // of backup, which A1 has not registered
	r.close("A1")
	if got := len(r.m.Recoveries()); got != 2 {
		t.Fatalf("%d recoveries, want those of backup and verify", got)
	}
	r.recovery("backup", "A1")
	r.recovery("verify", "A1")
}

func TestRule18_LeftSparesOnlyWhatHasNoWork(t *testing.T) {
	tests := []struct {
		name     string
		evidence wire.Evidence
		settled  []string
		prepare  func(r *rig, a RunID)
		want     bool // a recovery of backup
	}{
		{"nothing claimed", wire.Evidence_EVIDENCE_LEFT, []string{"backup"}, func(*rig, RunID) {}, false},
		{"not named", wire.Evidence_EVIDENCE_LEFT, []string{"verify"}, func(*rig, RunID) {}, true},
		{"other evidence", wire.Evidence_EVIDENCE_REFUSED, []string{"backup"}, func(*rig, RunID) {}, true},
		{"a claim", wire.Evidence_EVIDENCE_LEFT, []string{"backup"}, func(r *rig, a RunID) { r.claim(a, "one") }, true},
		{"a maintenance fence", wire.Evidence_EVIDENCE_LEFT, []string{"backup"}, func(r *rig, a RunID) {
			r.ok(a, &wire.RaiseFence{Component: "backup", Node: "A"})
		}, true},
		{"an appointment", wire.Evidence_EVIDENCE_LEFT, []string{"backup"}, func(r *rig, _ RunID) {
			r.open("C1", "backup")
			r.close("C1")
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			a := r.open("A1", "backup")
			tt.prepare(r, a)
			c := closingOf("A1", tt.evidence)
			c.Settled = tt.settled
			r.ok(RunID{}, c)
			if _, got := r.m.Recovery("backup", a); got != tt.want {
				t.Errorf("recovered: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRule18_WorkLeftLooksAtThisRunAndThisComponent(t *testing.T) {
	r := newRig(t)
	r.open("B1", "backup", "verify")
	a := r.open("A1", "backup", "verify")
	c := r.open("C1", "backup")
	r.claim(a, "one")
	r.claim(c, "two")
	r.close("A1")
	r.close("C1")
	r.acquire("verify", "A1")
	r.release("verify", "A1") // orphans in backup do not matter to verify
	f := r.acquire("backup", "A1")
	rec := r.recovery("backup", "A1")
	release := &wire.Release{Recovery: refOf(rec), Token: rec.GetToken()}
	r.want(wire.Code_CODE_WORK_LEFT, appointee(rec), release)
	r.ok(appointee(rec), &wire.EndClaim{
		Component: "backup", Item: "one", Token: r.claimed("one").GetToken(), How: wire.EndClaim_HOW_FREE, Fence: f,
	})
	r.ok(appointee(rec), release) // C1's orphan does not matter to A1's recovery
}

func TestClosingFreesBoundEntriesWithTheLastRecovery(t *testing.T) {
	r := newRig(t)
	b := r.open("B1", "backup", "verify")
	a := r.open("A1", "backup", "verify")
	s := r.open("S1")
	for _, run := range []RunID{a, b, s} {
		key := &wire.CacheKey{Component: "c", Member: run.String(), Key: "k"}
		r.ok(run, &wire.CacheTxn{Puts: []*wire.CachePut{{Key: key, Bound: true}}})
	}
	has := func(run RunID) bool {
		_, ok := r.m.CacheGet(CacheKey{"c", run.String(), "k"})
		return ok
	}
	r.close("S1")
	if has(s) {
		t.Error("a run without recoveries leaves its entries")
	}
	if got := changeOf[CacheChanged](r); len(got.Events) != 1 || !got.Events[0].Deleted {
		t.Errorf("the deletion shows as %+v", got)
	}
	r.close("A1")
	r.acquire("backup", "A1")
	r.release("backup", "A1")
	if !has(a) {
		t.Error("the entries went before the last recovery ended")
	}
	r.acquire("verify", "A1")
	r.release("verify", "A1")
	if has(a) || !has(b) {
		t.Error("the wrong entries went with the last recovery")
	}
}

func mustRun(r *rig, name string) Run {
	r.t.Helper()
	run, ok := r.m.Run(runID(name))
	if !ok {
		r.t.Fatalf("run %s is not known", name)
	}
	return run
}
