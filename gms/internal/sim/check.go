package sim

import (
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// checker looks for broken invariants of PROTOCOL.md (their numbers are in the messages).
type checker struct {
	w        *world
	log      []*logEntry // what was committed, by index
	first    uint64      // highest index that was applied anywhere
	hashes   map[uint64][32]byte
	leaders  map[uint64]*node // by term
	answered map[state.RunID]uint64
	leases   map[state.RunID]lease
	tokens   map[string]uint64 // what may only grow
	view     uint64
	sealedBy map[objectName]bool
	contexts map[endingKey][]*job // recoverers of leased work whose context has begun
	looked   map[state.RunID]bool // runs whose recoverer has looked at what they left
	over     map[state.RunID]bool // runs that a recoverer has taken for over
}

// lease is what was acknowledged to a run.
type lease struct {
	n        *node
	life     uint64
	deadline time.Duration // on its clock
}

func newChecker(w *world) *checker {
	return &checker{
		w: w, hashes: map[uint64][32]byte{}, leaders: map[uint64]*node{}, answered: map[state.RunID]uint64{},
		leases: map[state.RunID]lease{}, tokens: map[string]uint64{}, sealedBy: map[objectName]bool{},
		contexts: map[endingKey][]*job{}, looked: map[state.RunID]bool{}, over: map[state.RunID]bool{},
	}
}

// led: a term has one leader; else the simulation itself is wrong.
func (c *checker) led(n *node, term uint64) {
	if was := c.leaders[term]; was != nil && was != n {
		c.w.fail("the simulated Raft is wrong: term %d is led by %s and %s", term, was.name, n.name)
	}
	c.leaders[term] = n
}

// committed: all nodes commit the same entries.
func (c *checker) committed(n *node, index uint64, e *logEntry) {
	if index <= uint64(len(c.log)) {
		if c.log[index-1] != e {
			c.w.fail("the simulated Raft is wrong: %s commits another entry at %d", n.name, index)
		}
		return
	}
	c.log = append(c.log, e)
}

const hashEvery = 16

// applied is called after each entry that a node applies. What the log says is checked where it is applied first.
func (c *checker) applied(n *node, index uint64, e *logEntry, changes []state.Change) {
	if index%hashEvery == 0 {
		hash := n.machine.Hash()
		if was, ok := c.hashes[index]; ok && was != hash {
			c.w.fail("replicas differ: %s at index %d", n.name, index)
		}
		c.hashes[index] = hash
	}
	if index <= c.first {
		return
	}
	c.first = index
	c.w.report.Entries++
	if err := state.Invariants(n.machine); err != nil {
		c.w.fail("index %d: %w", index, err)
	}
	for _, change := range changes {
		c.changed(n, change)
	}
}

func (c *checker) changed(n *node, change state.Change) {
	switch x := change.(type) {
	case state.ViewChanged:
		if x.View.Version <= c.view || x.Previous.Version != c.view {
			c.w.fail("invariant 1: view %d of %d after %d", x.View.Version, x.Previous.Version, c.view)
		}
		c.view = x.View.Version
	case state.RunOpened:
		c.grows("invariant 6: epoch of "+x.Run.Node(), x.Run.Epoch)
	case state.RunClosed:
		c.w.report.Closed++
		c.closed(n, x.Run)
	case state.ClaimGranted:
		c.grows("invariant 7: token of "+x.Claim.GetItem(), x.Claim.GetToken())
	case state.ClaimAdopted:
		c.grows("invariant 7: token of "+x.Claim.GetItem(), x.Claim.GetToken())
	case state.LockGranted:
		c.grows("invariant 7: token of lock "+x.Name, x.Token)
	case state.FenceRaised:
		c.grows("invariant 7: token of the fence on "+x.Recovery.GetComponent()+" of "+x.Recovery.GetNode(), x.Recovery.GetToken())
	case state.ClaimEnded:
		if x.Claim.GetComponent() == leased && x.How == wire.EndClaim_HOW_COMPLETE {
			c.w.ledger.row(x.Claim.GetItem()).state = completed // it has no writes of its own
			c.w.report.Completed++
		}
	}
}

func (c *checker) grows(what string, now uint64) {
	if now <= c.tokens[what] {
		c.w.fail("%s: %d after %d", what, now, c.tokens[what])
	}
	c.tokens[what] = now
}

// leased notes what a renewal has given to a run.
func (c *checker) leased(m *member) {
	c.leases[m.id] = lease{m.n, m.n.life, m.deadline}
	if r, ok := c.w.anyReplica().Run(m.id); ok && !r.IsOpen() && m.deadline > m.n.clock() && r.Evidence == wire.Evidence_EVIDENCE_LAPSED {
		c.w.fail("invariant 13: run %v of %s is acknowledged until %v, but was closed as lapsed", short(m.id[:]), m.n.name, m.deadline)
	}
}

// closed: a leader does not close its predecessor as refused while that lives; nobody is closed as lapsed who holds an
// acknowledged lease, or whose way to the leader was whole.
func (c *checker) closed(n *node, r state.Run) {
	if m := c.w.node(r.Node()).member; r.Evidence == wire.Evidence_EVIDENCE_REFUSED && m != nil && m.id == r.ID && m.n.up {
		for _, by := range c.w.nodes {
			if by.lead != nil && by.lead.former == r.Node() && by.lead.closings[r.ID] > 0 {
				c.w.fail("rule 3: %s is closed as refused by its successor %s, and lives", r.Node(), by.name)
			}
		}
	}
	if r.Evidence != wire.Evidence_EVIDENCE_LAPSED {
		return
	}
	if l, ok := c.leases[r.ID]; ok && l.n.clock() < l.deadline {
		c.w.fail("invariant 13: %s is closed as lapsed, but its lease holds until %v of its clock, which shows %v", l.n.name, l.deadline, l.n.clock())
	}
	of := c.w.node(r.Node())
	well := max(of.wound, n.wound)
	if of.running() && c.w.now-well > 3*ttl && n.lead != nil && c.w.now-n.lead.since > 3*ttl {
		c.w.fail("invariant 14: %s is closed as lapsed by %s, though all was well between them since %v", of.name, n.name, well)
	}
}

// context: the recovery of leased work begins, so every former holder's time is over.
func (c *checker) context(j *job) {
	if l, ok := c.leases[j.dead]; ok && l.n.clock() < l.deadline && l.n.up && l.n.life == l.life {
		c.w.fail("invariant 15: %s begins to recover leased work of %s, whose lease holds until %v of its clock, which shows %v",
			j.m.n.name, l.n.name, l.deadline, l.n.clock())
	}
	key := endingKey{j.component, j.dead}
	for _, was := range c.contexts[key] {
		if was != j && was.valid() {
			c.w.fail("invariant 15: %s begins to recover leased work while %s holds its fence until %v", j.m.n.name, was.m.n.name, was.deadline)
		}
	}
	c.contexts[key] = append(c.contexts[key], j)
	c.over[j.dead] = true
}

// acts: something is done to the resource that cannot check tokens.
func (c *checker) acts(t *task) {
	if c.over[t.m.id] {
		c.w.fail("invariant 15: a run of %s acts after its recoverer has begun", t.m.n.name)
	}
}

func (c *checker) sealed(name objectName) { c.sealedBy[name] = true }

// completed: what the ledger calls a backup is in the storage, of one attempt.
func (c *checker) completed(r *row) {
	switch r.component {
	case backup:
		if o := c.w.store.objects[objectName{r.name, r.copied}]; o == nil || !o.data || o.manifest != valid {
			c.w.fail("invariant 10: %s is completed under %d, which is not in the storage", r.name, r.copied)
		}
	case restore:
		if len(c.w.target.commits[r.name]) != 1 {
			c.w.fail("invariant 12: %s is completed with %d commits", r.name, len(c.w.target.commits[r.name]))
		}
	}
}

// commit: a restore commits once, and not under a token below that of anybody who has held the row.
func (c *checker) commit(t *target, s *session) {
	if len(t.commits[s.item]) > 1 {
		c.w.fail("invariant 12: %s was committed under %v", s.item, t.commits[s.item])
	}
	if !s.whole {
		c.w.fail("invariant 12: %s was committed under %d by half", s.item, s.token)
	}
	if s.token < t.held[s.item] {
		c.w.fail("invariant 12: %s was committed under %d, after %d held its row", s.item, s.token, t.held[s.item])
	}
}

// anyReplica is the state of the node that is furthest.
func (w *world) anyReplica() *state.Machine {
	var best *state.Machine
	for _, n := range w.nodes {
		if n.up && n.machine != nil && (best == nil || n.machine.Index() > best.Index()) {
			best = n.machine
		}
	}
	if best == nil {
		best = state.New()
	}
	return best
}

// quiet: nothing is left to do.
func (w *world) quiet() bool { return w.left() == "" }

func (w *world) left() string {
	m := w.anyReplica()
	if len(m.Recoveries()) > 0 {
		return "recovery " + m.Recoveries()[0].String()
	}
	for _, c := range m.Claims(state.ClaimFilter{}) {
		if !c.GetQuarantined() {
			return "claim " + c.String()
		}
	}
	if len(m.Locks()) > 0 {
		return "lock " + m.Locks()[0].String()
	}
	if len(m.Maintenance()) > 0 {
		return "maintenance fence " + m.Maintenance()[0].String()
	}
	for _, r := range w.ledger.rows {
		if c, ok := m.Claim(r.component, r.name); r.state != completed && (!ok || !c.GetQuarantined()) {
			return "work on " + r.name
		}
	}
	for name, o := range w.store.objects {
		if o.data && w.store.garbage(name) {
			return "an object of " + name.item
		}
	}
	for _, n := range w.nodes {
		if n.member == nil || !m.IsOpen(n.member.id) || n.machine.Index() != m.Index() {
			return n.name + " has no open run, or is behind"
		}
	}
	return ""
}

// atEnd demands that everything has ended, and that all replicas are the same.
func (w *world) atEnd() {
	if w.broken != nil {
		return
	}
	if left := w.left(); left != "" {
		w.fail("invariants 11, 16, 19: long after the faults there is still %s", left)
		return
	}
	w.report.Hash = w.anyReplica().Hash()
	for _, n := range w.nodes {
		if n.machine.Hash() != w.report.Hash {
			w.fail("replicas differ at the end: %s", n.name)
		}
	}
	for _, r := range w.ledger.rows {
		if r.component == restore && r.state == completed && len(w.target.commits[r.name]) != 1 ||
			r.component == restore && r.state == planned && len(w.target.commits[r.name]) > 0 {
			w.fail("invariant 12: %s ends in state %d with %d commits", r.name, r.state, len(w.target.commits[r.name]))
		}
	}
}
