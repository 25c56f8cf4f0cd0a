package state

import (
	"cmp"
	"slices"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// raiseFence raises a maintenance fence on a component of a living node. It is a kind of its own: never appointed,
// ended by its raiser or with its raiser's run (PROTOCOL.md 19).
func (m *Machine) raiseFence(run RunID, c *wire.RaiseFence) *wire.Result {
	if !validName(c.GetComponent()) || !validName(c.GetNode()) {
		return m.invalid("component or node is out of bounds")
	}
	key := fenceKey{c.GetComponent(), c.GetNode()}
	if f, ok := m.maintenance[key]; ok {
		return m.busy(f.GetRun(), "a maintenance fence is raised")
	}
	if queue := m.recoveries.queues[key]; len(queue) > 0 {
		first := m.recoveries.all[recoveryKey{c.GetComponent(), queue[0]}]
		return m.busy(first.GetAppointee(), "a recovery of the node has not ended")
	}
	if last, _ := RunIDOf(m.nodes[c.GetNode()].GetLastRun()); !m.runs.isOpen(last) {
		return m.refuse(wire.Code_CODE_NOT_FOUND, "the node has no open run")
	}
	f := &wire.MaintenanceFence{Component: c.GetComponent(), Node: c.GetNode(), Run: run.Bytes(), Token: m.grant()}
	m.maintenance[key] = f
	m.emit(MaintenanceChanged{Fence: f, Raised: true})
	return m.granted(f.GetToken())
}

func (m *Machine) lowerFence(run RunID, c *wire.LowerFence) *wire.Result {
	f, ok := m.maintenance[fenceKey{c.GetComponent(), c.GetNode()}]
	if !ok || !isRun(f.GetRun(), run) || f.GetToken() != c.GetToken() {
		return m.refuse(wire.Code_CODE_NOT_HOLDER, "the run holds no maintenance fence under this token")
	}
	m.lower(f)
	return m.ok()
}

func (m *Machine) lower(f *wire.MaintenanceFence) {
	delete(m.maintenance, fenceKey{f.GetComponent(), f.GetNode()})
	m.emit(MaintenanceChanged{Fence: f})
}

func (m *Machine) lowerFencesOf(run RunID) {
	for _, f := range m.Maintenance() {
		if isRun(f.GetRun(), run) {
			m.lower(f)
		}
	}
}

// Maintenance are the raised maintenance fences, by component and node.
func (m *Machine) Maintenance() []*wire.MaintenanceFence {
	list := make([]*wire.MaintenanceFence, 0, len(m.maintenance))
	for _, f := range m.maintenance {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *wire.MaintenanceFence) int {
		return cmp.Or(cmp.Compare(a.GetComponent(), b.GetComponent()), cmp.Compare(a.GetNode(), b.GetNode()))
	})
	return list
}

// IsFenced reports whether new work of the component must wait on the node: from the closing of one of its runs until
// the recovery has ended, waiting, queued and parked included, and under a maintenance fence (PROTOCOL.md 10, 19).
func (m *Machine) IsFenced(component, node string) bool {
	key := fenceKey{component, node}
	_, maintained := m.maintenance[key]
	return maintained || len(m.recoveries.queues[key]) > 0
}
