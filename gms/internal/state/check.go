package state

import (
	"fmt"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// checker judges a snapshot: what Apply relies on, and the invariants of PROTOCOL.md that one state can show. Order and
// completeness of the form are judged by comparing bytes afterwards.
type checker struct {
	s          *wire.Snapshot
	position   uint64
	runs       map[RunID]*wire.Run
	nodes      map[string]*wire.Node
	recoveries map[recoveryKey]*wire.Recovery
}

func check(s *wire.Snapshot) error {
	c := &checker{
		s: s, position: s.GetBase() + s.GetIndex(),
		runs: map[RunID]*wire.Run{}, nodes: map[string]*wire.Node{}, recoveries: map[recoveryKey]*wire.Recovery{},
	}
	steps := []func() error{
		c.numbers, c.members, c.burnt, c.history, c.marks, c.recovering, c.locks, c.claims, c.maintenance, c.cache, c.clients,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) open(b []byte) bool {
	id, ok := RunIDOf(b)
	r, known := c.runs[id]
	return ok && known && r.GetClosed() == 0
}

func (c *checker) granted(token uint64) bool { return token > 0 && token <= c.s.GetCounter() }

func (c *checker) reached(position uint64) bool { return position > 0 && position <= c.position }

func (c *checker) numbers() error {
	s := c.s
	if s.GetBase() > wire.MaxToken-headroom || s.GetIndex() > headroom || s.GetCounter() >= wire.MaxToken || s.GetCounter() < s.GetBase() {
		return fmt.Errorf("check numbers: index %d, base %d or counter %d is out of bounds", s.GetIndex(), s.GetBase(), s.GetCounter())
	}
	if !validSettings(s.GetSettings()) {
		return fmt.Errorf("check settings: out of bounds")
	}
	formed := len(s.GetClusterId()) == idSize && s.GetIndex() > 0
	empty := len(s.GetClusterId()) == 0 && s.GetCounter() == 0 && len(s.GetNodes()) == 0 && len(s.GetRuns()) == 0 &&
		len(s.GetClients()) == 0 && len(s.GetCache()) == 0 && len(s.GetClaims()) == 0 && len(s.GetOrphaned()) == 0 &&
		len(s.GetEnded()) == 0 && len(s.GetViews()) == 0 && len(s.GetBurnt()) == 0 && len(s.GetReadyViews()) == 0 && s.GetTerm() == 0
	if !formed && !empty {
		return fmt.Errorf("check group: there is content, but the group is not formed")
	}
	return nil
}

func (c *checker) members() error {
	for _, n := range c.s.GetNodes() {
		_, ok := RunIDOf(n.GetLastRun())
		if !ok || !validName(n.GetName()) || len(n.GetHome()) != idSize || len(n.GetNodeKey()) != keySize || !c.reached(n.GetLastEpoch()) {
			return fmt.Errorf("check nodes: %q is out of bounds", n.GetName())
		}
		if n.GetPosition() > c.s.GetIndex() {
			return fmt.Errorf("check nodes: %q holds more than the log has", n.GetName())
		}
		c.nodes[n.GetName()] = n
	}
	for _, r := range c.s.GetRuns() {
		id, ok := RunIDOf(r.GetOpen().GetRun())
		if !ok || !validOpenRun(r.GetOpen()) || !c.reached(r.GetEpoch()) || r.GetClosed() > c.position || !validText(r.GetDetail()) {
			return fmt.Errorf("check runs: %v is out of bounds", id)
		}
		if _, twice := c.runs[id]; twice {
			return fmt.Errorf("check runs: %v is there twice", id)
		}
		if r.GetClosed() != 0 && (r.GetClosed() < r.GetEpoch() || r.GetEvidence() == wire.Evidence_EVIDENCE_UNSPECIFIED) {
			return fmt.Errorf("check runs: %v is closed before it was opened, or without evidence", id)
		}
		node := c.nodes[r.GetOpen().GetNode()]
		if r.GetClosed() == 0 && (!isRun(node.GetLastRun(), id) || node.GetLastEpoch() != r.GetEpoch()) {
			return fmt.Errorf("check runs: %v is open, but not the last of its node", id)
		}
		if r.GetClosed() == 0 && node.GetGone() != 0 {
			return fmt.Errorf("check runs: %v is open, and its node is gone", id)
		}
		c.runs[id] = r
	}
	return nil
}

func (c *checker) history() error {
	if len(c.s.GetViews()) > maxViews || len(c.s.GetEnded()) > maxEnded {
		return fmt.Errorf("check views: %d views and %d ended recoveries are too many", len(c.s.GetViews()), len(c.s.GetEnded()))
	}
	last := uint64(0)
	standing := 0
	for _, v := range c.s.GetViews() {
		if v.GetVersion() <= last || !c.reached(v.GetVersion()) {
			return fmt.Errorf("check views: version %d is out of order", v.GetVersion())
		}
		last, standing = v.GetVersion(), 0
		for _, b := range v.GetRuns() {
			id, _ := RunIDOf(b)
			if c.runs[id] == nil {
				return fmt.Errorf("check views: version %d names the unknown run %v", v.GetVersion(), id)
			}
			if c.open(b) {
				standing++
			}
		}
	}
	for _, r := range c.runs {
		if r.GetClosed() == 0 {
			standing--
		}
	}
	if standing != 0 {
		return fmt.Errorf("check views: the last view is not the open runs")
	}
	return nil
}

func (c *checker) recovering() error {
	first := map[fenceKey]bool{}
	for _, r := range c.s.GetRecoveries() {
		key := keyOfRecovery(r)
		dead := c.runs[key.run]
		if dead.GetClosed() == 0 || dead.GetOpen().GetNode() != r.GetNode() || !validName(r.GetComponent()) || r.GetSince() != dead.GetClosed() {
			return fmt.Errorf("check recoveries: %q of %v is of no closed run", r.GetComponent(), key.run)
		}
		if c.recoveries[key] != nil {
			return fmt.Errorf("check recoveries: %q of %v is there twice", r.GetComponent(), key.run)
		}
		c.recoveries[key] = r
		if queued := r.GetState() == wire.RecoveryState_RECOVERY_QUEUED; queued != first[guards(r)] {
			return fmt.Errorf("check recoveries: %q of %v is out of its queue", r.GetComponent(), key.run)
		}
		first[guards(r)] = true
		if len(r.GetSteps()) > MaxSteps {
			return fmt.Errorf("check recoveries: %q of %v has %d steps", r.GetComponent(), key.run, len(r.GetSteps()))
		}
		if err := c.appointment(r); err != nil {
			return fmt.Errorf("check recoveries: %q of %v %w", r.GetComponent(), key.run, err)
		}
	}
	return nil
}

func (c *checker) appointment(r *wire.Recovery) error {
	if r.GetState() < wire.RecoveryState_RECOVERY_WAITING || r.GetState() > wire.RecoveryState_RECOVERY_QUEUED {
		return fmt.Errorf("has no state")
	}
	if !active(r) {
		if len(r.GetAppointee()) > 0 {
			return fmt.Errorf("is nobody's and has an appointee")
		}
		return nil
	}
	id, _ := RunIDOf(r.GetAppointee())
	run := Run{Open: c.runs[id].GetOpen()}
	if !c.open(r.GetAppointee()) || run.Open.GetRole() != wire.Role_ROLE_CORE || !run.Registered(r.GetComponent()) ||
		containsRun(r.GetTried(), id) || r.GetIndex() == 0 {
		return fmt.Errorf("is appointed to %v, which is no candidate", id)
	}
	if r.GetState() == wire.RecoveryState_RECOVERY_RAISED && !c.granted(r.GetToken()) {
		return fmt.Errorf("is raised without a token")
	}
	return nil
}

func (c *checker) locks() error {
	for _, l := range c.s.GetLocks() {
		if !validName(l.GetName()) || !c.open(l.GetRun()) || !c.granted(l.GetToken()) {
			return fmt.Errorf("check locks: %q is not held by an open run", l.GetName())
		}
		seen := map[string]bool{string(l.GetRun()): true}
		for _, b := range l.GetWaiters() {
			if !c.open(b) || seen[string(b)] {
				return fmt.Errorf("check locks: a waiter of %q is not open or there twice", l.GetName())
			}
			seen[string(b)] = true
		}
	}
	return nil
}

func (c *checker) claims() error {
	for _, cl := range c.s.GetClaims() {
		id, ok := RunIDOf(cl.GetRun())
		if !ok || !validName(cl.GetComponent()) || !validName(cl.GetItem()) || !c.granted(cl.GetToken()) {
			return fmt.Errorf("check claims: %q of %q is out of bounds", cl.GetItem(), cl.GetComponent())
		}
		if !c.owned(cl, id) {
			return fmt.Errorf("check claims: %q of %q has no owner", cl.GetItem(), cl.GetComponent())
		}
	}
	for _, o := range c.s.GetOrphaned() {
		if !validName(o.GetComponent()) || !validName(o.GetItem()) || o.GetOrphanings() == 0 || !c.reached(o.GetPosition()) {
			return fmt.Errorf("check claims: what is remembered of %q of %q is out of bounds", o.GetItem(), o.GetComponent())
		}
	}
	if len(c.s.GetOrphaned()) > maxOrphanedItems {
		return fmt.Errorf("check claims: %d orphaned items are too many", len(c.s.GetOrphaned()))
	}
	return nil
}

// owned: a held claim has an open holder, an adopted one the fence, an orphan a recovery; a quarantined one nobody.
func (c *checker) owned(cl *wire.ClaimState, id RunID) bool {
	f := cl.GetAdopted()
	switch {
	case cl.GetQuarantined():
		return !cl.GetOrphan() && f == nil
	case cl.GetOrphan():
		return f == nil && c.recoveries[recoveryKey{cl.GetComponent(), id}] != nil
	case f != nil:
		dead, _ := RunIDOf(f.GetRun())
		r := c.recoveries[recoveryKey{cl.GetComponent(), dead}]
		return r.GetState() == wire.RecoveryState_RECOVERY_RAISED && isRun(r.GetAppointee(), id) &&
			r.GetToken() == f.GetToken() && f.GetComponent() == cl.GetComponent() && f.GetNode() == r.GetNode()
	}
	return c.open(cl.GetRun())
}

func (c *checker) maintenance() error {
	for _, f := range c.s.GetMaintenance() {
		if !validName(f.GetComponent()) || !validName(f.GetNode()) || !c.open(f.GetRun()) || !c.granted(f.GetToken()) {
			return fmt.Errorf("check maintenance fences: %q on %q is not held by an open run", f.GetComponent(), f.GetNode())
		}
	}
	return nil
}

func (c *checker) cache() error {
	size := 0
	for _, e := range c.s.GetCache() {
		if !validCacheKey(e.GetKey()) || len(e.GetValue()) > MaxValue || !c.reached(e.GetVersion()) {
			return fmt.Errorf("check cache: entry %v is out of bounds", cacheKey(e.GetKey()))
		}
		size += sizeOf(e)
		id, ok := RunIDOf(e.GetBound())
		if len(e.GetBound()) > 0 && (!ok || c.runs[id] == nil) {
			return fmt.Errorf("check cache: entry %v is bound to the unknown run %v", cacheKey(e.GetKey()), id)
		}
	}
	if size > MaxCache {
		return fmt.Errorf("check cache: %d bytes are too many", size)
	}
	return nil
}

func (c *checker) clients() error {
	if len(c.s.GetClients()) > MaxClients {
		return fmt.Errorf("check clients: %d are too many", len(c.s.GetClients()))
	}
	for _, cl := range c.s.GetClients() {
		if len(cl.GetId()) != idSize || len(cl.GetRun()) > 0 && !c.open(cl.GetRun()) || !c.reached(cl.GetLastUsed()) || len(cl.GetAnswers()) > MaxAnswers {
			return fmt.Errorf("check clients: %x is out of bounds", cl.GetId())
		}
		last := cl.GetAcked()
		for _, a := range cl.GetAnswers() {
			if a.GetSeq() <= last || a.GetResult() == nil {
				return fmt.Errorf("check clients: an answer to %x is out of order", cl.GetId())
			}
			last = a.GetSeq()
		}
	}
	return nil
}
