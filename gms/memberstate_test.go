package gms

import (
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestMemberStates(t *testing.T) {
	g := newLooseGroup(t)
	want := func(node string, s MemberState, alive bool) {
		t.Helper()
		if got := g.MemberState(node); got != s || got.IsAlive() != alive || g.IsMemberAlive(node) != alive {
			t.Errorf("%s is %s, want %s", node, got, s)
		}
	}
	want("n1", StateUnknown, false)
	g.peers.put(&wire.Meta{Node: "n9", Run: runOf(9).Bytes()}, "127.0.0.1:1", true)
	want("n9", StateStarting, false)
	g.settle()
	want("n1", StateAlive, true)
	ready := &wire.Command{Run: runOf(1).Bytes(), Op: &wire.Command_SetReady{SetReady: &wire.SetReady{Ready: true}}}
	g.must(ready)
	want("n1", StateAliveAndReady, true)
	suspect := func(withdrawn bool) *wire.Command {
		return &wire.Command{Op: &wire.Command_Suspect{Suspect: &wire.Suspect{Run: runOf(1).Bytes(), Withdrawn: withdrawn}}}
	}
	g.must(suspect(false))
	want("n1", StateInDoubt, false)
	g.must(suspect(true))
	g.must(&wire.Command{Run: runOf(2).Bytes(), Op: &wire.Command_AnnounceGroup{AnnounceGroup: &wire.AnnounceGroup{
		Kind: wire.AnnounceGroup_KIND_SHUTDOWN, Phase: wire.AnnounceGroup_PHASE_INITIATED,
	}}})
	want("n1", StateStopping, true)
	g.must(closeCommand(1, "n1", wire.Evidence_EVIDENCE_LEFT))
	want("n1", StateStopped, false)
	g.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_REFUSED))
	want("n2", StateDead, false)
	g.peers.put(&wire.Meta{Node: "n2", Run: runOf(2).Bytes()}, "127.0.0.1:1", true) // late news of a closed run
	want("n2", StateDead, false)
	g.peers.put(&wire.Meta{Node: "n2", Run: runOf(8).Bytes()}, "127.0.0.1:1", true)
	want("n2", StateStarting, false)
}
