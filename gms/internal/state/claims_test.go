package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// orphaned is a group of A, B and C in which A1 died with a claim on item "one".
func orphaned(t testing.TB) *rig {
	r := newRig(t)
	a := r.open("A1", "backup")
	r.open("B1", "backup")
	r.open("C1", "backup")
	r.claim(a, "one")
	r.close("A1")
	return r
}

func (r *rig) end(run RunID, how wire.EndClaim_How, f *wire.FenceHeld) *wire.EndClaim {
	return &wire.EndClaim{Component: "backup", Item: "one", Token: r.claimed("one").GetToken(), How: how, Fence: f}
}

func (r *rig) adopt(f *wire.FenceHeld) *wire.Result {
	r.t.Helper()
	return r.ok(appointee(r.recovery("backup", "A1")), &wire.Adopt{Component: "backup", Item: "one", Fence: f})
}

func TestRule12_AnAdoptedClaimBelongsToTheFenceUntilRelease(t *testing.T) {
	r := orphaned(t)
	f := r.acquire("backup", "A1")
	holder := appointee(r.recovery("backup", "A1"))
	token := r.adopt(f).GetToken()
	if got := changeOf[ClaimAdopted](r).Claim; got.GetToken() != token || token <= f.GetToken() {
		t.Errorf("the adoption shows as %v", got)
	}
	r.want(wire.Code_CODE_FENCED, holder, r.end(holder, wire.EndClaim_HOW_COMPLETE, nil))
	r.release("backup", "A1")
	own := r.claimed("one")
	if own.GetAdopted() != nil || !isRun(own.GetRun(), holder) || own.GetToken() != token {
		t.Fatalf("after Release the claim is %v", own)
	}
	r.want(wire.Code_CODE_FENCED, holder, r.end(holder, wire.EndClaim_HOW_COMPLETE, f))
	r.ok(holder, r.end(holder, wire.EndClaim_HOW_COMPLETE, nil))
}

func TestRule12_WhenTheFenceMovesTheClaimIsAnOrphanOfTheSameDeadRun(t *testing.T) {
	moves := map[string]func(r *rig, rec *wire.Recovery){
		"death": func(r *rig, rec *wire.Recovery) {
			for _, name := range []string{"B1", "C1"} {
				if appointee(rec) == runID(name) {
					r.close(name)
				}
			}
		},
		"failures": func(r *rig, _ *wire.Recovery) { r.fail("backup", "A1") },
		"outage": func(r *rig, rec *wire.Recovery) {
			r.ok(appointee(rec), &wire.FailRecovery{Recovery: refOf(rec), Unavailable: true})
		},
		"force": func(r *rig, rec *wire.Recovery) {
			r.ok(RunID{}, &wire.MoveAppointment{Recovery: refOf(rec), Force: true})
		},
		"leader": func(r *rig, rec *wire.Recovery) { r.ok(RunID{}, &wire.MoveAppointment{Recovery: refOf(rec)}) },
	}
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			r := orphaned(t)
			f := r.acquire("backup", "A1")
			rec := r.recovery("backup", "A1")
			r.adopt(f)
			move(r, rec)
			if got := changeOf[ClaimOrphaned](r); !isRun(got.Previous.GetRun(), appointee(rec)) {
				t.Errorf("the orphaning shows as %+v", got)
			}
			c := r.claimed("one")
			if !c.GetOrphan() || c.GetAdopted() != nil || !isRun(c.GetRun(), runID("A1")) || c.GetRoundTrip() != 2 {
				t.Fatalf("after the move the claim is %v", c)
			}
			if r.m.IsOpen(appointee(rec)) {
				r.want(wire.Code_CODE_FENCED, appointee(rec), r.end(appointee(rec), wire.EndClaim_HOW_COMPLETE, f))
			}
			next := r.acquire("backup", "A1")
			if got := r.adopt(next); got.GetRoundTrip() != 3 {
				t.Errorf("the next adoption is round trip %d", got.GetRoundTrip())
			}
		})
	}
}

