package state

import (
	"fmt"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// maxProtocol bounds what a group can agree on: far above what there will ever be, so that a wrong number is refused as
// such, and stops nobody.
const maxProtocol = 1 << 16

// ProtocolError says that something is of a protocol which this build does not read.
type ProtocolError struct{ Protocol uint32 }

// Error names what is read instead.
func (e ProtocolError) Error() string {
	return fmt.Sprintf("the group writes protocol %d, and this program reads up to %d", e.Protocol, wire.Protocol)
}

// Protocol is the version that the group writes: its commands, entries and snapshots hold nothing that came later.
func (m *Machine) Protocol() uint32 { return m.protocol }

// Beyond is a ProtocolError once the log has left what this build reads, nil before. The state then stands where it was
// still understood and is not to be kept: its owner ends.
func (m *Machine) Beyond() error {
	if m.beyond == 0 {
		return nil
	}
	return ProtocolError{m.beyond}
}

// goesBeyond tells whether the log leaves with e, or has left, what this build reads.
func (m *Machine) goesBeyond(e *wire.Entry) bool {
	if m.beyond == 0 && e.GetVersion() > wire.Protocol {
		m.beyond = e.GetVersion()
	}
	return m.beyond != 0
}

// agree has the group write a protocol from here on.
func (m *Machine) agree(protocol uint32) {
	m.protocol = protocol
	if protocol > wire.Protocol {
		m.beyond = protocol
	}
}

// checkProtocol refuses a run whose process does not read what the group writes, or does not write it any more: it knows this
// version and the one before its own only.
func (m *Machine) checkProtocol(c *wire.OpenRun) *wire.Result {
	switch reads := max(1, c.GetProtocol()); {
	case reads < m.protocol:
		return m.refuse(wire.Code_CODE_PROTOCOL, fmt.Sprintf("its program reads protocols up to %d, and the group writes %d", reads, m.protocol))
	case reads > m.protocol+1:
		return m.refuse(wire.Code_CODE_PROTOCOL, fmt.Sprintf("its program writes protocols %d and %d, and the group %d still", reads-1, reads, m.protocol))
	}
	return nil
}

// raiseProtocol has the group write the next protocol, when every open run's process reads it. A node that is away counts for
// nothing: its next run is refused when it does not read what is written by then.
func (m *Machine) raiseProtocol(c *wire.RaiseProtocol) *wire.Result {
	switch to := c.GetProtocol(); {
	case to == m.protocol:
		return m.noChange()
	case to < m.protocol:
		return m.refuse(wire.Code_CODE_STALE, fmt.Sprintf("the group writes protocol %d already", m.protocol))
	case to > m.protocol+1 || to > maxProtocol:
		return m.invalid(fmt.Sprintf("protocols follow one another, and the group writes %d", m.protocol))
	}
	for _, id := range m.runs.open {
		if r := m.runs.all[id]; r.Protocol() < c.GetProtocol() {
			return m.busy(id.Bytes(), fmt.Sprintf("the program of %s reads protocols up to %d only", r.Node(), r.Protocol()))
		}
	}
	m.agree(c.GetProtocol())
	m.emit(ProtocolRaised{Protocol: m.protocol})
	return m.ok()
}
