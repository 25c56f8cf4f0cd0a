package state

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Run is a run of a node as the group knows it: open, or closed and still named by a recovery or a kept view.
type Run struct {
	ID        RunID
	Open      *wire.OpenRun // what it said at its opening, with components registered since; read only
	Epoch     uint64        // position of its opening
	Ready     bool
	Suspected bool
	Closed    uint64 // position of its closing, 0 while open
	Evidence  wire.Evidence
	Detail    string // why it was closed, for people
	Quiesced  bool   // its warden has said that nothing of it is left
	Started   int64  // milliseconds since 1970 by the clock of the leader that admitted it; 0 when it did not say
}

// IsOpen reports whether the run stands.
func (r Run) IsOpen() bool { return r.Closed == 0 }

// Node is the name of the run's node.
func (r Run) Node() string { return r.Open.GetNode() }

// Protocol is the newest that the run's process reads.
func (r Run) Protocol() uint32 { return max(1, r.Open.GetProtocol()) }

// Registered reports whether the run recovers the component.
func (r Run) Registered(component string) bool {
	return r.Component(component) != nil
}

// Component is what the run said of a component; nil when it has not registered it.
func (r Run) Component(name string) *wire.Component {
	for _, c := range r.Open.GetComponents() {
		if c.GetName() == name {
			return c
		}
	}
	return nil
}

// runTable holds runs by id, the open ones also in the order of views.
type runTable struct {
	all  map[RunID]Run
	open []RunID // by epoch, then node
	// changed: the open ones are not those of the last view.
	changed bool
}

func newRunTable() runTable { return runTable{all: map[RunID]Run{}} }

func (t *runTable) isOpen(id RunID) bool {
	r, ok := t.all[id]
	return ok && r.IsOpen()
}

func (t *runTable) byAge(a, b RunID) int {
	return byAge(t.all[a], t.all[b])
}

func byAge(a, b Run) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Node(), b.Node()), bytes.Compare(a.ID[:], b.ID[:]))
}

// put adds an open run or replaces what is known of it.
func (t *runTable) put(r Run) {
	_, known := t.all[r.ID]
	t.all[r.ID] = r
	if !known && r.IsOpen() {
		at, _ := slices.BinarySearchFunc(t.open, r.ID, t.byAge)
		t.open = slices.Insert(t.open, at, r.ID)
		t.changed = true
	}
}

func (t *runTable) close(r Run) {
	t.all[r.ID] = r
	t.open = slices.DeleteFunc(t.open, func(id RunID) bool { return id == r.ID })
	t.changed = true
}

// openRun admits a run (PROTOCOL.md 1): only when its sender knows the node's last run, which it closes if need be.
func (m *Machine) openRun(c *wire.OpenRun) *wire.Result {
	if !validOpenRun(c) {
		return m.invalid("the run's description is out of bounds")
	}
	id, _ := RunIDOf(c.GetRun())
	node := m.nodes[c.GetNode()]
	last, _ := RunIDOf(node.GetLastRun())
	if refusal := m.checkHome(c, node, last); refusal != nil {
		return refusal
	}
	if refusal := m.checkProtocol(c); refusal != nil {
		return refusal
	}
	if id == last && m.runs.isOpen(id) {
		return &wire.Result{Code: wire.Code_CODE_NO_CHANGE, Position: node.GetLastEpoch(), Epoch: node.GetLastEpoch()}
	}
	if c.GetPrevEpoch() != node.GetLastEpoch() || id == last || node.GetLastEpoch() >= m.Position() {
		r := m.refuse(wire.Code_CODE_STALE, "the group knows another last run of the node")
		r.Epoch = node.GetLastEpoch()
		return r
	}
	if _, used := m.runs.all[id]; used {
		return m.invalid("the run's id is used already")
	}
	m.admit(id, c, node, last)
	return m.ok()
}

// checkHome refuses a home that is not the node's: a name belongs to one home until an operator replaces it.
func (m *Machine) checkHome(c *wire.OpenRun, node *wire.Node, last RunID) *wire.Result {
	if m.IsBurnt(c.GetHome()) {
		return m.refuse(wire.Code_CODE_FORGOTTEN, "this home was given up: its node was forgotten, or its home replaced")
	}
	if node == nil || bytes.Equal(node.GetHome(), c.GetHome()) && bytes.Equal(node.GetNodeKey(), c.GetNodeKey()) {
		return nil
	}
	if m.runs.isOpen(last) {
		r := m.refuse(wire.Code_CODE_NAME_TAKEN, "a run of another home stands under this name")
		r.Holder = last.Bytes()
		return r
	}
	if !node.GetReplaced() {
		return m.refuse(wire.Code_CODE_OTHER_HOME, "the node is on record with another home")
	}
	return nil
}

