package state

import (
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestRule19_AMaintenanceFenceEndsWithItsRaiserAndIsNeverAppointed(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	b, c := r.open("B1", "backup"), r.open("C1")
	raise := &wire.RaiseFence{Component: "backup", Node: "A"}
	token := r.ok(b, raise).GetToken()
	if got := changeOf[MaintenanceChanged](r); !got.Raised || got.Fence.GetToken() != token {
		t.Errorf("raising shows as %+v", got)
	}
	if !r.m.IsFenced("backup", "A") || r.m.IsFenced("backup", "B") || r.m.IsFenced("verify", "A") {
		t.Error("the fence guards something else")
	}
	if got := r.want(wire.Code_CODE_BUSY, c, raise); !isRun(got.GetHolder(), b) {
		t.Errorf("the holder is %x", got.GetHolder())
	}
	lower := &wire.LowerFence{Component: "backup", Node: "A", Token: token}
	r.want(wire.Code_CODE_NOT_HOLDER, c, lower)
	r.want(wire.Code_CODE_NOT_HOLDER, b, &wire.LowerFence{Component: "backup", Node: "A", Token: token + 1})
	r.ok(b, lower)
	if r.m.IsFenced("backup", "A") {
		t.Error("the lowered fence stands")
	}
	r.ok(b, raise)
	r.close("B1")
	if len(r.m.Maintenance()) > 0 || changeOf[MaintenanceChanged](r).Raised {
		t.Error("the fence outlives its raiser's run")
	}
	if _, appointedFor := r.m.Recovery("backup", runID("A1")); appointedFor {
		t.Error("a maintenance fence was appointed")
	}
}

func TestRule19_OnlyALivingNodeIsMaintained(t *testing.T) {
	r := newRig(t)
	r.open("A1", "backup")
	b := r.open("B1", "backup")
	r.want(wire.Code_CODE_NOT_FOUND, b, &wire.RaiseFence{Component: "backup", Node: "Z"})
	r.want(wire.Code_CODE_INVALID, b, &wire.RaiseFence{Component: "", Node: "A"})
	token := r.ok(b, &wire.RaiseFence{Component: "verify", Node: "A"}).GetToken()
	r.close("A1")
	r.want(wire.Code_CODE_BUSY, b, &wire.RaiseFence{Component: "backup", Node: "A"})
	r.want(wire.Code_CODE_NOT_FOUND, b, &wire.RaiseFence{Component: "prune", Node: "A"})
	if !r.m.IsFenced("verify", "A") {
		t.Error("the maintained node's death lowered the fence")
	}
	r.ok(b, &wire.LowerFence{Component: "verify", Node: "A", Token: token})
}
