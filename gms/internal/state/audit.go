package state

import "github.com/fencepost/fencepost/gms/internal/wire"

// maxAudits marked positions are kept. They are not part of the state: a replica that was restored after a mark does
// not know its hash there and has nothing to compare.
const maxAudits = 8

type audit struct {
	position uint64
	hash     [32]byte
}

// audit marks the entry's position, or compares the leader's hash at a marked one. The answer never depends on what
// this replica knows.
func (m *Machine) audit(c *wire.Audit) *wire.Result {
	if len(c.GetHash()) == 0 {
		m.marked = true
		return m.ok()
	}
	if len(c.GetHash()) != 32 {
		return m.invalid("the hash is not 32 bytes long")
	}
	want := [32]byte(c.GetHash())
	for _, a := range m.audits {
		if a.position == c.GetPosition() && a.hash != want {
			m.emit(AuditMismatch{Position: a.position, Mine: a.hash, Want: want})
		}
	}
	return m.ok()
}

// mark keeps the hash of the state at the end of the entry.
func (m *Machine) mark() {
	a := audit{position: m.Position(), hash: m.Hash()}
	m.audits = append(m.audits, a)
	m.audits = m.audits[max(0, len(m.audits)-maxAudits):]
	m.emit(AuditMarked{Position: a.position, Hash: a.hash})
}