func TestRule12_AnOrphanIsTouchedOnlyUnderItsFence(t *testing.T) {
	r := orphaned(t)
	rec := r.recovery("backup", "A1")
	holder := appointee(rec)
	other := runID("B1")
	if holder == other {
		other = runID("C1")
	}
	r.want(wire.Code_CODE_FENCED, holder, &wire.Adopt{Component: "backup", Item: "one"})
	r.want(wire.Code_CODE_FENCED, holder, r.end(holder, wire.EndClaim_HOW_FREE, nil))
	f := r.acquire("backup", "A1")
	spoiled := []*wire.FenceHeld{
		{Component: "backup", Node: "A", Run: f.GetRun(), Token: f.GetToken() - 1},
		{Component: "verify", Node: "A", Run: f.GetRun(), Token: f.GetToken()},
		{Component: "backup", Node: "B", Run: f.GetRun(), Token: f.GetToken()},
		{Component: "backup", Node: "A", Run: runID("B1").Bytes(), Token: f.GetToken()},
	}
	for _, s := range spoiled {
		r.want(wire.Code_CODE_FENCED, holder, &wire.Adopt{Component: "backup", Item: "one", Fence: s})
		r.want(wire.Code_CODE_FENCED, holder, r.end(holder, wire.EndClaim_HOW_FREE, s))
	}
	r.want(wire.Code_CODE_FENCED, other, &wire.Adopt{Component: "backup", Item: "one", Fence: f})
	r.want(wire.Code_CODE_FENCED, other, r.end(other, wire.EndClaim_HOW_FREE, f))
	wrong := r.end(holder, wire.EndClaim_HOW_FREE, f)
	wrong.Token++
	r.want(wire.Code_CODE_NOT_HOLDER, holder, wrong)
	r.want(wire.Code_CODE_NOT_HOLDER, RunID{}, r.end(holder, wire.EndClaim_HOW_FREE, f))
	r.ok(holder, r.end(holder, wire.EndClaim_HOW_FREE, f))
	r.want(wire.Code_CODE_NOT_FOUND, holder, &wire.Adopt{Component: "backup", Item: "one", Fence: f})
}

func TestRule12_AnotherFenceOfTheSameHolderIsNotEnough(t *testing.T) {
	r := newRig(t)
	a := r.open("A1", "backup")
	b := r.open("B1", "backup")
	r.open("C1", "backup")
	r.claim(a, "one")
	r.close("A1")
	r.close("C1")
	if appointee(r.recovery("backup", "A1")) != b {
		t.Fatal("the only candidate is not appointed")
	}
	f := r.acquire("backup", "C1")
	r.want(wire.Code_CODE_FENCED, b, &wire.Adopt{Component: "backup", Item: "one", Fence: f})
	r.want(wire.Code_CODE_FENCED, b, r.end(b, wire.EndClaim_HOW_FREE, f))
}

func TestRule16_EveryOrphaningCountsUntilOnlyQuarantineIsLeft(t *testing.T) {
	r := newRig(t)
	r.open("K1") // keeps the group alive and recovers nothing
	var run RunID
	for i := range 3 {
		run = r.open(fmt.Sprintf("A%d", i+1), "backup")
		if i > 0 {
			f := r.acquire("backup", "A1")
			if got := r.adopt(f); got.GetRoundTrip() != uint32(i+1) {
				t.Errorf("adoption %d is round trip %d", i, got.GetRoundTrip())
			}
		} else {
			r.claim(run, "one")
		}
		r.close(fmt.Sprintf("A%d", i+1))
		if got := r.claimed("one").GetOrphanings(); got != uint32(i+1) {
			t.Fatalf("death %d: the claim was orphaned %d times", i+1, got)
		}
	}
	holder := r.open("A4", "backup")
	f := r.acquire("backup", "A1")
	r.want(wire.Code_CODE_QUARANTINED, holder, &wire.Adopt{Component: "backup", Item: "one", Fence: f})
	for _, how := range []wire.EndClaim_How{wire.EndClaim_HOW_FREE, wire.EndClaim_HOW_COMPLETE, wire.EndClaim_HOW_ABANDON} {
		r.want(wire.Code_CODE_QUARANTINED, holder, r.end(holder, how, f))
	}
	r.ok(holder, r.end(holder, wire.EndClaim_HOW_QUARANTINE, f))
	r.release("backup", "A1") // a quarantined claim is no work left
	r.want(wire.Code_CODE_QUARANTINED, holder, &wire.Claim{Component: "backup", Item: "one"})
	r.want(wire.Code_CODE_QUARANTINED, holder, r.end(holder, wire.EndClaim_HOW_FREE, nil))
	r.ok(RunID{}, &wire.EndClaim{Component: "backup", Item: "one", How: wire.EndClaim_HOW_FREE})
	r.claim(holder, "one")
	if got := r.claimed("one").GetOrphanings(); got != 0 {
		t.Errorf("an operator freed it, but it counts %d orphanings", got)
	}
}

