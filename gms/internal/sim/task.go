package sim

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

const maxTasks = 2 // of a run, besides what it has adopted

// task is work on one item under a claim.
type task struct {
	m         *member
	component string
	item      string
	token     uint64
	job       *job // while the claim belongs to a fence
	revert    bool // give it back instead of finishing it
	session   *session
	over      bool
	ended     bool       // its claim has ended
	done      func(bool) // when the claim has ended, or the task has found that it is not its own
	tries     int
}

// work looks for items now and then.
func (m *member) work() {
	w := m.n.w
	m.after(w.between(50*time.Millisecond, 200*time.Millisecond), m.work)
	if m.leaving || m.tasks >= maxTasks || !m.held() {
		return
	}
	component := components[w.rng.IntN(len(components))]
	if m.n.machine.IsFenced(component, m.n.name) { // netiquette: new work waits for the fence
		return
	}
	list := w.ledger.unfinished(component)
	if len(list) == 0 {
		return
	}
	r := list[w.rng.IntN(len(list))]
	m.tasks++
	m.submit(claimItem(component, r.name), func(res *wire.Result) {
		if res.GetCode() != wire.Code_CODE_OK || !m.here() {
			m.tasks--
			return
		}
		t := &task{m: m, component: component, item: r.name, token: res.GetToken(), done: func(bool) { m.tasks-- }}
		t.start()
	})
}

// mine tells whether the task may go on: its run stands, and its fence, if it is under one.
func (t *task) mine() bool {
	return !t.over && t.m.here() && (t.job == nil || t.job.valid())
}

// stop is the end of a task that may not go on; whoever takes over settles what it leaves.
func (t *task) stop() {
	if !t.over {
		t.over = true
		t.m.n.w.target.bye(t.m.n, t.session)
		t.done(false)
	}
}

// next does the next step if the task may go on.
func (t *task) next(do func()) {
	if !t.mine() {
		t.stop()
		return
	}
	do()
}

// again repeats a step after a pause: a service was away, or the outcome is unknown.
func (t *task) again(do func()) {
	t.tries++
	t.m.n.after(t.m.n.w.between(20*time.Millisecond, 300*time.Millisecond), func() { t.next(do) })
}

func (t *task) pass() pass {
	p := pass{run: t.m.id}
	if t.job != nil {
		p.fence, p.token = t.job.guards(), t.job.token
	}
	return p
}

// write is a guarded write of the ledger; it is repeated until its outcome is known.
func (t *task) write(body func() result, then func(result)) {
	t.next(func() {
		p := t.pass()
		t.m.n.w.ledger.write(t.m.n, p, body, func(r result, known bool) {
			switch {
			case !known || r.away, r.fenced && p != t.pass(): // refused under a fence that was lowered meanwhile, and the claim kept
				t.again(func() { t.write(body, then) })
			case r.fenced:
				t.stop()
			default:
				t.next(func() { then(r) })
			}
		})
	})
}

func (t *task) start() {
	switch t.component {
	case leased:
		t.act(1 + t.m.n.w.rng.IntN(4))
	default:
		t.take()
	}
}

// take is the re-validation: the first write under the claim.
func (t *task) take() {
	l := t.m.n.w.ledger
	t.write(func() result { return l.take(t.item, t.token) }, func(r result) {
		switch {
		case r.state == completed:
			t.end(wire.EndClaim_HOW_COMPLETE)
		case !r.ok && r.token != t.token:
			t.stop()
		case t.component == restore:
			t.openSession()
		default:
			t.revertBackups(slices.Clone(l.row(t.item).tokens))
		}
	})
}

// revertBackups settles what every earlier attempt left: a tombstone is made, or it is found complete and adopted (rule 26).
func (t *task) revertBackups(left []uint64) {
	for len(left) > 0 && left[len(left)-1] >= t.token {
		left = left[:len(left)-1]
	}
	if len(left) == 0 {
		t.next(t.afterRevert)
		return
	}
	before := left[len(left)-1]
	t.next(func() {
		t.m.n.w.store.bury(t.m.n, objectName{t.item, before}, func(r result, known bool) {
			switch {
			case !known || r.away:
				t.again(func() { t.revertBackups(left) })
			case r.exists:
				t.complete(before)
			default:
				t.revertBackups(left[:len(left)-1])
			}
		})
	})
}

func (t *task) afterRevert() {
	if t.revert {
		t.write(func() result { return t.m.n.w.ledger.advance(t.item, t.token, planned, 0) }, func(result) { t.end(wire.EndClaim_HOW_FREE) })
		return
	}
	t.upload()
}

