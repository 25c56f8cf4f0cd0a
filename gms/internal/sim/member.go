package sim

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// member is one run, as its own process sees it.
type member struct {
	n        *node
	id       state.RunID
	number   int
	epoch    uint64 // 0: not admitted yet
	closed   bool
	leaving  bool
	deadline time.Duration // of its lease, on its own clock
	seq      uint64
	waiting  map[uint64]bool // requests that are not answered
	renewal  uint64          // number of the last one
	stream   *node           // the leader that its session reaches
	jobs     map[string]*job // recoveries that it works on
	tasks    int
	locking  string // the poll lock that it asks for or holds
	queued   func() // what to do after the lock that it waits for
}

// stand opens a run of the process, and another one whenever it has lost one.
func (n *node) stand() {
	if n.member != nil && !n.member.closed {
		return
	}
	n.w.report.Runs++
	m := &member{
		n: n, number: n.w.report.Runs, id: runID(fmt.Sprint(n.name, " ", n.w.report.Runs)),
		waiting: map[uint64]bool{}, jobs: map[string]*job{},
	}
	n.member = m
	var last uint64
	if r, ok := n.machine.Node(n.name); ok {
		last = r.GetLastEpoch()
	}
	m.open(last)
	m.renew()
	m.connect()
}

func (m *member) open(last uint64) {
	m.submit(openRun(m.n, m.id, last), func(r *wire.Result) {
		switch {
		case m.closed:
		case r.GetCode() == wire.Code_CODE_OK:
		case r.GetCode() == wire.Code_CODE_STALE && r.GetEpoch() > 0:
			m.n.after(10*time.Millisecond, func() { m.open(r.GetEpoch()) })
		default:
			m.n.after(100*time.Millisecond, func() {
				if m.epoch == 0 && !m.closed {
					m.open(last)
				}
			})
		}
	})
}

// here tells whether this run may still begin something: it is the process's, admitted and not known to be closed.
func (m *member) here() bool { return m.n.member == m && m.epoch > 0 && !m.closed }

// held tells whether the lease has not run out on the run's own clock.
func (m *member) held() bool {
	if m.n.w.plan.Mutant == LeaseForgotten {
		return m.here()
	}
	return m.here() && m.n.clock() < m.deadline
}

// after does something later if the run is still there.
func (m *member) after(d time.Duration, do func()) {
	m.n.after(d, func() {
		if m.here() {
			do()
		}
	})
}

// submit repeats a command, under one number, until its outcome is known, or the process forgets the run. The answer comes in
// the process.
func (m *member) submit(c *wire.Command, then func(*wire.Result)) {
	m.seq++
	seq := m.seq
	m.waiting[seq] = true
	c = proto.CloneOf(c)
	if c.GetOpenRun() == nil {
		c.Run = m.id.Bytes()
	}
	c.Client, c.Seq, c.Sender = m.id.Bytes(), seq, m.n.name
	m.try(c, seq, then)
}

func (m *member) try(c *wire.Command, seq uint64, then func(*wire.Result)) {
	if m.n.member != m || !m.waiting[seq] {
		return
	}
	w := m.n.w
	c = proto.CloneOf(c)
	c.Acked = m.acked()
	again := func(d time.Duration) { m.n.after(d, func() { m.try(c, seq, then) }) }
	to := m.n.raft.leader
	if to == nil {
		again(20 * time.Millisecond)
		return
	}
	decided := false
	answered := func(r *wire.Result) {
		if decided || m.n.member != m {
			return
		}
		decided = true
		if r == nil || r.GetCode() == wire.Code_CODE_AGAIN {
			again(w.between(5*time.Millisecond, 50*time.Millisecond))
			return
		}
		if m.waiting[seq] {
			delete(m.waiting, seq)
			then(r)
		}
	}
	back := m.n.guarded(answered)
	w.send(m.n, to, func() {
		if to.lead == nil || to.lead.over {
			w.send(to, m.n, func() { back(nil) })
			return
		}
		to.lead.submit(c, func(r *wire.Result) { w.send(to, m.n, func() { back(r) }) })
	})
	m.n.after(w.between(300*time.Millisecond, 600*time.Millisecond), func() { answered(nil) })
}

