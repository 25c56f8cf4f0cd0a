package state

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Random commands of random runs: at each step the invariants of PROTOCOL.md that concern the log.
func TestPropertyInvariantsHoldAtEachStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		seen := watch{epochs: map[string]uint64{}, tokens: map[string]uint64{}}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			was := quick(w.m)
			c := w.draw(t)
			run, _ := RunIDOf(c.GetRun())
			issuerOpen := len(c.GetRun()) == 0 || w.m.IsOpen(run)
			late := isLate(w.m, c)
			results, changes := w.m.Apply(w.m.Index()+1, entry(proto.CloneOf(c)))
			if err := Invariants(w.m); err != nil {
				t.Fatalf("after %v: %v", c, err)
			}
			if err := seen.changes(w.m, changes); err != nil {
				t.Fatalf("after %v: %v", c, err)
			}
			now := quick(w.m)
			if !issuerOpen && c.GetOpenRun() == nil && now != was {
				t.Fatalf("invariant 5: %v of a run that is not open has changed the state", c)
			}
			if (late || isRefusal(results[0])) && now.content != was.content {
				t.Fatalf("invariant 5: %v, answered %v, has changed the state", c, results[0])
			}
			if err := checkUnavailable(w.m, c, results[0], changes); err != nil {
				t.Fatal(err)
			}
			w.remember()
		}
	})
}

// quickState is what the state says, with and without what clients were answered.
type quickState struct{ content, all string }

func quick(m *Machine) quickState {
	s := m.Snapshot()
	s.Index = 0
	all, _ := MarshalSnapshot(s)
	s.Clients = nil
	content, _ := MarshalSnapshot(s)
	return quickState{string(content), string(all)}
}

func isRefusal(r *wire.Result) bool {
	return r.GetCode() != wire.Code_CODE_OK && r.GetCode() != wire.Code_CODE_QUEUED
}

// isLate reports whether a command names an appointment that is not the present one.
func isLate(m *Machine, c *wire.Command) bool {
	var ref *wire.RecoveryRef
	switch op := c.GetOp().(type) {
	case *wire.Command_Acquire:
		ref = op.Acquire.GetRecovery()
	case *wire.Command_Release:
		ref = op.Release.GetRecovery()
	case *wire.Command_FailRecovery:
		ref = op.FailRecovery.GetRecovery()
	case *wire.Command_MoveAppointment:
		ref = op.MoveAppointment.GetRecovery()
	default:
		return false
	}
	dead, _ := RunIDOf(ref.GetRun())
	r, ok := m.Recovery(ref.GetComponent(), dead)
	return !ok || r.GetIndex() != ref.GetIndex()
}

// checkUnavailable: that resources are away never parks a recovery (invariant 18).
func checkUnavailable(m *Machine, c *wire.Command, result *wire.Result, changes []Change) error {
	f := c.GetFailRecovery()
	if !f.GetUnavailable() || result.GetCode() != wire.Code_CODE_OK || len(changes) == 0 {
		return nil
	}
	dead, _ := RunIDOf(f.GetRecovery().GetRun())
	if r, _ := m.Recovery(f.GetRecovery().GetComponent(), dead); r.GetState() != wire.RecoveryState_RECOVERY_APPOINTED {
		return fmt.Errorf("invariant 18: an outage left the recovery %v", r.GetState())
	}
	return nil
}

// watch follows what may only grow.
type watch struct {
	epochs map[string]uint64
	tokens map[string]uint64
	view   uint64
}

func (w *watch) changes(m *Machine, changes []Change) error {
	for i, c := range changes {
		var err error
		switch c := c.(type) {
		case ViewChanged:
			err = w.viewed(i, c)
		case RunOpened:
			err = w.grows("invariant 6: epoch of "+c.Run.Node(), w.epochs, c.Run.Epoch)
		case ClaimGranted:
			err = w.grows("invariant 7: token of "+c.Claim.GetItem()+c.Claim.GetComponent(), w.tokens, c.Claim.GetToken())
		case ClaimAdopted:
			err = w.grows("invariant 7: token of "+c.Claim.GetItem()+c.Claim.GetComponent(), w.tokens, c.Claim.GetToken())
		case LockGranted:
			err = w.grows("invariant 7: token of lock "+c.Name, w.tokens, c.Token)
		case FenceRaised:
			err = w.grows("invariant 7: token of fence "+c.Recovery.GetComponent()+c.Recovery.GetNode(), w.tokens, c.Recovery.GetToken())
		case Appointed:
			key := fmt.Sprintf("rule 14: index of %s %x", c.Recovery.GetComponent(), c.Recovery.GetRun())
			err = w.grows(key, w.tokens, c.Recovery.GetIndex())
		}
		if err != nil {
			return err
		}
	}
	if m.Counter() >= wire.MaxToken || m.Position() >= wire.MaxToken {
		return fmt.Errorf("numbers beyond 2^53")
	}
	return nil
}

func (w *watch) viewed(at int, c ViewChanged) error {
	if at != 0 || c.Previous.Version != w.view || c.View.Version <= w.view {
		return fmt.Errorf("invariant 1: view %d of %d, as change %d, after view %d", c.View.Version, c.Previous.Version, at, w.view)
	}
	w.view = c.View.Version
	return nil
}

func (w *watch) grows(what string, numbers map[string]uint64, now uint64) error {
	if now <= numbers[what] {
		return fmt.Errorf("%s: %d after %d", what, now, numbers[what])
	}
	numbers[what] = now
	return nil
}

