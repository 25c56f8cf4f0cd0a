package state

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func ck(key string) *wire.CacheKey { return &wire.CacheKey{Component: "c", Key: key} }

func put(key, value string) *wire.CachePut { return &wire.CachePut{Key: ck(key), Value: []byte(value)} }

func versionIs(key string, version uint64) *wire.Condition {
	return &wire.Condition{Kind: &wire.Condition_VersionIs{VersionIs: &wire.VersionIs{Key: ck(key), Version: version}}}
}

func TestCachePutsAndDeletesAllOrNothing(t *testing.T) {
	r := newRig(t)
	first := r.ok(RunID{}, &wire.CacheTxn{Puts: []*wire.CachePut{put("a", "1"), put("b", "2")}}).GetPosition()
	want := CacheChanged{Version: first, Events: []CacheEvent{
		{Key: CacheKey{"c", "", "a"}, Value: []byte("1")}, {Key: CacheKey{"c", "", "b"}, Value: []byte("2")},
	}}
	if diff := cmp.Diff(want, changeOf[CacheChanged](r)); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
	got := r.want(wire.Code_CODE_CONDITION_FAILED, RunID{}, &wire.CacheTxn{
		Conditions: []*wire.Condition{versionIs("a", first), versionIs("b", first-1), versionIs("z", 5)},
		Puts:       []*wire.CachePut{put("a", "x")}, Deletes: []*wire.CacheKey{ck("b")},
	})
	if got.GetCondition() != 1 {
		t.Errorf("condition %d failed, want the first that does not hold, 1", got.GetCondition())
	}
	r.ok(RunID{}, &wire.CacheTxn{
		Conditions: []*wire.Condition{versionIs("a", first), versionIs("z", 0)},
		Puts:       []*wire.CachePut{put("a", "3")}, Deletes: []*wire.CacheKey{ck("b"), ck("z")},
	})
	if e, ok := r.m.CacheGet(CacheKey{"c", "", "a"}); !ok || string(e.GetValue()) != "3" || e.GetVersion() != r.m.Position() {
		t.Errorf("entry %v", e)
	}
	if _, ok := r.m.CacheGet(CacheKey{"c", "", "b"}); ok {
		t.Error("the deleted entry is there")
	}
	if n := len(changeOf[CacheChanged](r).Events); n != 2 {
		t.Errorf("%d events: deleting what is absent is none", n)
	}
	r.ok(RunID{}, &wire.CacheTxn{Deletes: []*wire.CacheKey{ck("a")}})
	if n, size := r.m.CacheSize(); n != 0 || size != 0 || len(r.m.cache.spaces) != 0 {
		t.Errorf("the empty cache has %d entries of %d bytes", n, size)
	}
}

func TestTwoWritersOfOneEntryDoNotBothWin(t *testing.T) {
	r := newRig(t)
	txn := command(RunID{}, &wire.CacheTxn{Conditions: []*wire.Condition{versionIs("a", 0)}, Puts: []*wire.CachePut{put("a", "1")}})
	results := r.apply(txn, txn)
	if results[0].GetCode() != wire.Code_CODE_OK || results[1].GetCode() != wire.Code_CODE_CONDITION_FAILED {
		t.Errorf("two compare-and-swaps in one entry: %v", results)
	}
}

// A version names one write of a key: of two unconditional writes in one entry the second is to be repeated, also when the
// first one's was deleted in between, and has left no answer that its repeat would get.
func TestAVersionNamesOneWrite(t *testing.T) {
	r := newRig(t)
	txn := func(seq uint64, c *wire.CacheTxn) *wire.Command {
		cmd := command(RunID{}, c)
		cmd.Client, cmd.Seq = []byte("0123456789abcdef"), seq
		return cmd
	}
	second := txn(3, &wire.CacheTxn{Puts: []*wire.CachePut{put("b", "2"), put("a", "2")}})
	results := r.apply(
		txn(1, &wire.CacheTxn{Puts: []*wire.CachePut{put("a", "1")}}),
		txn(2, &wire.CacheTxn{Deletes: []*wire.CacheKey{put("a", "").GetKey()}}),
		second,
		txn(4, &wire.CacheTxn{Puts: []*wire.CachePut{put("b", "4")}}))
	want := []wire.Code{wire.Code_CODE_OK, wire.Code_CODE_OK, wire.Code_CODE_AGAIN, wire.Code_CODE_OK}
	for i, w := range want {
		if results[i].GetCode() != w {
			t.Errorf("transaction %d: %v, want %v", i+1, results[i], w)
		}
	}
	first := results[0].GetPosition()
	if got := r.apply(second)[0]; got.GetCode() != wire.Code_CODE_OK || got.GetPosition() <= first {
		t.Errorf("repeated: %v, the first was at %d", got, first)
	}
	if got := r.apply(second)[0]; got.GetCode() != wire.Code_CODE_OK {
		t.Errorf("repeated once more: %v", got)
	}
}