// guarded ties an answer to the present process.
func (n *node) guarded(do func(*wire.Result)) func(*wire.Result) {
	life := n.life
	return func(r *wire.Result) {
		if n.life == life {
			n.run(func() { do(r) })
		}
	}
}

// acked: all answers up to it have been seen.
func (m *member) acked() uint64 {
	least := m.seq
	for seq := range m.waiting {
		least = min(least, seq-1)
	}
	return least
}

// renew sends renewals at a third of the TTL, and again through another member when no answer comes (rule 5).
func (m *member) renew() {
	if m.n.member != m || m.closed {
		return
	}
	if m.epoch > 0 {
		m.renewal++
		seq := m.renewal
		sent, fences := m.n.clock(), m.fences()
		if to := m.n.raft.leader; to != nil {
			m.deliver(m.n, to, seq, sent, fences)
		}
		m.n.after(ttl/9, func() {
			if m.here() && m.answeredUpTo() < seq {
				via := m.n.w.nodes[m.n.w.rng.IntN(len(m.n.w.nodes))]
				if m.n.w.plan.Mutant == DetourCountsAnew {
					sent = m.n.clock()
				}
				m.n.w.send(m.n, via, func() { m.passOn(via, seq, sent, fences) })
			}
		})
	}
	m.n.after(ttl/3, m.renew)
}

func (m *member) answeredUpTo() uint64 { return m.n.w.check.answered[m.id] }

// passOn is another member's part: it brings the renewal to the leader that it knows. It counts from when it was first sent.
func (m *member) passOn(via *node, seq uint64, sent time.Duration, fences []expiry) {
	if to := via.raft.leader; to != nil {
		m.deliver(via, to, seq, sent, fences)
	}
}

func (m *member) deliver(from, to *node, seq uint64, sent time.Duration, fences []expiry) {
	w := m.n.w
	life := m.n.life
	w.send(from, to, func() {
		if to.lead == nil || to.lead.over {
			return
		}
		to.lead.renew(renewal{run: m.id, seq: seq, fences: fences}, func(a ack) {
			w.send(to, from, func() {
				w.send(from, m.n, func() {
					if m.n.life == life && m.n.member == m {
						m.acknowledged(seq, sent, a)
					}
				})
			})
		})
	})
}

func (m *member) acknowledged(seq uint64, sent time.Duration, a ack) {
	if a.closed && m.epoch > 0 {
		m.end()
		return
	}
	if !a.acknowledged {
		return
	}
	m.n.w.check.answered[m.id] = max(m.answeredUpTo(), seq)
	m.deadline = max(m.deadline, sent+ttl-margin)
	m.n.w.check.leased(m)
	for _, f := range a.fences {
		for _, j := range m.jobs {
			if j.component == f.component && j.dead == f.dead && j.ref.GetIndex() == f.index {
				j.deadline = max(j.deadline, sent+fenceTTL-fenceGap)
			}
		}
	}
}

// fences are those that are renewed with the run: of recoverers that still make progress.
func (m *member) fences() []expiry {
	var list []expiry
	for _, key := range sortedKeys(m.jobs) {
		if j := m.jobs[key]; !j.hung && !j.over {
			list = append(list, expiry{component: j.component, dead: j.dead, index: j.ref.GetIndex()})
		}
	}
	return list
}

// connect keeps a session stream to the leader that the node knows.
func (m *member) connect() {
	if m.n.member != m || m.closed {
		return
	}
	if to := m.n.raft.leader; to != nil && m.epoch > 0 && to != m.stream {
		if old := m.stream; old != nil && old.lead != nil {
			m.n.w.send(m.n, old, func() { old.hear(detect.Event{Kind: detect.StreamEnded, Run: detect.RunID(m.id), Goodbye: true}) })
		}
		m.n.w.send(m.n, to, func() {
			if to.lead != nil && to.lead.runs[m.id].Open != nil {
				to.hear(detect.Event{Kind: detect.StreamOpened, Run: detect.RunID(m.id)})
				m.stream = to
			}
		})
	}
	m.n.after(50*time.Millisecond, m.connect)
}

func (n *node) hear(e detect.Event) {
	if n.lead != nil {
		n.lead.step(e)
	}
}