func (m *Machine) admit(id RunID, c *wire.OpenRun, node *wire.Node, last RunID) {
	previous, hasPrevious := m.runs.all[last]
	if hasPrevious && previous.IsOpen() {
		m.endRun(previous, closing{evidence: wire.Evidence_EVIDENCE_NEWER_RUN, detail: "a newer run of the node was opened", orders: c.GetOrders()})
		previous = m.runs.all[last]
	}
	next := &wire.Node{
		Name: c.GetNode(), Home: c.GetHome(), NodeKey: c.GetNodeKey(),
		LastEpoch: m.Position(), LastRun: id.Bytes(), Position: node.GetPosition(),
	}
	if bytes.Equal(node.GetHome(), c.GetHome()) {
		next.Replaced = node.GetReplaced() // still to be used by the other home
	} else {
		next.Position = 0
	}
	m.nodes[c.GetNode()] = next
	open := proto.CloneOf(c)
	open.Orders = nil // they concern the run before
	run := Run{ID: id, Open: open, Epoch: m.Position(), Started: m.time}
	m.runs.put(run)
	opened := RunOpened{Run: run}
	if hasPrevious {
		opened.Previous = &previous
	}
	m.emit(opened)
	for _, comp := range c.GetComponents() {
		m.wake(comp.GetName())
	}
}

// Components are those that would have to be recovered if the run were closed now: registered ones, and those that it has
// a claim of, sorted.
func (m *Machine) Components(id RunID) []string {
	run, ok := m.runs.all[id]
	if !ok {
		return nil
	}
	return m.left(run, closing{})
}

// closing says why and with which consequences a run is closed.
type closing struct {
	evidence wire.Evidence
	detail   string
	orders   []*wire.CandidateOrder
	settled  []string
}

func (m *Machine) closeRun(issuer RunID, c *wire.CloseRun) *wire.Result {
	id, ok := RunIDOf(c.GetRun())
	if !ok || !validClosing(c) {
		return m.invalid("the closing is out of bounds")
	}
	run, known := m.runs.all[id]
	if !known {
		return m.refuse(wire.Code_CODE_RUN_NOT_OPEN, "the run is not known")
	}
	if run.Node() != c.GetNode() {
		return m.invalid("the run is not of this node")
	}
	if !run.IsOpen() {
		return m.noChange()
	}
	if c.GetEvidence() == wire.Evidence_EVIDENCE_LEFT && !issuer.IsZero() && issuer != id {
		return m.invalid("only a run itself leaves")
	}
	m.endRun(run, closing{evidence: c.GetEvidence(), detail: c.GetDetail(), orders: c.GetOrders(), settled: c.GetSettled()})
	m.raisePosition(run.Node(), run.Open.GetHome(), c.GetPosition())
	return m.ok()
}

func validClosing(c *wire.CloseRun) bool {
	if c.GetEvidence() < wire.Evidence_EVIDENCE_OBITUARY || c.GetEvidence() > wire.Evidence_EVIDENCE_OPERATOR ||
		!validText(c.GetDetail()) || len(c.GetSettled()) > MaxComponents {
		return false
	}
	return validOrders(c.GetOrders())
}

func validOrders(list []*wire.CandidateOrder) bool {
	if len(list) > MaxComponents {
		return false
	}
	for _, o := range list {
		if !validName(o.GetComponent()) || len(o.GetRuns()) > 1024 {
			return false
		}
		for _, b := range o.GetRuns() {
			if _, ok := RunIDOf(b); !ok {
				return false
			}
		}
	}
	return true
}

// endRun closes a run with everything that follows from it, at one index: its locks, maintenance fences and claims, the
// appointments and fences that it had, and new appointments for what it left.
func (m *Machine) endRun(run Run, why closing) {
	left, stopping := m.left(run, why), m.Stopping()
	run.Closed, run.Evidence, run.Detail = m.Position(), why.evidence, why.detail
	m.runs.close(run)
	m.ready.changed = m.ready.changed || run.Ready
	if node := m.nodes[run.Node()]; isRun(node.GetLastRun(), run.ID) {
		node = proto.CloneOf(node)
		node.Gone = m.time
		m.nodes[run.Node()] = node
	}
	m.emit(RunClosed{Run: run, GroupShutdown: stopping})
	m.freeLocksOf(run.ID)
	m.lowerFencesOf(run.ID)
	m.orphanClaimsOf(run.ID)
	m.handOverFrom(run.ID)
	for _, component := range left {
		m.openRecovery(component, run, hostOrder(why.orders, component))
	}
	if len(left) == 0 {
		m.dropBound(run.ID)
	}
	m.answers.forgetRun(run.ID)
}

// left are the components of a closing run that must be recovered (PROTOCOL.md 18): those it had registered or has a
// claim of, but for those that a leaver says have no work and of which there is no claim and no fence.
func (m *Machine) left(run Run, why closing) []string {
	names := map[string]bool{}
	for _, c := range run.Open.GetComponents() {
		names[c.GetName()] = true
	}
	for component := range m.claims.of(run.ID) {
		names[component] = true
	}
	if why.evidence == wire.Evidence_EVIDENCE_LEFT {
		for _, component := range why.settled {
			if len(m.claims.of(run.ID)[component]) == 0 && !m.hasFence(run.ID, component) {
				delete(names, component)
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// hasFence reports whether the run raised, or was appointed to, a fence of the component.
func (m *Machine) hasFence(id RunID, component string) bool {
	for key, r := range m.recoveries.all {
		if key.component == component && isRun(r.GetAppointee(), id) {
			return true
		}
	}
	for key, f := range m.maintenance {
		if key.component == component && isRun(f.GetRun(), id) {
			return true
		}
	}
	return false
}

func isRun(b []byte, id RunID) bool { return string(b) == string(id[:]) }

func hostOrder(orders []*wire.CandidateOrder, component string) [][]byte {
	for _, o := range orders {
		if o.GetComponent() == component {
			return o.GetRuns()
		}
	}
	return nil
}
