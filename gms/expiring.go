package gms

import (
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// expiry is something that ends when nobody renews it: an appointment, its fence once that is raised, or a poll lock.
type expiry struct {
	fence  fenceRef
	raised bool
	lock   string
	token  uint64
}

func expiryOf(r *wire.Recovery) expiry {
	dead, _ := state.RunIDOf(r.GetRun())
	return expiry{fence: fenceRef{r.GetComponent(), dead, r.GetIndex()}, raised: r.GetState() == wire.RecoveryState_RECOVERY_RAISED}
}

// expire moves appointments that nobody keeps, and ends poll locks that are held too long.
func (l *leading) expire() {
	now := l.g.cfg.Clock.Now()
	held := make(map[expiry]bool)
	var cmds []*wire.Command
	l.mu.Lock()
	l.forgive(now)
	over := func(e expiry, limit time.Duration) bool {
		held[e] = true
		since, ok := l.expiries[e]
		if !ok {
			l.expiries[e] = now
			return false
		}
		if now-since <= limit {
			return false
		}
		l.expiries[e] = now // the command is not repeated at each tick
		return true
	}
	l.g.rep.read(func(m *state.Machine) {
		for _, r := range m.Recoveries() {
			if r.GetState() != wire.RecoveryState_RECOVERY_APPOINTED && r.GetState() != wire.RecoveryState_RECOVERY_RAISED {
				continue
			}
			limit := l.fenceLimit(m, r)
			if r.GetState() == wire.RecoveryState_RECOVERY_APPOINTED {
				limit += roundPause(r.GetRounds())
			}
			if over(expiryOf(r), limit) {
				cmds = append(cmds, moveAppointment(r))
			}
		}
		for _, lock := range m.Locks() {
			if over(expiry{lock: lock.GetName(), token: lock.GetToken()}, lockLimit) {
				cmds = append(cmds, &wire.Command{Op: &wire.Command_ExpireLock{ExpireLock: &wire.ExpireLock{Name: lock.GetName(), Token: lock.GetToken()}}})
			}
		}
	})
	for e := range l.expiries {
		if !held[e] {
			delete(l.expiries, e)
		}
	}
	l.mu.Unlock()
	if len(cmds) > 0 {
		l.acts.Go(func() { _ = l.commit(cmds...) })
	}
}

// fenceLimit is how long a recovery's appointee may be silent: it reckons with a fence TTL of its own.
func (l *leading) fenceLimit(m *state.Machine, r *wire.Recovery) time.Duration {
	id, _ := state.RunIDOf(r.GetAppointee())
	run, _ := m.Run(id)
	return l.g.leases().of(run).fence
}

// forgive does not count time in which this leader did not run: nobody could renew with it. l.mu is held.
func (l *leading) forgive(now time.Duration) {
	late := now - l.looked - l.tick
	if l.looked > 0 && late > l.g.cfg.Timing.TTL/4 {
		for e := range l.expiries {
			l.expiries[e] += late
		}
	}
	l.looked = now
}

func moveAppointment(r *wire.Recovery) *wire.Command {
	why := "the fence was not renewed in time"
	if r.GetState() == wire.RecoveryState_RECOVERY_APPOINTED {
		why = "the fence was not acquired in time"
	}
	return &wire.Command{Op: &wire.Command_MoveAppointment{MoveAppointment: &wire.MoveAppointment{
		Recovery: &wire.RecoveryRef{Component: r.GetComponent(), Run: r.GetRun(), Index: r.GetIndex()}, Why: why,
	}}}
}
