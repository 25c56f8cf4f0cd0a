package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
)

// stage is how far a row of the ledger is.
type stage int

const (
	planned stage = iota
	creating
	working // uploading, or restoring
	completed
)

// row is one item of work.
type row struct {
	component, name string
	state           stage
	token           uint64
	copied          uint64   // completed: token of the attempt whose result counts
	tokens          []uint64 // every one that took the row
	entry           uint64   // of the attempt that may store something
}

type fenceName struct{ component, node string }

// pass is under what a transaction writes: a run, and in a recovery its fence.
type pass struct {
	run   state.RunID
	fence fenceName // empty in normal work
	token uint64
}

// tx is a transaction that has begun: it holds the shared lock of its run, and of its fence.
type tx struct {
	n       *node
	pass    pass
	aborted bool
	over    bool
}

// ledger is a database in the manner of PROTOCOL.md 23 to 26: guard rows, advisory locks that are fair, sessions that can be
// ended, and a delay between what a transaction has read and what it commits.
type ledger struct {
	remote
	rows    []*row
	shut    map[state.RunID]bool
	guards  map[fenceName]uint64
	begun   []*tx
	shuts   []*shutOut // in progress: they wait for locks, and those that come later wait behind them
	waiting []func()
}

type shutOut struct {
	runs  []state.RunID
	fence fenceName
	token uint64
	done  func(result)
}

func newLedger(w *world) *ledger {
	return &ledger{remote: remote{w: w}, shut: map[state.RunID]bool{}, guards: map[fenceName]uint64{}}
}

func (l *ledger) row(name string) *row {
	for _, r := range l.rows {
		if r.name == name {
			return r
		}
	}
	return nil
}

func (l *ledger) refuses(p pass) bool {
	if l.w.plan.Mutant == GuardUnread {
		return false
	}
	return l.shut[p.run] || p.fence != fenceName{} && l.guards[p.fence] > p.token && l.w.plan.Mutant != HoldersLetIn
}

func (s *shutOut) covers(p pass) bool {
	return slices.Contains(s.runs, p.run) || p.fence == s.fence && p.fence != fenceName{} && p.token < s.token
}

// write carries out a transaction for a process: it begins, and commits with body, which may be refused.
func (l *ledger) write(n *node, p pass, body func() result, then func(res result, known bool)) {
	var t *tx
	l.call(n, func(answer func(result)) { l.begin(n, p, func(x *tx, r result) { t = x; answer(r) }) }, func(r result, known bool) {
		if !known || r.away || r.fenced {
			then(r, known)
			return
		}
		l.call(n, func(answer func(result)) { answer(l.commit(t, body)) }, then)
	})
}

func (l *ledger) begin(n *node, p pass, then func(*tx, result)) {
	for _, s := range l.shuts {
		if s.covers(p) || slices.Contains(s.runs, p.run) || p.fence == s.fence {
			l.waiting = append(l.waiting, func() { l.begin(n, p, then) })
			return
		}
	}
	if l.refuses(p) {
		then(nil, result{fenced: true})
		return
	}
	t := &tx{n: n, pass: p}
	l.begun = append(l.begun, t)
	l.w.after(5*time.Second, func() { l.abort(t) }) // idle in transaction
	then(t, result{ok: true})
}

func (l *ledger) commit(t *tx, body func() result) result {
	if t.over || t.aborted {
		return result{away: true} // the session was ended; why, the next one learns
	}
	if l.shut[t.pass.run] || l.w.check.looked[t.pass.run] {
		l.w.fail("invariant 8: a write of run %s commits after its recoverer has looked", short(t.pass.run[:]))
	}
	if (t.pass.fence != fenceName{}) && l.guards[t.pass.fence] > t.pass.token {
		l.w.fail("invariant 8: a write under fence token %d commits after %d shut it out", t.pass.token, l.guards[t.pass.fence])
	}
	r := body()
	l.finish(t)
	return r
}

func (l *ledger) abort(t *tx) {
	if !t.over {
		t.aborted = true
		l.finish(t)
	}
}

func (l *ledger) finish(t *tx) {
	t.over = true
	l.begun = slices.DeleteFunc(l.begun, func(x *tx) bool { return x == t })
	l.settleShuts()
}