// The same entries give the same state, also on a replica that was restored from a snapshot in the middle.
func TestPropertyReplicasAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		twin, late := newWorld().m, newWorld().m
		restoreAt := rapid.IntRange(0, 60).Draw(t, "restore at")
		for i := range rapid.IntRange(1, 60).Draw(t, "entries") {
			var commands []*wire.Command
			for range rapid.IntRange(1, 4).Draw(t, "commands") {
				commands = append(commands, w.draw(t))
			}
			e := entry(commands...)
			index := w.m.Index() + uint64(rapid.IntRange(1, 3).Draw(t, "gap"))
			results, changes := w.m.Apply(index, proto.CloneOf(e))
			twinResults, twinChanges := twin.Apply(index, proto.CloneOf(e))
			lateResults, lateChanges := late.Apply(index, proto.CloneOf(e))
			for _, other := range [][]*wire.Result{twinResults, lateResults} {
				if diff := cmp.Diff(results, other, protocmp.Transform()); diff != "" {
					t.Fatalf("replicas answer differently:\n%s", diff)
				}
			}
			for _, other := range [][]Change{twinChanges, lateChanges} {
				if diff := cmp.Diff(changes, other, protocmp.Transform()); diff != "" {
					t.Fatalf("replicas change differently:\n%s", diff)
				}
			}
			if err := Invariants(w.m); err != nil {
				t.Fatal(err)
			}
			w.remember()
			if i == restoreAt {
				late = restored(t, late)
			}
		}
		hash := w.m.Hash()
		if twin.Hash() != hash || late.Hash() != hash || restored(t, w.m).Hash() != hash {
			t.Fatal("replicas have different states")
		}
	})
}

// restored sends a machine through the bytes of its snapshot.
func restored(t *rapid.T, m *Machine) *Machine {
	b, err := MarshalSnapshot(m.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	var s wire.Snapshot
	if err := proto.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	again, err := Restore(&s)
	if err != nil {
		t.Fatalf("a snapshot of ours is refused: %v", err)
	}
	return again
}

// From every state, faults off: every recovery ends, or is parked with every open candidate tried (invariant 16), and
// all locks become free (invariant 19).
func TestPropertyEverythingEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			w.m.Apply(w.m.Index()+1, entry(w.draw(t)))
			w.remember()
		}
		finish(t, w.m)
		for _, r := range w.m.Recoveries() {
			if active(r) {
				t.Fatalf("invariant 16: %v has not ended", r)
			}
			if r.GetState() == wire.RecoveryState_RECOVERY_PARKED {
				must(t, w.m, RunID{}, &wire.RetryRecovery{Component: r.GetComponent(), Run: r.GetRun()})
			}
		}
		finish(t, w.m)
		helper := opening(&rig{m: w.m}, "Z", "Z1", worldComponents...)
		must(t, w.m, RunID{}, helper)
		finish(t, w.m)
		if left := w.m.Recoveries(); len(left) > 0 {
			t.Fatalf("invariant 16: a fresh candidate is there, but %v has not ended", left)
		}
		for range 100 {
			for _, l := range w.m.Locks() {
				holder, _ := RunIDOf(l.GetRun())
				must(t, w.m, holder, &wire.Unlock{Name: l.GetName(), Token: l.GetToken()})
			}
		}
		if left := w.m.Locks(); len(left) > 0 {
			t.Fatalf("invariant 19: all clients are idle, but %v is held", left)
		}
	})
}

// finish lets every appointee do its work, within a bound.
func finish(t *rapid.T, m *Machine) {
	for range 200 {
		list := slices.DeleteFunc(m.Recoveries(), func(r *wire.Recovery) bool { return !active(r) })
		if len(list) == 0 {
			return
		}
		for _, r := range list {
			recoverOne(t, m, r)
		}
	}
	t.Fatalf("invariant 16: %v have not ended", m.Recoveries())
}

func recoverOne(t *rapid.T, m *Machine, r *wire.Recovery) {
	holder := appointee(r)
	token := r.GetToken()
	if r.GetState() == wire.RecoveryState_RECOVERY_APPOINTED {
		token = must(t, m, holder, &wire.Acquire{Recovery: refOf(r)}).GetToken()
	}
	f := &wire.FenceHeld{Component: r.GetComponent(), Node: r.GetNode(), Run: r.GetRun(), Token: token}
	dead, _ := RunIDOf(r.GetRun())
	for _, o := range m.Claims(ClaimFilter{Component: r.GetComponent(), Run: dead}) {
		how := wire.EndClaim_HOW_FREE
		if o.GetOrphanings() >= m.maxAttempts() {
			how = wire.EndClaim_HOW_QUARANTINE
		}
		must(t, m, holder, &wire.EndClaim{Component: o.GetComponent(), Item: o.GetItem(), Token: o.GetToken(), How: how, Fence: f})
	}
	must(t, m, holder, &wire.Release{Recovery: refOf(r), Token: token})
	if err := Invariants(m); err != nil {
		t.Fatal(err)
	}
}

func must(t *rapid.T, m *Machine, run RunID, op proto.Message) *wire.Result {
	results, _ := m.Apply(m.Index()+1, entry(command(run, op)))
	if results[0].GetCode() != wire.Code_CODE_OK {
		t.Fatalf("%T: %v", op, results[0])
	}
	return results[0]
}