// changed is what the log says, as this node's replica has it.
func (m *member) changed(changes []state.Change) {
	for _, c := range changes {
		switch c := c.(type) {
		case state.RunOpened:
			if c.Run.ID == m.id {
				m.admitted(c.Run)
			}
		case state.RunClosed:
			if c.Run.ID == m.id {
				m.end()
			}
		case state.RecoveryEnded:
			if j := m.jobs[jobKey(c.Recovery)]; j != nil && j.ref.GetIndex() == c.Recovery.GetIndex() {
				j.ended()
			}
		case state.LockGranted:
			if c.Run == m.id {
				m.granted(c.Name, c.Token)
			}
		}
	}
	if m.here() {
		m.look()
	}
}

func (m *member) admitted(r state.Run) {
	m.epoch = r.Epoch
	m.after(0, m.work)
	m.after(0, m.lockings)
}

// end: the run is closed; the process opens another one.
func (m *member) end() {
	if m.closed {
		return
	}
	m.closed = true
	for _, j := range m.jobs {
		j.over = true
	}
	if !m.leaving {
		m.n.after(m.n.w.between(time.Millisecond, 300*time.Millisecond), m.n.stand)
	}
}

// leave is a planned end: the run says goodbye when it has nothing to do.
func (m *member) leave() {
	if !m.here() || m.tasks > 0 || len(m.jobs) > 0 {
		return
	}
	m.leaving = true
	m.submit(leave(m.n, m.id), func(*wire.Result) {
		m.closed = true
		n := m.n
		n.after(n.w.between(100*time.Millisecond, 3*time.Second), n.stand)
	})
}

func (w *world) streamsBreak(n *node) {
	if n.member == nil {
		return
	}
	id := n.member.id
	for _, to := range w.nodes {
		if to != n && n.member.stream == to {
			w.send(n, to, func() { to.hear(detect.Event{Kind: detect.StreamEnded, Run: detect.RunID(id)}) })
		}
	}
}

// streamsTimeOut: a host that is gone says nothing; its connections end by their keep-alive.
func (w *world) streamsTimeOut(n *node) {
	if n.member == nil {
		return
	}
	id, to := n.member.id, n.member.stream
	if to == nil || to == n {
		return
	}
	w.after(w.between(3*time.Second, 6*time.Second), func() {
		to.run(func() { to.hear(detect.Event{Kind: detect.StreamEnded, Run: detect.RunID(id)}) })
	})
}

// obituary goes from the warden to whoever leads, some times, and late at times; and then that nothing is left of the run.
func (w *world) obituary(n *node, id state.RunID) {
	if w.chance(5) {
		return // no warden
	}
	tell := func(do func(*leading)) {
		for _, to := range w.nodes {
			if to.raft.role == leads && to.running() {
				w.send(n, to, func() {
					if to.lead != nil && !to.lead.over {
						do(to.lead)
					}
				})
			}
		}
	}
	for i := range 4 {
		late := time.Duration(i) * 200 * time.Millisecond
		if w.chance(10) {
			late += w.between(0, 10*time.Second)
		}
		w.after(late+w.between(time.Millisecond, 20*time.Millisecond), func() { tell(func(l *leading) { l.obituary(id) }) })
		w.after(late+w.between(30*time.Millisecond, 300*time.Millisecond), func() {
			tell(func(l *leading) { l.n.raft.propose([]*wire.Command{quiesced(id, l.term)}, func([]*wire.Result) {}) })
		})
	}
}

// silent: gossip has not heard of the node for a while.
func (w *world) silent(n *node) bool {
	reach := false
	for _, to := range w.nodes {
		if to != n && to.running() && w.open(n.id, to.id) && w.open(to.id, n.id) {
			reach = true
		}
	}
	if n.running() && reach && !w.plan.slandered(n.id, w.now) {
		n.spoke = w.now
	}
	return w.now-n.spoke > 1500*time.Millisecond
}

func openRunOf(m *state.Machine, node string) (state.Run, bool) {
	for _, r := range m.Runs() {
		if r.IsOpen() && r.Node() == node {
			return r, true
		}
	}
	return state.Run{}, false
}

func sortedRuns(runs map[state.RunID]state.Run) []state.Run {
	list := make([]state.Run, 0, len(runs))
	for _, r := range runs {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b state.Run) int { return int(a.Epoch) - int(b.Epoch) })
	return list
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
