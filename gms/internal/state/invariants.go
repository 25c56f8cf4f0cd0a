package state

import (
	"fmt"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Invariants checks those of PROTOCOL.md that one state shows, from its snapshot alone and by other means than the code. It
// is for tests and simulations: it costs a walk over the whole state.
func Invariants(m *Machine) error {
	s := m.Snapshot()
	runs := map[string]*wire.Run{}
	for _, r := range s.GetRuns() {
		runs[string(r.GetOpen().GetRun())] = r
	}
	open := func(b []byte) bool { r, ok := runs[string(b)]; return ok && r.GetClosed() == 0 }
	for _, step := range []func(*wire.Snapshot, map[string]*wire.Run, func([]byte) bool) error{
		invariantViews, invariantRecoveries, invariantParked, invariantClaims, invariantLocks,
	} {
		if err := step(s, runs, open); err != nil {
			return err
		}
	}
	return invariantFences(m, s, runs)
}

func invariantViews(s *wire.Snapshot, runs map[string]*wire.Run, open func([]byte) bool) error {
	var last uint64
	for _, v := range s.GetViews() {
		if v.GetVersion() <= last {
			return fmt.Errorf("invariant 1: view %d after %d", v.GetVersion(), last)
		}
		last = v.GetVersion()
	}
	if len(s.GetViews()) == 0 {
		return nil
	}
	named := map[string]bool{}
	for _, b := range s.GetViews()[len(s.GetViews())-1].GetRuns() {
		named[string(b)] = true
	}
	for id := range runs {
		if open([]byte(id)) != named[id] {
			return fmt.Errorf("invariant 1: the last view and the open runs differ in %x", id)
		}
	}
	return nil
}

func invariantRecoveries(s *wire.Snapshot, runs map[string]*wire.Run, open func([]byte) bool) error {
	raised, working := map[string]bool{}, map[string]bool{}
	for _, r := range s.GetRecoveries() {
		guarded := fmt.Sprintf("%q on %q", r.GetComponent(), r.GetNode())
		if r.GetState() != wire.RecoveryState_RECOVERY_QUEUED {
			if working[guarded] {
				return fmt.Errorf("rule 9: two recoveries at work of %s", guarded)
			}
			working[guarded] = true
		}
		if r.GetState() == wire.RecoveryState_RECOVERY_RAISED {
			if raised[guarded] {
				return fmt.Errorf("invariant 2: two fences raised for %s", guarded)
			}
			raised[guarded] = true
		}
		if len(r.GetAppointee()) == 0 {
			continue
		}
		by := runs[string(r.GetAppointee())]
		if !open(r.GetAppointee()) || by.GetOpen().GetRole() != wire.Role_ROLE_CORE || !registeredIn(by, r.GetComponent()) {
			return fmt.Errorf("invariant 2: %s is appointed to %x, which is no candidate", guarded, r.GetAppointee())
		}
		for _, t := range r.GetTried() {
			if string(t) == string(r.GetAppointee()) {
				return fmt.Errorf("invariant 2: %s is appointed to %x, which has tried", guarded, t)
			}
		}
	}
	return nil
}

func registeredIn(r *wire.Run, component string) bool {
	for _, c := range r.GetOpen().GetComponents() {
		if c.GetName() == component {
			return true
		}
	}
	return false
}

// invariantParked: a recovery is nobody's only when no open candidate is left that has not tried it (rule 8, invariant 16).
func invariantParked(s *wire.Snapshot, runs map[string]*wire.Run, open func([]byte) bool) error {
	for _, r := range s.GetRecoveries() {
		if len(r.GetAppointee()) > 0 || r.GetState() == wire.RecoveryState_RECOVERY_QUEUED {
			continue
		}
		tried := map[string]bool{}
		for _, t := range r.GetTried() {
			tried[string(t)] = true
		}
		for id, run := range runs {
			if open([]byte(id)) && !tried[id] && run.GetOpen().GetRole() == wire.Role_ROLE_CORE && registeredIn(run, r.GetComponent()) {
				return fmt.Errorf("invariant 16: %v of %q on %q, but %x has not tried it", r.GetState(), r.GetComponent(), r.GetNode(), id)
			}
		}
	}
	return nil
}

func invariantClaims(s *wire.Snapshot, _ map[string]*wire.Run, open func([]byte) bool) error {
	items := map[string]bool{}
	for _, c := range s.GetClaims() {
		name := fmt.Sprintf("%q of %q", c.GetItem(), c.GetComponent())
		if items[name] {
			return fmt.Errorf("invariant 4: two claims of %s", name)
		}
		items[name] = true
		switch {
		case c.GetQuarantined():
		case c.GetOrphan():
			if !recovering(s, c.GetComponent(), c.GetRun(), nil) {
				return fmt.Errorf("invariants 3, 20: the orphan %s has no owner", name)
			}
		case !open(c.GetRun()):
			return fmt.Errorf("invariant 4: %s is held by a closed run", name)
		case c.GetAdopted() != nil:
			if !recovering(s, c.GetComponent(), c.GetAdopted().GetRun(), c) {
				return fmt.Errorf("invariant 4: %s is adopted, but its fence is not raised by the holder", name)
			}
		}
	}
	return nil
}

// recovering finds the recovery of a dead run; with a claim, the raised fence that the claim was adopted under.
func recovering(s *wire.Snapshot, component string, dead []byte, adopted *wire.ClaimState) bool {
	for _, r := range s.GetRecoveries() {
		if r.GetComponent() != component || string(r.GetRun()) != string(dead) {
			continue
		}
		return adopted == nil || r.GetState() == wire.RecoveryState_RECOVERY_RAISED &&
			string(r.GetAppointee()) == string(adopted.GetRun()) && r.GetToken() == adopted.GetAdopted().GetToken()
	}
	return false
}

func invariantLocks(s *wire.Snapshot, _ map[string]*wire.Run, open func([]byte) bool) error {
	for _, l := range s.GetLocks() {
		if !open(l.GetRun()) {
			return fmt.Errorf("invariant 4: lock %q is held by a closed run", l.GetName())
		}
		for _, w := range l.GetWaiters() {
			if !open(w) {
				return fmt.Errorf("invariant 19: the closed run %x waits for lock %q", w, l.GetName())
			}
		}
	}
	for _, f := range s.GetMaintenance() {
		if !open(f.GetRun()) {
			return fmt.Errorf("invariant 20: a maintenance fence of a closed run on %q", f.GetNode())
		}
	}
	return nil
}

// invariantFences: a node is fenced exactly while a recovery of one of its runs has not ended, or under maintenance.
func invariantFences(m *Machine, s *wire.Snapshot, runs map[string]*wire.Run) error {
	fenced := map[string]bool{}
	for _, r := range s.GetRecoveries() {
		fenced[r.GetComponent()+"\x00"+r.GetNode()] = true
	}
	for _, f := range s.GetMaintenance() {
		fenced[f.GetComponent()+"\x00"+f.GetNode()] = true
	}
	for _, r := range runs {
		for _, c := range r.GetOpen().GetComponents() {
			node := r.GetOpen().GetNode()
			if m.IsFenced(c.GetName(), node) != fenced[c.GetName()+"\x00"+node] {
				return fmt.Errorf("invariant 17: IsFenced(%q, %q) is %v", c.GetName(), node, m.IsFenced(c.GetName(), node))
			}
		}
	}
	return nil
}