func TestRule16_FreeingDoesNotForgetTheCount(t *testing.T) {
	r := newRig(t)
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("A%d", i)
		r.claim(r.open(name, "backup"), "one")
		r.close(name)
		r.open("B"+name[1:], "backup")
		f := r.acquire("backup", name)
		holder := appointee(r.recovery("backup", name))
		if i == 3 {
			r.want(wire.Code_CODE_QUARANTINED, holder, r.end(holder, wire.EndClaim_HOW_FREE, f))
			return
		}
		r.ok(holder, r.end(holder, wire.EndClaim_HOW_FREE, f))
		r.release("backup", name)
		r.close("B" + name[1:])
		r.ok(RunID{}, &wire.DropRecovery{Component: "backup", Run: runID("B" + name[1:]).Bytes()})
	}
}

func TestRule16_CompletedWorkIsForgotten(t *testing.T) {
	r := orphaned(t)
	f := r.acquire("backup", "A1")
	holder := appointee(r.recovery("backup", "A1"))
	r.ok(holder, r.end(holder, wire.EndClaim_HOW_FREE, f))
	r.claim(holder, "one")
	if got := r.claimed("one").GetOrphanings(); got != 1 {
		t.Errorf("the freed item counts %d orphanings, want 1", got)
	}
	r.ok(holder, r.end(holder, wire.EndClaim_HOW_ABANDON, nil))
	r.claim(holder, "one")
	if got := r.claimed("one").GetOrphanings(); got != 1 {
		t.Errorf("the abandoned item counts %d orphanings, want 1", got)
	}
	r.ok(holder, r.end(holder, wire.EndClaim_HOW_COMPLETE, nil))
	r.claim(holder, "one")
	if got := r.claimed("one").GetOrphanings(); got != 0 {
		t.Errorf("the completed item counts %d orphanings, want 0", got)
	}
}

func TestRule16_AnOutageDoesNotCount(t *testing.T) {
	r := orphaned(t)
	for range 10 {
		f := r.acquire("backup", "A1")
		rec := r.recovery("backup", "A1")
		r.adopt(f)
		r.ok(appointee(rec), &wire.FailRecovery{Recovery: refOf(rec), Unavailable: true})
	}
	if got := r.claimed("one").GetOrphanings(); got != 1 {
		t.Errorf("ten outages made %d orphanings, want the first one", got)
	}
}

func TestRule16_ADropQuarantinesWhatWasOrphanedTooOften(t *testing.T) {
	r := newRig(t)
	r.ok(RunID{}, &wire.ChangeSettings{Settings: &wire.Settings{MaxAttempts: 1}})
	r.claim(r.open("A1", "backup"), "one")
	r.close("A1")
	r.ok(RunID{}, &wire.DropRecovery{Component: "backup", Run: runID("A1").Bytes()})
	if c := r.claimed("one"); !c.GetQuarantined() || c.GetOrphan() {
		t.Errorf("after the drop the claim is %v", c)
	}
}

func TestRule16_WhatIsRememberedIsBounded(t *testing.T) {
	table := newClaimTable()
	for i := range maxOrphanedItems + 1 {
		table.remember(&wire.OrphanedItem{Component: "c", Item: fmt.Sprint(i), Orphanings: 1, Position: uint64(i + 1)})
	}
	if got := len(table.before); got != maxOrphanedItems+1-maxOrphanedItems/8 {
		t.Errorf("%d items are remembered", got)
	}
	if table.before[itemKey{"c", "0"}] != nil || table.before[itemKey{"c", fmt.Sprint(maxOrphanedItems)}] == nil {
		t.Error("not the oldest ones were forgotten")
	}
}