func (t *task) upload() {
	name := objectName{t.item, t.token}
	w := t.m.n.w
	t.write(func() result { return w.ledger.advance(t.item, t.token, working, 0) }, func(result) {
		w.store.upload(t.m.n, name, func(r result, known bool) {
			if !known || r.away {
				t.again(t.upload)
				return
			}
			t.next(t.seal)
		})
	})
}

func (t *task) seal() {
	t.m.n.w.store.seal(t.m.n, objectName{t.item, t.token}, func(r result, known bool) {
		switch {
		case !known || r.away:
			t.again(t.seal)
		case r.void:
			t.stop()
		default:
			t.complete(t.token)
		}
	})
}

// complete makes the result exist for the group.
func (t *task) complete(copied uint64) {
	t.write(func() result { return t.m.n.w.ledger.advance(t.item, t.token, completed, copied) }, func(result) {
		t.end(wire.EndClaim_HOW_COMPLETE)
	})
}

// openSession takes the attempt's row in the target before the guarded write (rule 31). Sessions of earlier attempts are ended
// again and again until this one has the row.
func (t *task) openSession() {
	w := t.m.n.w
	if w.plan.Mutant == RowAfterWrite {
		t.write(func() result { return w.ledger.advance(t.item, t.token, working, 0) }, func(result) { t.connect() })
		return
	}
	t.connect()
}

func (t *task) connect() {
	w := t.m.n.w
	waits := true
	var chase func()
	chase = func() {
		if waits && t.mine() {
			w.target.endOlder(t.m.n, t.item, t.token)
			t.m.n.after(200*time.Millisecond, chase)
		}
	}
	chase()
	w.target.connect(t.m.n, t.item, t.token, func(s *session) { t.session = s }, func(r result, known bool) {
		waits = false
		switch {
		case !known || r.away:
			w.target.bye(t.m.n, t.session)
			t.again(t.connect)
		case r.exists:
			t.complete(r.token)
		case t.revert:
			t.next(t.voidRow)
		case w.plan.Mutant == RowAfterWrite:
			t.next(t.stream)
		default:
			t.write(func() result { return w.ledger.advance(t.item, t.token, working, 0) }, func(result) { t.stream() })
		}
	})
}

func (t *task) voidRow() {
	t.m.n.w.target.void(t.m.n, t.session, func(r result, known bool) {
		if !known || r.away || r.fenced {
			t.again(t.connect)
			return
		}
		t.write(func() result { return t.m.n.w.ledger.advance(t.item, t.token, planned, 0) }, func(result) { t.end(wire.EndClaim_HOW_FREE) })
	})
}

// stream is the work itself. Nothing in it asks whether the task may still go on: only the commit decides.
func (t *task) stream() {
	w := t.m.n.w
	t.m.n.after(w.between(20*time.Millisecond, 600*time.Millisecond), func() {
		w.target.commit(t.m.n, t.session, func(r result, known bool) {
			if !known || r.away || r.fenced {
				w.target.bye(t.m.n, t.session)
				t.again(t.connect) // what has become of it is read in the row
				return
			}
			t.complete(t.token)
		})
	})
}

// act does something to a resource that cannot check tokens: only a lease that holds allows it.
func (t *task) act(left int) {
	if left == 0 {
		t.end(wire.EndClaim_HOW_COMPLETE)
		return
	}
	t.m.n.after(t.m.n.w.between(10*time.Millisecond, 200*time.Millisecond), func() {
		t.next(func() {
			if !t.m.held() {
				t.again(func() { t.act(left) })
				return
			}
			t.m.n.w.check.acts(t)
			t.act(left - 1)
		})
	})
}

// end ends the claim; under a fence it names it.
func (t *task) end(how wire.EndClaim_How) {
	t.next(func() {
		var f *wire.FenceHeld
		if t.job != nil {
			f = t.job.held()
		} else if how == wire.EndClaim_HOW_FREE {
			how = wire.EndClaim_HOW_ABANDON // its fence has been lowered meanwhile
		}
		t.m.submit(endClaim(t.component, t.item, t.token, how, f), func(r *wire.Result) {
			if r.GetCode() == wire.Code_CODE_FENCED && f != nil { // the log has ended the recovery, or the fence is lost: this replica is to say it
				t.again(func() { t.end(how) })
				return
			}
			if !t.over {
				t.over, t.ended = true, true
				t.m.n.w.target.bye(t.m.n, t.session)
				t.done(r.GetCode() == wire.Code_CODE_OK)
			}
		})
	})
}
