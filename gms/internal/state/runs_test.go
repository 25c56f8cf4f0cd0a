package state

import (
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestSmoke(t *testing.T) {
	r := newRig(t)
	a := r.open("A1", "backup")
	r.open("B1", "backup")
	r.open("C1", "backup")
	token := r.claim(a, "b1")
	r.close("A1")
	if !r.claimed("b1").GetOrphan() || r.claimed("b1").GetToken() != token {
		t.Fatalf("claim %v", r.claimed("b1"))
	}
	f := r.acquire("backup", "A1")
	holder := appointee(r.recovery("backup", "A1"))
	adopted := r.ok(holder, &wire.Adopt{Component: "backup", Item: "b1", Fence: f})
	if adopted.GetRoundTrip() != 2 {
		t.Fatalf("round trip %d", adopted.GetRoundTrip())
	}
	s := r.m.Snapshot()
	again, err := Restore(s)
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash() != r.m.Hash() {
		t.Fatal("hash")
	}
	r.release("backup", "A1")
	r.ok(holder, &wire.EndClaim{Component: "backup", Item: "b1", Token: adopted.GetToken(), How: wire.EndClaim_HOW_COMPLETE})
}
