package state

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func (m *Machine) suspect(c *wire.Suspect) *wire.Result {
	id, ok := RunIDOf(c.GetRun())
	if !ok || !validText(c.GetWhy()) {
		return m.invalid("the run's id or the reason is out of bounds")
	}
	run := m.runs.all[id]
	if !m.runs.isOpen(id) {
		return m.refuse(wire.Code_CODE_RUN_NOT_OPEN, "the suspected run is not open")
	}
	if run.Suspected == !c.GetWithdrawn() {
		return m.noChange()
	}
	run.Suspected = !c.GetWithdrawn()
	m.runs.put(run)
	m.emit(SuspectedChanged{Run: run, Why: c.GetWhy()})
	return m.ok()
}

func (m *Machine) setReady(id RunID, c *wire.SetReady) *wire.Result {
	run := m.runs.all[id]
	if run.Ready == c.GetReady() {
		return m.noChange()
	}
	run.Ready = c.GetReady()
	m.ready.changed = true
	m.runs.put(run)
	m.emit(ReadyChanged{Run: run})
	return m.ok()
}

// works reports whether a role does work of components: a witness only votes, a watchdog only reports.
func works(r wire.Role) bool { return r == wire.Role_ROLE_CORE || r == wire.Role_ROLE_SPECTATOR }

// setDetail changes what a run says of itself; it stays readable until the run's last recovery has ended.
func (m *Machine) setDetail(id RunID, c *wire.SetDetail) *wire.Result {
	if c.GetKey() == "" || !validName(c.GetKey()) || c.GetRemove() && len(c.GetValue()) > 0 {
		return m.invalid("the detail is out of bounds")
	}
	run := m.runs.all[id]
	was, known := run.Open.GetDetails()[c.GetKey()]
	if c.GetRemove() && !known || !c.GetRemove() && known && string(was) == string(c.GetValue()) {
		return m.noChange()
	}
	run.Open = proto.CloneOf(run.Open)
	if c.GetRemove() {
		delete(run.Open.Details, c.GetKey())
	} else {
		if run.Open.Details == nil {
			run.Open.Details = map[string][]byte{}
		}
		run.Open.Details[c.GetKey()] = c.GetValue()
		if !validDetails(run.Open.GetDetails()) {
			return m.refuse(wire.Code_CODE_TOO_LARGE, "the run's details would have more than 8 KiB")
		}
	}
	m.runs.put(run)
	m.emit(DetailsChanged{Run: run})
	return m.ok()
}

// registerComponent makes the run a candidate for the component's recoveries; those that wait for one wake.
func (m *Machine) registerComponent(id RunID, c *wire.RegisterComponent) *wire.Result {
	if !validComponent(c.GetComponent()) {
		return m.invalid("the component is out of bounds")
	}
	run := m.runs.all[id]
	if known := run.Component(c.GetComponent().GetName()); known != nil {
		if proto.Equal(known, c.GetComponent()) {
			return m.noChange()
		}
		return m.invalid("the component is registered with other properties")
	}
	if !works(run.Open.GetRole()) {
		return m.invalid("the run's role has no components")
	}
	if len(run.Open.GetComponents()) >= MaxComponents {
		return m.invalid("the run has too many components")
	}
	run.Open = proto.CloneOf(run.Open)
	run.Open.Components = append(run.Open.Components, proto.CloneOf(c.GetComponent()))
	m.runs.put(run)
	m.emit(ComponentRegistered{Run: run, Component: c.GetComponent().GetName()})
	m.wake(c.GetComponent().GetName())
	return m.ok()
}

// replaceHome lets the node's next run come from another home, once, and burns the present one unless a run of it is open:
// what comes back in two places, or with a part of its memory, is never let in beside the new one.
func (m *Machine) replaceHome(c *wire.ReplaceHome) *wire.Result {
	node, ok := m.nodes[c.GetNode()]
	if !ok {
		return m.refuse(wire.Code_CODE_NOT_FOUND, "the node is not known")
	}
	last, _ := RunIDOf(node.GetLastRun())
	burns := !m.runs.isOpen(last) && !m.IsBurnt(node.GetHome())
	if node.GetReplaced() && !burns {
		return m.noChange()
	}
	if burns {
		m.burn(node)
	}
	next := proto.CloneOf(node)
	next.Replaced = true
	m.nodes[c.GetNode()] = next
	return m.ok()
}

