package sim

import (
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

var lockNames = []string{"/SBOI/backup", "/SBOI/restore"}

// lockings asks for a poll lock now and then, and sometimes gives up waiting for it (rule 21).
func (m *member) lockings() {
	w := m.n.w
	if w.calm || m.leaving {
		return
	}
	name := lockNames[w.rng.IntN(len(lockNames))]
	next := func() { m.after(w.between(100*time.Millisecond, time.Second), m.lockings) }
	m.locking = name
	m.submit(lockNamed(name), func(r *wire.Result) {
		switch {
		case !m.here():
		case r.GetCode() == wire.Code_CODE_OK:
			m.holdLock(name, r.GetToken(), next)
		case r.GetCode() == wire.Code_CODE_QUEUED:
			if held, ok := m.n.machine.Lock(name); ok && string(held.GetRun()) == string(m.id[:]) {
				m.holdLock(name, held.GetToken(), next) // the log was faster than the answer
				return
			}
			m.queued = next
			if w.chance(3) {
				m.after(w.between(time.Millisecond, 400*time.Millisecond), func() { m.giveUp(name, next) })
			}
		default:
			m.locking = ""
			next()
		}
	})
}

func (m *member) holdLock(name string, token uint64, next func()) {
	m.queued = nil
	m.after(m.n.w.between(time.Millisecond, 200*time.Millisecond), func() {
		m.submit(unlock(name, token), func(*wire.Result) {
			m.locking = ""
			next()
		})
	})
}

func (m *member) giveUp(name string, next func()) {
	if m.queued == nil {
		return
	}
	m.queued = nil
	m.submit(unlock(name, 0), func(r *wire.Result) {
		if r.GetToken() > 0 {
			m.holdLock(name, r.GetToken(), next) // it was granted meanwhile
			return
		}
		m.locking = ""
		next()
	})
}

// granted: the log says that the wait is over.
func (m *member) granted(name string, token uint64) {
	if next := m.queued; next != nil && m.locking == name {
		m.holdLock(name, token, next)
	}
}

// maintain raises a maintenance fence on a living node for a while (rule 19).
func (m *member) maintain() {
	w := m.n.w
	component, on := components[w.rng.IntN(len(components))], w.nodes[w.rng.IntN(len(w.nodes))].name
	m.submit(raiseFence(component, on), func(r *wire.Result) {
		if r.GetCode() != wire.Code_CODE_OK {
			return
		}
		m.n.after(w.between(50*time.Millisecond, 2*time.Second), func() {
			m.submit(lowerFence(component, on, r.GetToken()), func(*wire.Result) {})
		})
	})
}
