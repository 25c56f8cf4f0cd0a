package sim

import (
	"slices"
	"time"
)

// attempt is the row fencepost.attempt of a restore in place.
type attempt struct {
	token uint64
	done  bool
}

// session is a connection to the target; its transaction holds the attempt's row from when it got it until it ends.
type session struct {
	n      *node
	item   string
	token  uint64
	row    *attempt
	dead   bool
	whole  bool         // all of its input has come
	begins func(result) // waits for the row
}

// target is the server that restores in place write to.
type target struct {
	remote
	attempts map[string]*attempt
	holders  map[string]*session
	waiting  map[string][]*session
	open     []*session
	commits  map[string][]uint64 // tokens, by item
	held     map[string]uint64   // largest token of a session that has held the row
}

func newTarget(w *world) *target {
	return &target{
		remote: remote{w: w}, attempts: map[string]*attempt{}, holders: map[string]*session{}, waiting: map[string][]*session{},
		commits: map[string][]uint64{}, held: map[string]uint64{},
	}
}

// connect opens a session and takes the attempt's row FOR UPDATE; it waits while another session has it.
func (t *target) connect(n *node, item string, token uint64, opened func(*session), then func(result, bool)) {
	t.call(n, func(answer func(result)) {
		s := &session{n: n, item: item, token: token, begins: answer}
		opened(s)
		t.open = append(t.open, s)
		if t.w.plan.Mutant == RowNotTaken {
			s.row = t.rowOf(item)
			answer(result{ok: true, exists: s.row.done, token: s.row.token})
			return
		}
		t.waiting[item] = append(t.waiting[item], s)
		t.grant(item)
	}, then)
}

func (t *target) grant(item string) {
	for t.holders[item] == nil && len(t.waiting[item]) > 0 {
		s := t.waiting[item][0]
		t.waiting[item] = t.waiting[item][1:]
		if s.dead {
			continue
		}
		row := t.rowOf(item)
		s.row, t.holders[item] = row, s
		if !row.done {
			row.token = s.token
		}
		t.held[item] = max(t.held[item], s.token) // also when one of before gets it once more: it must not commit
		s.begins(result{ok: true, exists: row.done, token: row.token})
	}
}

// rowOf is the attempt's row of an item, made when there is none.
func (t *target) rowOf(item string) *attempt {
	row := t.attempts[item]
	if row == nil {
		row = &attempt{}
		t.attempts[item] = row
	}
	return row
}

// commit is the COMMIT of a restore: it fails when the session was ended or its row is gone.
func (t *target) commit(n *node, s *session, then func(result, bool)) {
	late := time.Duration(0)
	if t.w.chance(8) {
		late = t.w.between(0, 3*time.Second)
	}
	t.call(n, func(answer func(result)) {
		t.w.after(late, func() {
			if s.dead || t.w.plan.Mutant != RowNotTaken && (t.attempts[s.item] != s.row || s.row.done) {
				answer(result{fenced: true})
				return
			}
			s.whole = true
			t.committed(s)
			answer(result{ok: true})
		})
	}, then)
}

func (t *target) committed(s *session) {
	s.row.done = true
	t.commits[s.item] = append(t.commits[s.item], s.token)
	t.w.report.Commits++
	t.w.check.commit(t, s)
	t.close(s)
}

// void deletes the attempt's row, by the session that holds it: what comes late fails.
func (t *target) void(n *node, s *session, then func(result, bool)) {
	t.call(n, func(answer func(result)) {
		if s.dead || t.holders[s.item] != s && t.w.plan.Mutant != RowNotTaken {
			answer(result{fenced: true})
			return
		}
		delete(t.attempts, s.item)
		t.close(s)
		answer(result{ok: true})
	}, then)
}

// endOlder ends the sessions of lower tokens; that takes a moment, in which they may still do something.
func (t *target) endOlder(n *node, item string, token uint64) {
	t.call(n, func(answer func(result)) {
		for _, s := range slices.Clone(t.open) {
			if s.item == item && s.token < token {
				t.w.after(t.w.between(0, 50*time.Millisecond), func() { t.close(s) })
			}
		}
		answer(result{ok: true})
	}, func(result, bool) {})
}

// close ends a session; what it has not committed is undone.
func (t *target) close(s *session) {
	if s == nil || s.dead {
		return
	}
	s.dead = true
	t.open = slices.DeleteFunc(t.open, func(x *session) bool { return x == s })
	if t.holders[s.item] == s {
		delete(t.holders, s.item)
	}
	t.grant(s.item)
}

// bye ends a session for a process that has no more use of it.
func (t *target) bye(n *node, s *session) {
	if s != nil {
		t.w.after(t.w.delay(), func() { t.close(s) })
	}
}

// ended: the process of a node is gone; its connections end after a while, but for those of hosts that say nothing.
func (t *target) ended(n *node) {
	open := slices.Clone(t.open)
	t.w.after(t.w.between(time.Millisecond, 20*time.Second), func() {
		for _, s := range open {
			if s.n == n {
				if t.w.plan.Mutant == CommitAtEnd && t.holders[s.item] == s && !s.row.done {
					t.committed(s)
				}
				t.close(s)
			}
		}
	})
}
