package sim

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Times of elections.
const (
	heartbeat = 50 * time.Millisecond
	election  = 200 * time.Millisecond
	contact   = 500 * time.Millisecond // a leader that reached no majority for so long steps down
)

type role int

const (
	follows role = iota
	stands
	leads
)

// logEntry is one entry of the log; entry is nil for that with which a leader begins its term.
type logEntry struct {
	term  uint64
	entry *wire.Entry
}

// raft is one node's part of the consensus (Ongaro, Ousterhout 2014), with all nodes as voters.
type raft struct {
	n *node

	// On disk.
	term  uint64
	voted int // 1 + node; 0: nobody
	log   []*logEntry

	// Of the process.
	role    role
	leader  *node
	votes   map[int]bool
	commit  uint64
	applied uint64
	timer   uint64 // number of the present election timer
	next    []uint64
	match   []uint64
	round   uint64 // of appends
	acked   []uint64
	heard   []time.Duration
	waiting []pending
	proofs  []proof
}

// pending is a proposal of this leader that is not applied.
type pending struct {
	index, term uint64
	answer      func([]*wire.Result) // nil: the outcome is unknown here
}

// proof waits until a majority has answered a round.
type proof struct {
	round uint64
	tell  func(bool)
}

func newRaft(n *node) *raft { return &raft{n: n} }

// reborn keeps what is on disk.
func (r *raft) reborn() *raft { return &raft{n: r.n, term: r.term, voted: r.voted, log: r.log} }

func (r *raft) last() (index, term uint64) {
	if len(r.log) == 0 {
		return 0, 0
	}
	return uint64(len(r.log)), r.log[len(r.log)-1].term
}

func (r *raft) termAt(i uint64) uint64 {
	if i == 0 || i > uint64(len(r.log)) {
		return 0
	}
	return r.log[i-1].term
}

func (r *raft) majority(n int) bool { return n > len(r.n.w.nodes)/2 }

// begin starts the follower's timer.
func (r *raft) begin() { r.wait() }

func (r *raft) wait() {
	r.timer++
	mine := r.timer
	r.n.after(r.n.w.between(election, 2*election), func() {
		if r.timer == mine && r.role != leads {
			r.stand()
		}
	})
}

// meet takes a term that somebody names; a larger one ends whatever this node was.
func (r *raft) meet(term uint64) {
	if term <= r.term {
		return
	}
	r.term, r.voted = term, 0
	r.yield()
}

// yield ends a leadership, or a candidacy. Whoever waits for an entry learns that its outcome is unknown.
func (r *raft) yield() {
	was := r.role
	r.role, r.leader = follows, nil
	if was != leads {
		return
	}
	if r.n.lead != nil {
		r.n.lead.end()
		r.n.lead = nil
	}
	waiting, proofs := r.waiting, r.proofs
	r.waiting, r.proofs = nil, nil
	for _, p := range waiting {
		p.answer(nil)
	}
	for _, p := range proofs {
		p.tell(false)
	}
	r.wait()
}

func (r *raft) stand() {
	r.term++
	r.role, r.voted, r.leader = stands, r.n.id+1, nil
	r.votes = map[int]bool{r.n.id: true}
	r.wait()
	term := r.term
	index, lastTerm := r.last()
	for _, to := range r.n.w.nodes {
		if to != r.n {
			r.n.w.send(r.n, to, func() { to.raft.ask(r.n, term, index, lastTerm) })
		}
	}
	r.elected()
}

func (r *raft) ask(from *node, term, index, lastTerm uint64) {
	r.meet(term)
	mine, myTerm := r.last()
	fresh := lastTerm > myTerm || lastTerm == myTerm && index >= mine
	yes := term == r.term && fresh && (r.voted == 0 || r.voted == from.id+1)
	if yes {
		r.voted = from.id + 1
		r.wait()
	}
	said := r.term
	r.n.w.send(r.n, from, func() {
		from.raft.meet(said)
		if yes && from.raft.role == stands && from.raft.term == term {
			from.raft.votes[r.n.id] = true
			from.raft.elected()
		}
	})
}

func (r *raft) elected() {
	if r.role != stands || !r.majority(len(r.votes)) {
		return
	}
	all := len(r.n.w.nodes)
	index, _ := r.last()
	r.role, r.leader = leads, r.n
	r.next, r.match, r.acked = make([]uint64, all), make([]uint64, all), make([]uint64, all)
	r.heard = slices.Repeat([]time.Duration{r.n.clock()}, all)
	for i := range r.next {
		r.next[i] = index + 1
	}
	r.n.w.check.led(r.n, r.term)
	r.log = append(r.log, &logEntry{term: r.term})
	r.beat()
	r.announce()
}

// announce proposes what a leader says of itself first; the very first forms the group.
func (r *raft) announce() {
	w := r.n.w
	cmds := []*wire.Command{lead(r.n.name, r.term)}
	if !r.n.machine.Formed() {
		cmds = append([]*wire.Command{form(w)}, cmds...)
	}
	r.propose(cmds, func([]*wire.Result) {})
}

