package sim

import (
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// node is a host with a home on disk, and the process that lives on it, if any.
type node struct {
	w    *world
	id   int
	name string
	rate float64 // of its clock

	hostUp bool
	life   uint64 // number of the process; 0 before the first
	up     bool   // the process lives
	paused time.Duration
	frozen []func()

	raft    *raft          // its persistent part survives the process
	machine *state.Machine // of the process
	lead    *leading       // nil: does not lead, or its first entry is not applied
	member  *member        // the run of the process
	wound   time.Duration  // last time that something was wrong with it
	spoke   time.Duration  // last time that gossip heard of it
	born    time.Duration  // of the process, on its clock
	endings map[endingKey]time.Duration
}

// clock is the node's own, which counts while it is paused.
func (n *node) clock() time.Duration { return time.Duration(float64(n.w.now) * n.rate) }

func (n *node) running() bool { return n.up && n.w.now >= n.paused }

// run does something in the process now, or when it goes on; not at all when it is dead.
func (n *node) run(do func()) {
	switch {
	case !n.up:
	case n.w.now < n.paused:
		n.frozen = append(n.frozen, n.bound(do))
	default:
		do()
	}
}

// bound ties something to the present process.
func (n *node) bound(do func()) func() {
	life := n.life
	return func() {
		if n.life == life {
			n.run(do)
		}
	}
}

// after does something in this process, by its own clock.
func (n *node) after(d time.Duration, do func()) {
	n.w.after(time.Duration(float64(d)/n.rate)+1, n.bound(do)) // never short of it
}

// guard ties an answer to the process that asked.
func (n *node) guard(then func(result, bool)) func(result, bool) {
	life := n.life
	return func(r result, known bool) {
		if n.life == life {
			n.run(func() { then(r, known) })
		}
	}
}

// start begins a process: the disk is what the last one left.
func (n *node) start() {
	if n.up || !n.hostUp {
		return
	}
	n.life++
	n.up, n.paused, n.frozen = true, 0, nil
	n.lead, n.member = nil, nil
	n.born, n.endings = n.clock(), map[endingKey]time.Duration{}
	n.raft = n.raft.reborn()
	n.machine = n.reloaded()
	n.raft.begin()
	n.after(n.w.between(time.Millisecond, 50*time.Millisecond), n.stand)
}

// reloaded is the state after a restart: from a snapshot, or from nothing.
func (n *node) reloaded() *state.Machine {
	if n.machine == nil || n.w.chance(2) {
		n.raft.applied = 0
		return state.New()
	}
	var s wire.Snapshot
	bytes, err := state.MarshalSnapshot(n.machine.Snapshot())
	if err == nil {
		err = unmarshal(bytes, &s)
	}
	if err != nil {
		n.w.fail("snapshot of %s: %v", n.name, err)
		return state.New()
	}
	m, err := state.Restore(&s)
	if err != nil {
		n.w.fail("snapshot of %s is refused: %v", n.name, err)
		return state.New()
	}
	n.raft.applied = m.Index()
	return m
}

// kill ends the process at once. warden: its death is told, and seen by the kernel.
func (n *node) kill(warden bool) {
	if !n.up {
		return
	}
	dead := n.member
	n.up, n.frozen = false, nil
	n.wound = n.w.now
	n.w.target.ended(n) // its connections are reset, or time out there
	n.w.ledger.ended(n)
	if !warden {
		n.w.streamsTimeOut(n)
		return
	}
	n.w.streamsBreak(n)
	if dead != nil {
		n.w.obituary(n, dead.id)
	}
}

// pause stops the process with all that it has under way.
func (n *node) pause(d time.Duration) {
	if !n.up {
		return
	}
	n.paused = max(n.paused, n.w.now+d)
	n.wound = n.paused
	life := n.life
	n.w.after(n.paused-n.w.now, func() {
		if n.life != life || !n.up || n.w.now < n.paused {
			return
		}
		work := n.frozen
		n.frozen = nil
		for i, do := range work {
			n.w.after(time.Duration(i)*time.Microsecond, n.bound(do))
		}
	})
}

// apply takes one committed entry.
func (n *node) apply(index uint64, e *logEntry) {
	if e.entry == nil {
		return
	}
	former, _ := n.machine.Leader()
	results, changes := n.machine.Apply(index, e.entry)
	n.noteEndings(changes)
	n.w.check.applied(n, index, e, changes)
	if n.lead != nil {
		n.lead.follow()
	}
	n.raft.answer(index, e.term, results)
	for _, c := range e.entry.GetCommands() {
		if l := c.GetLead(); l != nil && l.GetNode() == n.name && l.GetTerm() == n.raft.term && n.raft.role == leads {
			newLeading(n, former)
		}
	}
	if n.member != nil {
		n.member.changed(changes)
	}
}