// burn has a node's home never be let in again.
func (m *Machine) burn(node *wire.Node) {
	m.burnt = append(m.burnt, &wire.BurntHome{Home: node.GetHome(), Node: node.GetName(), Position: m.Position()})
	m.burnt = slices.Clone(m.burnt[max(0, len(m.burnt)-maxBurnt):])
}

// forgetNode removes what is kept of a node that has no open run and nothing to recover. Its home is burnt when that is
// for good.
func (m *Machine) forgetNode(c *wire.ForgetNode) *wire.Result {
	node, ok := m.nodes[c.GetNode()]
	if !ok {
		return m.refuse(wire.Code_CODE_NOT_FOUND, "the node is not known")
	}
	if last, _ := RunIDOf(node.GetLastRun()); m.runs.isOpen(last) {
		return m.busy(node.GetLastRun(), "a run of the node is open")
	}
	for key := range m.recoveries.queues {
		if key.node == c.GetNode() {
			return m.busy(nil, "a recovery of the node has not ended")
		}
	}
	delete(m.nodes, c.GetNode())
	if c.GetBurn() {
		m.burn(node)
	}
	m.emit(NodeForgotten{Node: c.GetNode(), Burnt: c.GetBurn()})
	return m.ok()
}

// maxBurnt homes are kept.
const maxBurnt = 1000

// IsBurnt reports whether a home was burnt when its node was forgotten or its home replaced: it is never let in again.
func (m *Machine) IsBurnt(home []byte) bool {
	return slices.ContainsFunc(m.burnt, func(b *wire.BurntHome) bool { return string(b.GetHome()) == string(home) })
}

// Burnt are the homes that are never let in again, oldest first.
func (m *Machine) Burnt() []*wire.BurntHome { return slices.Clone(m.burnt) }

// burnt judges the burnt homes of a snapshot.
func (c *checker) burnt() error {
	if len(c.s.GetBurnt()) > maxBurnt {
		return fmt.Errorf("check burnt homes: %d are too many", len(c.s.GetBurnt()))
	}
	last := uint64(0)
	for _, b := range c.s.GetBurnt() {
		if len(b.GetHome()) != idSize || !validName(b.GetNode()) || !c.reached(b.GetPosition()) || b.GetPosition() < last {
			return fmt.Errorf("check burnt homes: that of %q is out of bounds", b.GetNode())
		}
		last = b.GetPosition()
	}
	return nil
}

// notePositions raises what homes are known to hold; it never lowers it, and a home that is not the node's is passed over.
func (m *Machine) notePositions(c *wire.NotePositions) *wire.Result {
	result := m.noChange()
	for _, p := range c.GetPositions() {
		if m.raisePosition(p.GetNode(), p.GetHome(), p.GetIndex()) {
			result = m.ok()
		}
	}
	return result
}

func (m *Machine) raisePosition(name string, home []byte, index uint64) bool {
	node, ok := m.nodes[name]
	if !ok || string(node.GetHome()) != string(home) || index <= node.GetPosition() || index > m.index {
		return false
	}
	next := proto.CloneOf(node)
	next.Position = index
	m.nodes[name] = next
	return true
}

// Run returns what is known of a run.
func (m *Machine) Run(id RunID) (Run, bool) {
	r, ok := m.runs.all[id]
	return r, ok
}

// IsOpen reports whether the run stands.
func (m *Machine) IsOpen(id RunID) bool { return m.runs.isOpen(id) }

// Runs are all known runs, oldest first.
func (m *Machine) Runs() []Run {
	list := make([]Run, 0, len(m.runs.all))
	for _, r := range m.runs.all {
		list = append(list, r)
	}
	slices.SortFunc(list, byAge)
	return list
}

// Node returns what stays of a node between its runs.
func (m *Machine) Node(name string) (*wire.Node, bool) {
	n, ok := m.nodes[name]
	return n, ok
}

// Nodes are all known nodes, by name.
func (m *Machine) Nodes() []*wire.Node { return sortedValues(m.nodes) }
