package sim

import (
	"crypto/sha256"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// The components of every run: two whose resources check tokens, and one whose resource cannot.
const (
	backup  = "backup"
	restore = "restore"
	leased  = "leased"
)

var components = []string{backup, restore, leased}

func id16(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:16]
}

func runID(name string) state.RunID { return state.RunID(id16(name)) }

func unmarshal(b []byte, s *wire.Snapshot) error { return proto.Unmarshal(b, s) }

func form(w *world) *wire.Command {
	return &wire.Command{Op: &wire.Command_FormGroup{FormGroup: &wire.FormGroup{
		ClusterId: id16("group"), Base: 1_000_000, Settings: &wire.Settings{MaxAttempts: 3},
	}}}
}

func lead(node string, term uint64) *wire.Command {
	return &wire.Command{Term: term, Op: &wire.Command_Lead{Lead: &wire.Lead{Node: node, Term: term}}}
}

func openRun(n *node, id state.RunID, last uint64) *wire.Command {
	key := sha256.Sum256([]byte("key of " + n.name))
	open := &wire.OpenRun{
		Node: n.name, Run: id.Bytes(), Home: id16("home of " + n.name), NodeKey: key[:], Role: wire.Role_ROLE_CORE,
		ClusterAddr: n.name, GossipAddr: n.name, OwnInterface: true, PrevEpoch: last, Protocol: wire.Protocol,
		TtlMs: uint32(ttl.Milliseconds()), FenceTtlMs: uint32(fenceTTL.Milliseconds()),
	}
	for i, name := range components {
		c := &wire.Component{Name: name, Selector: wire.Selector(1 + i%2)}
		if name == leased {
			c.Exclusion = wire.Exclusion_EXCLUSION_LEASE
		}
		open.Components = append(open.Components, c)
	}
	return &wire.Command{Op: &wire.Command_OpenRun{OpenRun: open}}
}

func closeRun(r state.Run, why wire.Evidence, term uint64) *wire.Command {
	return &wire.Command{Term: term, Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{Node: r.Node(), Run: r.ID.Bytes(), Evidence: why}}}
}

func leave(n *node, id state.RunID) *wire.Command {
	return &wire.Command{Run: id.Bytes(), Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{
		Node: n.name, Run: id.Bytes(), Evidence: wire.Evidence_EVIDENCE_LEFT, Settled: components,
	}}}
}

func suspect(id state.RunID, withdrawn bool, why string, term uint64) *wire.Command {
	return &wire.Command{Term: term, Op: &wire.Command_Suspect{Suspect: &wire.Suspect{Run: id.Bytes(), Withdrawn: withdrawn, Why: why}}}
}

func quiesced(id state.RunID, term uint64) *wire.Command {
	return &wire.Command{Term: term, Op: &wire.Command_NoteQuiesced{NoteQuiesced: &wire.NoteQuiesced{Run: id.Bytes()}}}
}

func claimItem(component, item string) *wire.Command {
	return &wire.Command{Op: &wire.Command_Claim{Claim: &wire.Claim{Component: component, Item: item}}}
}

func endClaim(component, item string, token uint64, how wire.EndClaim_How, f *wire.FenceHeld) *wire.Command {
	return &wire.Command{Op: &wire.Command_EndClaim{EndClaim: &wire.EndClaim{Component: component, Item: item, Token: token, How: how, Fence: f}}}
}

func adopt(component, item string, f *wire.FenceHeld) *wire.Command {
	return &wire.Command{Op: &wire.Command_Adopt{Adopt: &wire.Adopt{Component: component, Item: item, Fence: f}}}
}

func refOf(r *wire.Recovery) *wire.RecoveryRef {
	return &wire.RecoveryRef{Component: r.GetComponent(), Run: r.GetRun(), Index: r.GetIndex()}
}

func acquire(ref *wire.RecoveryRef) *wire.Command {
	return &wire.Command{Op: &wire.Command_Acquire{Acquire: &wire.Acquire{Recovery: ref}}}
}

func release(ref *wire.RecoveryRef, token uint64) *wire.Command {
	return &wire.Command{Op: &wire.Command_Release{Release: &wire.Release{Recovery: ref, Token: token}}}
}

func failRecovery(ref *wire.RecoveryRef, unavailable bool, why string) *wire.Command {
	return &wire.Command{Op: &wire.Command_FailRecovery{FailRecovery: &wire.FailRecovery{Recovery: ref, Unavailable: unavailable, Why: why}}}
}

func moveAppointment(ref *wire.RecoveryRef, force bool, term uint64) *wire.Command {
	return &wire.Command{Term: term, Op: &wire.Command_MoveAppointment{MoveAppointment: &wire.MoveAppointment{Recovery: ref, Force: force, Why: "moved"}}}
}

func lockNamed(name string) *wire.Command {
	return &wire.Command{Op: &wire.Command_Lock{Lock: &wire.Lock{Name: name, Wait: true}}}
}

func unlock(name string, token uint64) *wire.Command {
	return &wire.Command{Op: &wire.Command_Unlock{Unlock: &wire.Unlock{Name: name, Token: token}}}
}

func expireLock(name string, token, term uint64) *wire.Command {
	return &wire.Command{Term: term, Op: &wire.Command_ExpireLock{ExpireLock: &wire.ExpireLock{Name: name, Token: token}}}
}

func raiseFence(component, node string) *wire.Command {
	return &wire.Command{Op: &wire.Command_RaiseFence{RaiseFence: &wire.RaiseFence{Component: component, Node: node}}}
}

func lowerFence(component, node string, token uint64) *wire.Command {
	return &wire.Command{Op: &wire.Command_LowerFence{LowerFence: &wire.LowerFence{Component: component, Node: node, Token: token}}}
}

func retry(r *wire.Recovery) *wire.Command {
	return &wire.Command{Op: &wire.Command_RetryRecovery{RetryRecovery: &wire.RetryRecovery{Component: r.GetComponent(), Run: r.GetRun()}}}
}

func drop(r *wire.Recovery) *wire.Command {
	return &wire.Command{Op: &wire.Command_DropRecovery{DropRecovery: &wire.DropRecovery{Component: r.GetComponent(), Run: r.GetRun(), Why: "dropped"}}}
}

func short(b []byte) string { return fmt.Sprintf("%x", b[:min(3, len(b))]) }