// beat sends what each follower lacks, at intervals, while this node leads.
func (r *raft) beat() {
	if r.role != leads {
		return
	}
	near := 0
	for i, at := range r.heard {
		if i == r.n.id || r.n.clock()-at < contact {
			near++
		}
	}
	if !r.majority(near) {
		r.yield()
		return
	}
	r.spread()
	term := r.term
	r.n.after(heartbeat, func() {
		if r.term == term {
			r.beat()
		}
	})
}

func (r *raft) spread() {
	r.round++
	r.acked[r.n.id], r.match[r.n.id] = r.round, uint64(len(r.log))
	for _, to := range r.n.w.nodes {
		if to != r.n {
			r.append(to)
		}
	}
	r.decide()
}

func (r *raft) append(to *node) {
	from := min(r.next[to.id], uint64(len(r.log))+1)
	before, beforeTerm := from-1, r.termAt(from-1)
	entries := slices.Clone(r.log[from-1:])
	term, commit, round := r.term, r.commit, r.round
	r.n.w.send(r.n, to, func() { to.raft.take(r.n, term, before, beforeTerm, entries, commit, round) })
}

func (r *raft) take(from *node, term, before, beforeTerm uint64, entries []*logEntry, commit, round uint64) {
	r.meet(term)
	if term < r.term {
		said := r.term
		r.n.w.send(r.n, from, func() { from.raft.meet(said) })
		return
	}
	r.role, r.leader = follows, from
	r.wait()
	fits := before <= uint64(len(r.log)) && r.termAt(before) == beforeTerm
	match := before + uint64(len(entries))
	if fits {
		r.store(before, entries)
		if upTo := min(commit, match); upTo > r.commit {
			r.commit = upTo
			r.applyAll()
		}
	} else {
		match = min(before, uint64(len(r.log))+1)
	}
	r.n.w.send(r.n, from, func() { from.raft.took(r.n, term, fits, match, round) })
}

func (r *raft) store(before uint64, entries []*logEntry) {
	for i, e := range entries {
		at := before + uint64(i)
		if at < uint64(len(r.log)) {
			if r.log[at].term == e.term {
				continue
			}
			r.log = slices.Clone(r.log[:at])
		}
		r.log = append(r.log, e)
	}
}

func (r *raft) took(from *node, term uint64, fits bool, match, round uint64) {
	if r.role != leads || r.term != term {
		return
	}
	r.heard[from.id] = r.n.clock()
	r.acked[from.id] = max(r.acked[from.id], round)
	if fits {
		r.match[from.id] = max(r.match[from.id], match)
		r.next[from.id] = max(r.next[from.id], r.match[from.id]+1)
	} else if r.match[from.id] == 0 || match > r.match[from.id] {
		r.next[from.id] = max(1, min(r.next[from.id]-1, match))
		r.append(from)
	}
	r.decide()
}

// decide commits what a majority holds, and proves what a majority has answered.
func (r *raft) decide() {
	sorted := slices.Sorted(slices.Values(r.match))
	if held := sorted[(len(sorted)-1)/2]; held > r.commit && r.termAt(held) == r.term {
		r.commit = held
		r.applyAll()
	}
	if r.role != leads {
		return
	}
	rounds := slices.Sorted(slices.Values(r.acked))
	proved := rounds[(len(rounds)-1)/2]
	for len(r.proofs) > 0 && r.proofs[0].round <= proved {
		p := r.proofs[0]
		r.proofs = r.proofs[1:]
		p.tell(true)
	}
}

// verify proves that this node led at some time after the call.
func (r *raft) verify(tell func(bool)) {
	if r.role != leads {
		tell(false)
		return
	}
	if r.n.w.plan.Mutant == UnprovedLeader {
		tell(true)
		return
	}
	r.proofs = append(r.proofs, proof{r.round + 1, tell})
	r.spread()
}

func (r *raft) applyAll() {
	for r.applied < r.commit {
		r.applied++
		e := r.log[r.applied-1]
		r.n.w.check.committed(r.n, r.applied, e)
		r.n.apply(r.applied, e)
	}
}

// propose appends an entry of commands. answer gets their results, or nil when the outcome is unknown.
func (r *raft) propose(cmds []*wire.Command, answer func([]*wire.Result)) {
	if r.role != leads {
		answer(nil)
		return
	}
	r.log = append(r.log, &logEntry{term: r.term, entry: &wire.Entry{Version: wire.Protocol, Commands: cmds}})
	r.waiting = append(r.waiting, pending{uint64(len(r.log)), r.term, answer})
	r.spread()
}

func (r *raft) answer(index, term uint64, results []*wire.Result) {
	for len(r.waiting) > 0 && r.waiting[0].index <= index {
		p := r.waiting[0]
		r.waiting = r.waiting[1:]
		if p.index == index && p.term == term {
			p.answer(results)
		} else {
			p.answer(nil)
		}
	}
}
