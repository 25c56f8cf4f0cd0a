package sim

import (
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// job is one delivery of a recovery to its appointee: acquire, shut out, look, settle, release.
type job struct {
	m         *member
	component string
	dead      state.RunID
	node      string // of the dead run
	ref       *wire.RecoveryRef
	token     uint64
	deadline  time.Duration // of the fence, on the node's own clock; 0: not raised
	hung      bool
	over      bool
	adopted   []*task
	resting   bool
}

func jobKey(r *wire.Recovery) string { return r.GetComponent() + string(r.GetRun()) }

// look compares what the log wants of this run with what it is doing.
func (m *member) look() {
	listed := map[string]bool{}
	for _, r := range m.n.machine.Recoveries() {
		active := r.GetState() == wire.RecoveryState_RECOVERY_APPOINTED || r.GetState() == wire.RecoveryState_RECOVERY_RAISED
		if !active || string(r.GetAppointee()) != string(m.id[:]) {
			continue
		}
		key := jobKey(r)
		listed[key] = true
		if j := m.jobs[key]; j != nil {
			if j.ref.GetIndex() == r.GetIndex() {
				continue
			}
			j.lose()
		}
		dead, _ := state.RunIDOf(r.GetRun())
		j := &job{m: m, component: r.GetComponent(), dead: dead, node: r.GetNode(), ref: refOf(r)}
		m.jobs[key] = j
		j.begin()
	}
	for _, key := range sortedKeys(m.jobs) {
		if !listed[key] {
			m.jobs[key].lose()
			delete(m.jobs, key)
		}
	}
}

func (j *job) guards() fenceName { return fenceName{j.component, j.node} }

func (j *job) held() *wire.FenceHeld {
	return &wire.FenceHeld{Component: j.component, Node: j.node, Run: j.dead[:], Token: j.token}
}

// valid tells whether the fence may be reckoned with: appointed, and renewed in time on the own clock.
func (j *job) valid() bool {
	return !j.over && j.m.here() && j.m.n.clock() < j.deadline
}

// lose ends the job: the appointment is another's, or nobody's.
func (j *job) lose() {
	j.over = true
	for _, t := range j.adopted {
		t.m.n.after(0, func() { t.next(func() {}) })
	}
}

// ended: the log says that the recovery is over. What was adopted is the run's own from here.
func (j *job) ended() {
	j.m.n.w.report.Recoveries++
	for _, t := range j.adopted {
		t.job = nil
		if t.over && !t.ended { // it stopped when the fence seemed lost, and the claim is ours after all
			again := &task{m: j.m, component: t.component, item: t.item, token: t.token, done: func(bool) {}}
			j.m.after(0, again.start)
		}
	}
	j.adopted = nil
	j.lose()
}

func (j *job) begin() {
	w := j.m.n.w
	j.m.n.after(w.between(time.Millisecond, 30*time.Millisecond), func() {
		if j.over || !j.m.here() {
			return
		}
		if w.chance(40) && !w.calm {
			j.hung = true // it never acquires
			return
		}
		sent := j.m.n.clock()
		j.m.submit(acquire(j.ref), func(r *wire.Result) {
			if r.GetToken() == 0 || j.over || r.GetCode() != wire.Code_CODE_OK && r.GetCode() != wire.Code_CODE_NO_CHANGE {
				return
			}
			j.token = r.GetToken()
			j.deadline = max(j.deadline, sent+fenceTTL-fenceGap)
			j.caughtUp(r.GetPosition())
		})
	})
}

// caughtUp waits until this replica has what the leader has answered with.
func (j *job) caughtUp(position uint64) {
	if j.over {
		return
	}
	if j.m.n.machine.Position() < position {
		j.m.n.after(5*time.Millisecond, func() { j.caughtUp(position) })
		return
	}
	if j.component == leased {
		j.outwait()
		return
	}
	j.shutOut()
}

// outwait is the exclusion by lease: the context starts when every former holder's has ended (rule 22).
func (j *job) outwait() {
	wait := j.m.n.until(j.component, j.dead)
	if now := j.m.n.clock(); now < wait && j.m.n.w.plan.Mutant != LeaseNotAwaited {
		j.m.n.after(wait-now, j.outwait)
		return
	}
	if !j.valid() {
		j.fail(true)
		return
	}
	j.m.n.w.check.context(j)
	j.settle()
}

// shutOut is a recoverer's first act: from then on nothing of its predecessors becomes visible (rule 23).
func (j *job) shutOut() {
	if !j.valid() {
		j.fail(true)
		return
	}
	if j.m.n.w.plan.Mutant == NoShutOut {
		j.settle()
		return
	}
	p := pass{run: j.m.id, fence: j.guards(), token: j.token}
	j.m.n.w.ledger.shutOut(j.m.n, p, []state.RunID{j.dead}, func(r result, known bool) {
		switch {
		case j.over:
		case !known || r.away:
			j.fail(true)
		case r.fenced:
			j.fail(true)
		default:
			j.settle()
		}
	})
}

// settle takes one orphan after the other, and releases when none is left.
func (j *job) settle() {
	w := j.m.n.w
	if j.over {
		return
	}
	if !j.valid() {
		j.fail(true)
		return
	}
	if j.component != leased {
		w.check.looked[j.dead] = true
	}
	if !w.calm && w.chance(60) {
		j.hung = true // it promised progress, and gives none
		return
	}
	if !w.calm && w.chance(25) {
		j.fail(false)
		return
	}
	orphans := j.m.n.machine.Claims(state.ClaimFilter{Component: j.component, Run: j.dead})
	for _, c := range orphans {
		if !c.GetOrphan() {
			continue
		}
		if c.GetOrphanings() >= 3 {
			j.submit(endClaim(j.component, c.GetItem(), c.GetToken(), wire.EndClaim_HOW_QUARANTINE, j.held()), func(*wire.Result) { j.settle() })
			return
		}
		j.submit(adopt(j.component, c.GetItem(), j.held()), func(r *wire.Result) {
			if r.GetCode() == wire.Code_CODE_OK {
				j.goOn(c.GetItem(), r.GetToken())
				return
			}
			j.m.n.after(20*time.Millisecond, j.settle)
		})
		return
	}
	j.submit(release(j.ref, j.token), func(r *wire.Result) {
		if r.GetCode() == wire.Code_CODE_WORK_LEFT {
			j.m.n.after(10*time.Millisecond, j.settle)
		}
	})
}

// goOn works on what it has adopted: it gives it back, or does it again, which Release need not wait for.
func (j *job) goOn(item string, token uint64) {
	w := j.m.n.w
	t := &task{m: j.m, component: j.component, item: item, token: token, job: j, revert: j.component != leased && w.chance(2)}
	t.done = func(bool) {}
	if t.revert {
		t.done = func(ok bool) { j.settle() }
	} else {
		j.adopted = append(j.adopted, t)
	}
	t.start()
	if !t.revert {
		j.m.n.after(w.between(0, 50*time.Millisecond), j.settle)
	}
}

func (j *job) submit(c *wire.Command, then func(*wire.Result)) {
	j.m.submit(c, func(r *wire.Result) {
		if !j.over && j.m.here() {
			then(r)
		}
	})
}

// fail reports that the action has returned an error; it is delivered again while the appointment stands.
func (j *job) fail(unavailable bool) {
	if j.over || j.resting || !j.m.here() {
		return
	}
	j.resting = true
	j.m.submit(failRecovery(j.ref, unavailable, "it failed"), func(r *wire.Result) {
		if j.over || r.GetCode() == wire.Code_CODE_NOT_APPOINTED {
			return
		}
		j.m.n.after(j.m.n.w.between(100*time.Millisecond, time.Second), func() {
			if !j.over && j.m.here() {
				j.resting = false
				j.begin()
			}
		})
	})
}

// until is when a recoverer in a component with exclusion by lease may begin, on this node's clock.
func (n *node) until(component string, dead state.RunID) time.Duration {
	run, _ := n.machine.Run(dead)
	rec, _ := n.machine.Recovery(component, dead)
	moved := rec.GetEndedHolder() > run.Closed // a raised fence was handed over
	at, ok := n.endings[endingKey{component, dead}]
	switch {
	case run.Quiesced && !moved:
		return 0 // proven: nothing of it is left
	case !ok:
		return n.born + max(ttl, fenceTTL) // it was over before this process began
	case moved:
		return at + max(ttl, fenceTTL)
	}
	return at + ttl
}

type endingKey struct {
	component string
	dead      state.RunID
}

// noteEndings follows the ends of holders, as this process applies them.
func (n *node) noteEndings(changes []state.Change) {
	for _, c := range changes {
		switch c := c.(type) {
		case state.RunClosed:
			for _, name := range components {
				n.endings[endingKey{name, c.Run.ID}] = n.clock()
			}
		case state.AppointmentEnded:
			dead, _ := state.RunIDOf(c.Recovery.GetRun())
			if c.Recovery.GetState() == wire.RecoveryState_RECOVERY_RAISED {
				n.endings[endingKey{c.Recovery.GetComponent(), dead}] = n.clock()
			}
		}
	}
}
