package state

import (
	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// noteQuiesced takes down that nothing of a closed run is left: who waits for its lease needs to wait no more
// (PROTOCOL.md 22). Of an open run nothing is proven, whoever says so.
func (m *Machine) noteQuiesced(c *wire.NoteQuiesced) *wire.Result {
	id, ok := RunIDOf(c.GetRun())
	run, known := m.runs.all[id]
	switch {
	case !ok || !known:
		return m.refuse(wire.Code_CODE_NOT_FOUND, "the run is not known")
	case run.IsOpen():
		return m.refuse(wire.Code_CODE_BUSY, "the run is open")
	case run.Quiesced:
		return m.noChange()
	}
	run.Quiesced = true
	m.runs.all[id] = run
	for _, r := range m.Recoveries() {
		if isRun(r.GetRun(), id) {
			next := proto.CloneOf(r)
			m.step(next, wire.RecoveryStep_KIND_QUIESCED, id, "")
			m.put(next)
		}
	}
	m.emit(RunQuiesced{Run: run})
	return m.ok()
}