// ended: the process of a node is gone, and its connections are reset after a while.
func (l *ledger) ended(n *node) {
	open := slices.Clone(l.begun)
	l.w.after(l.w.between(time.Millisecond, 500*time.Millisecond), func() {
		for _, t := range open {
			if t.n == n {
				l.abort(t)
			}
		}
	})
}

// shutOut ends the sessions of a dead run, of earlier holders of its fence and of runs that those stood as, takes their locks
// exclusively, and sets the guard rows.
func (l *ledger) shutOut(n *node, p pass, runs []state.RunID, then func(result, bool)) {
	l.call(n, func(answer func(result)) {
		if l.guards[p.fence] > p.token || l.shut[p.run] {
			answer(result{fenced: true})
			return
		}
		s := &shutOut{runs: runs, fence: p.fence, token: p.token, done: answer}
		if l.w.plan.Mutant == UnlockedShutOut {
			l.set(s)
			return
		}
		l.shuts = append(l.shuts, s)
		for _, t := range slices.Clone(l.begun) {
			if s.covers(t.pass) {
				l.w.after(l.w.between(0, 20*time.Millisecond), func() { l.abort(t) })
			}
		}
		l.settleShuts()
	}, then)
}

// settleShuts grants the exclusive locks that nobody shares any more.
func (l *ledger) settleShuts() {
	for _, s := range slices.Clone(l.shuts) {
		if slices.ContainsFunc(l.begun, func(t *tx) bool { return s.covers(t.pass) }) {
			continue
		}
		l.shuts = slices.DeleteFunc(l.shuts, func(x *shutOut) bool { return x == s })
		l.set(s)
	}
	if len(l.shuts) == 0 && len(l.waiting) > 0 {
		waiting := l.waiting
		l.waiting = nil
		for _, do := range waiting {
			do()
		}
	}
}

func (l *ledger) set(s *shutOut) {
	if l.guards[s.fence] > s.token {
		s.done(result{fenced: true})
		return
	}
	for _, r := range s.runs {
		l.shut[r] = true
	}
	l.guards[s.fence] = s.token
	s.done(result{ok: true})
}

// take is the first write under a claim: the row becomes mine where a smaller token is stored and the state is not final.
func (l *ledger) take(name string, token uint64) result {
	r := l.row(name)
	res := result{state: r.state, token: r.token, copied: r.copied}
	if r.state == completed || r.token >= token && l.w.plan.Mutant != TokensUnchecked {
		return res
	}
	if r.state == planned {
		r.state = creating
	}
	l.grow(r, token)
	r.tokens = append(r.tokens, token)
	res.ok = true
	return res
}

// advance is a later write: only where the row is still mine.
func (l *ledger) advance(name string, token uint64, to stage, copied uint64) result {
	r := l.row(name)
	if r.token != token && l.w.plan.Mutant != TokensUnchecked {
		return result{fenced: true, state: r.state, token: r.token}
	}
	if r.state == completed {
		if to != completed || l.w.plan.Mutant == TokensUnchecked {
			l.w.fail("invariant 9: %s leaves completed for %d", name, to)
		}
		return result{ok: true}
	}
	l.grow(r, max(token, r.token))
	r.state = to
	if to == working {
		r.entry = token
	}
	if to == completed {
		r.copied = copied
		l.w.report.Completed++
		l.w.check.completed(r)
	}
	return result{ok: true}
}

func (l *ledger) grow(r *row, token uint64) {
	if token < r.token {
		l.w.fail("invariant 7: the token of %s falls from %d to %d", r.name, r.token, token)
	}
	r.token = token
}

// unfinished lists what a component has to do.
func (l *ledger) unfinished(component string) []*row {
	var list []*row
	for _, r := range l.rows {
		if r.component == component && r.state != completed {
			list = append(list, r)
		}
	}
	return list
}

// items makes new work.
type items struct {
	w    *world
	made int
}

func (i *items) tick() {
	if i.w.calm {
		return
	}
	for _, c := range components {
		if len(i.w.ledger.unfinished(c)) < 3 {
			i.made++
			i.w.ledger.rows = append(i.w.ledger.rows, &row{component: c, name: fmt.Sprintf("%s-%d", c, i.made)})
		}
	}
	i.w.after(300*time.Millisecond, i.tick)
}