func TestRule20_AClaimExcludesItsItemWhateverTheRoundTrip(t *testing.T) {
	r := newRig(t)
	a, b := r.open("A1", "backup"), r.open("B1", "backup")
	token := r.claim(a, "one")
	for rt := range uint32(4) {
		for _, run := range []RunID{a, b} {
			got := r.want(wire.Code_CODE_BUSY, run, &wire.Claim{Component: "backup", Item: "one", RoundTrip: rt})
			if !isRun(got.GetHolder(), a) {
				t.Errorf("the holder is %x, want A1", got.GetHolder())
			}
		}
	}
	r.ok(b, &wire.Claim{Component: "verify", Item: "one"})
	r.want(wire.Code_CODE_NOT_HOLDER, b, r.end(b, wire.EndClaim_HOW_COMPLETE, nil))
	r.want(wire.Code_CODE_INVALID, a, r.end(a, wire.EndClaim_HOW_FREE, nil))
	r.want(wire.Code_CODE_INVALID, a, r.end(a, wire.EndClaim_HOW_UNSPECIFIED, nil))
	r.ok(a, r.end(a, wire.EndClaim_HOW_COMPLETE, nil))
	if again := r.claim(b, "one"); again <= token {
		t.Errorf("token %d follows %d", again, token)
	}
	r.want(wire.Code_CODE_NOT_HOLDER, a, &wire.EndClaim{Component: "backup", Item: "one", Token: token, How: wire.EndClaim_HOW_COMPLETE})
	r.close("B1")
	r.want(wire.Code_CODE_BUSY, a, &wire.Claim{Component: "backup", Item: "one"}) // an orphan excludes it too
}

func TestRule20_AdoptionTurnsARoundTripIntoTheNext(t *testing.T) {
	r := orphaned(t)
	before := r.claimed("one")
	got := r.adopt(r.acquire("backup", "A1"))
	after := r.claimed("one")
	if after.GetRoundTrip() != before.GetRoundTrip()+1 || got.GetRoundTrip() != after.GetRoundTrip() || after.GetToken() <= before.GetToken() {
		t.Errorf("round trip %d under token %d became %d under %d, answered %d", before.GetRoundTrip(), before.GetToken(),
			after.GetRoundTrip(), after.GetToken(), got.GetRoundTrip())
	}
}

func TestRule20_AHeldClaimIsNotAdopted(t *testing.T) {
	r := orphaned(t)
	f := r.acquire("backup", "A1")
	holder := appointee(r.recovery("backup", "A1"))
	r.adopt(f)
	r.want(wire.Code_CODE_BUSY, holder, &wire.Adopt{Component: "backup", Item: "one", Fence: f})
}

func TestClaimsAreBoundedAndListed(t *testing.T) {
	r := newRig(t)
	a, b := r.open("A1", "backup"), r.open("B1", "backup")
	for _, bad := range []string{"", strings.Repeat("x", MaxName+1)} {
		r.want(wire.Code_CODE_INVALID, a, &wire.Claim{Component: "backup", Item: bad})
		r.want(wire.Code_CODE_INVALID, a, &wire.Claim{Component: bad, Item: "one"})
	}
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.Claim{Component: "backup", Item: "one"})
	r.claim(a, "two")
	r.claim(b, "one")
	r.ok(a, &wire.Claim{Component: "verify", Item: "one"})
	for _, tt := range []struct {
		f    ClaimFilter
		want string
	}{
		{ClaimFilter{}, "backup/one backup/two verify/one"},
		{ClaimFilter{Component: "backup"}, "backup/one backup/two"},
		{ClaimFilter{Item: "one"}, "backup/one verify/one"},
		{ClaimFilter{Component: "backup", Item: "two"}, "backup/two"},
		{ClaimFilter{Component: "backup", Item: "two", Run: b}, ""},
		{ClaimFilter{Run: a}, "backup/two verify/one"},
		{ClaimFilter{Run: a, Component: "verify"}, "verify/one"},
	} {
		var got []string
		for _, c := range r.m.Claims(tt.f) {
			got = append(got, c.GetComponent()+"/"+c.GetItem())
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v chooses %v, want %s", tt.f, got, tt.want)
		}
	}
}

func TestClaimsAndLocksAreLimitedInNumber(t *testing.T) {
	r := newRig(t)
	a := r.open("A1", "backup")
	var claims, locks []*wire.Command
	for i := range MaxClaims + 1 {
		claims = append(claims, command(a, &wire.Claim{Component: "backup", Item: fmt.Sprint(i)}))
	}
	for i := range MaxLocks + 1 {
		locks = append(locks, command(a, &wire.Lock{Name: fmt.Sprint(i)}))
	}
	for _, commands := range [][]*wire.Command{claims, locks} {
		results, _ := r.m.Apply(r.m.Index()+1, entry(commands...))
		last := len(results) - 1
		if results[last-1].GetCode() != wire.Code_CODE_OK || results[last].GetCode() != wire.Code_CODE_TOO_LARGE {
			t.Errorf("at the limit: %v, beyond: %v", results[last-1], results[last])
		}
	}
}
