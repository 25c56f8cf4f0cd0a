package state

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestRule07_AnEntryMakesAtMostOneView(t *testing.T) {
	r := newRig(t)
	if v := r.m.View(); v.Version != 0 || len(v.Members) != 0 {
		t.Errorf("the first view is %+v", v)
	}
	r.apply(command(RunID{}, opening(r, "B", "B1")), command(RunID{}, opening(r, "A", "A1")))
	want := View{Version: r.m.Position(), Members: []Member{
		{Node: "A", Run: runID("A1"), Epoch: r.m.Position(), Role: wire.Role_ROLE_CORE},
		{Node: "B", Run: runID("B1"), Epoch: r.m.Position(), Role: wire.Role_ROLE_CORE},
	}}
	if diff := cmp.Diff(want, r.m.View()); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	first, ok := r.changes[0].(ViewChanged)
	if !ok || first.View.Version != want.Version || first.Previous.Version != 0 {
		t.Errorf("the view is not the first change: %v", r.changes)
	}
	version := r.m.View().Version
	r.apply(command(RunID{}, opening(r, "C", "C1")), command(RunID{}, closingOf("C1", wire.Evidence_EVIDENCE_LEFT)))
	if r.m.View().Version != version {
		t.Error("a run that came and went in one entry made a view")
	}
	r.ok(RunID{}, &wire.Suspect{Run: runID("A1").Bytes()})
	if r.m.View().Version != version {
		t.Error("a suspicion made a view")
	}
}

func TestRule07_TheLastThousandViewsAreKeptAndCanBeRead(t *testing.T) {
	r := newRig(t)
	r.open("B1")
	for i := range maxViews + 100 {
		o := opening(r, "A", fmt.Sprintf("A%d", i))
		if got, _ := r.m.Apply(r.m.Index()+1, entry(command(RunID{}, o))); got[0].GetCode() != wire.Code_CODE_OK {
			t.Fatalf("opening: %v", got)
		}
	}
	if err := Invariants(r.m); err != nil {
		t.Fatal(err)
	}
	views := r.m.Views()
	if len(views) != maxViews {
		t.Fatalf("%d views are kept", len(views))
	}
	var last uint64
	for _, v := range views {
		if v.Version <= last || len(v.Members) != 2 || v.Members[0].Node != "B" || v.Members[1].Node != "A" {
			t.Fatalf("view %+v after version %d", v, last)
		}
		last = v.Version
	}
	if got := len(r.m.Runs()); got != maxViews+1 {
		t.Errorf("%d runs are kept, want those that a view names", got)
	}
}

func TestAClosedRunStaysReadableUntilItsLastRelease(t *testing.T) {
	r := newRig(t)
	r.open("B1", "backup")
	r.open("A0", "backup")
	r.close("A0")
	for i := 1; i < maxViews+10; i++ {
		o := opening(r, "A", fmt.Sprintf("A%d", i))
		r.m.Apply(r.m.Index()+1, entry(command(RunID{}, o)))
	}
	if run := mustRun(r, "A0"); run.Node() != "A" || run.IsOpen() {
		t.Errorf("the run with an open recovery is %+v", run)
	}
	r.acquire("backup", "A0")
	r.release("backup", "A0")
	if _, known := r.m.Run(runID("A0")); known {
		t.Error("nothing names the run any more, but it is kept")
	}
}