func TestCacheConditionsAreJudgedWhereTheyTakeEffect(t *testing.T) {
	r := orphaned(t)
	own := r.claim(runID("B1"), "own")
	f := r.acquire("backup", "A1")
	holder := appointee(r.recovery("backup", "A1"))
	claim := func(item string, run RunID, token uint64) *wire.Condition {
		return &wire.Condition{Kind: &wire.Condition_ClaimHeld{ClaimHeld: &wire.ClaimHeld{Component: "backup", Item: item, Run: run.Bytes(), Token: token}}}
	}
	fence := func(f *wire.FenceHeld) *wire.Condition {
		return &wire.Condition{Kind: &wire.Condition_FenceHeld{FenceHeld: f}}
	}
	open := func(run RunID) *wire.Condition {
		return &wire.Condition{Kind: &wire.Condition_RunOpen{RunOpen: run.Bytes()}}
	}
	holds := func(want bool, what string, c *wire.Condition) {
		t.Helper()
		code := wire.Code_CODE_OK
		if !want {
			code = wire.Code_CODE_CONDITION_FAILED
		}
		if got := r.do(RunID{}, &wire.CacheTxn{Conditions: []*wire.Condition{c}}); got.GetCode() != code {
			t.Errorf("%s: %v, want %v", what, got.GetCode(), code)
		}
	}
	holds(true, "an open run", open(runID("B1")))
	holds(false, "a closed run", open(runID("A1")))
	holds(false, "no run", open(RunID{}))
	holds(true, "a held claim", claim("own", runID("B1"), own))
	holds(false, "another's claim", claim("own", runID("C1"), own))
	holds(false, "an old claim token", claim("own", runID("B1"), own-1))
	holds(false, "an orphan", claim("one", runID("A1"), r.claimed("one").GetToken()))
	holds(true, "a raised fence", fence(f))
	holds(false, "an old fence token", fence(&wire.FenceHeld{Component: "backup", Node: "A", Run: f.GetRun(), Token: f.GetToken() - 1}))
	adopted := r.adopt(f).GetToken()
	holds(true, "an adopted claim", claim("one", holder, adopted))
	rec := r.recovery("backup", "A1")
	r.ok(RunID{}, &wire.MoveAppointment{Recovery: refOf(rec)})
	holds(false, "a fence that has moved", fence(f))
	holds(false, "a claim that has moved", claim("one", holder, adopted))
	r.want(wire.Code_CODE_UNKNOWN_COMMAND, RunID{}, &wire.CacheTxn{Conditions: []*wire.Condition{{}}})
}

func TestCacheIsBounded(t *testing.T) {
	r := newRig(t)
	a := r.open("A1")
	big := strings.Repeat("x", MaxValue)
	r.want(wire.Code_CODE_TOO_LARGE, a, &wire.CacheTxn{Puts: []*wire.CachePut{put("a", big+"x")}})
	r.want(wire.Code_CODE_TOO_LARGE, a, &wire.CacheTxn{Deletes: make([]*wire.CacheKey, MaxOps+1)})
	r.want(wire.Code_CODE_INVALID, a, &wire.CacheTxn{Puts: []*wire.CachePut{put("", "x")}})
	r.want(wire.Code_CODE_INVALID, a, &wire.CacheTxn{Puts: []*wire.CachePut{put(strings.Repeat("k", MaxKey+1), "x")}})
	r.want(wire.Code_CODE_INVALID, a, &wire.CacheTxn{Puts: []*wire.CachePut{put("a", "x"), put("a", "y")}})
	r.want(wire.Code_CODE_INVALID, a, &wire.CacheTxn{Puts: []*wire.CachePut{put("a", "x")}, Deletes: []*wire.CacheKey{ck("a")}})
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.CacheTxn{Puts: []*wire.CachePut{{Key: ck("a"), Bound: true}}})
	n := 0
	for {
		txn := &wire.CacheTxn{Puts: []*wire.CachePut{put(strings.Repeat("k", n+1), big)}}
		if results, _ := r.m.Apply(r.m.Index()+1, entry(command(a, txn))); results[0].GetCode() != wire.Code_CODE_OK {
			if results[0].GetCode() != wire.Code_CODE_TOO_LARGE {
				t.Fatalf("a full cache answers %v", results[0])
			}
			break
		}
		n++
	}
	if n != MaxCache/(MaxValue+entryOverhead+1+100) {
		t.Errorf("%d values of 64 KiB fit", n)
	}
	r.ok(a, &wire.CacheTxn{Puts: []*wire.CachePut{put("k", big)}}) // what does not grow fits
	r.ok(a, &wire.CacheTxn{Deletes: []*wire.CacheKey{ck("k")}})
	r.ok(a, &wire.CacheTxn{Puts: []*wire.CachePut{put("new", big)}})
}

func TestCacheListsByMemberAndPrefix(t *testing.T) {
	r := newRig(t)
	for _, k := range []CacheKey{{"c", "A", "x/2"}, {"c", "A", "x/1"}, {"c", "A", "y"}, {"c", "B", "x/1"}, {"c", "", "x/1"}, {"d", "A", "x/1"}} {
		r.ok(RunID{}, &wire.CacheTxn{Puts: []*wire.CachePut{{Key: k.wire()}}})
	}
	var got []string
	for _, e := range r.m.CacheList("c", "A", "x/") {
		got = append(got, e.GetKey().GetKey())
	}
	if diff := cmp.Diff([]string{"x/1", "x/2"}, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"", "A", "B"}, r.m.CacheMembers("c")); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if n, size := r.m.CacheSize(); n != 6 || size <= 6*entryOverhead {
		t.Errorf("%d entries of %d bytes", n, size)
	}
}
