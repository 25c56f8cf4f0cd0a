package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// Leadership is what a node knows of who leads.
type Leadership struct {
	// Leads says that this node leads. It is not a proof: see [Node.Verify].
	Leads bool
	// Term is Raft's term at the time of the change.
	Term uint64
	// ID and Address name the leader known here, empty when none is known.
	ID, Address string
	// Changes grows with every gain and loss of this node's leadership, so that "lost and regained" is seen.
	Changes uint64
}

// leadership keeps the latest Leadership. One goroutine does nothing but drain Raft's notices into it: Raft waits for the
// receiver, so that a receiver that waits for Raft would stop both.
type leadership struct {
	mu      sync.Mutex
	now     Leadership
	changed chan struct{}
}

func newLeadership() *leadership {
	return &leadership{changed: make(chan struct{})}
}

func (l *leadership) get() (Leadership, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now, l.changed
}

func (l *leadership) drain(r *raft.Raft, notify <-chan bool, stopping <-chan struct{}) {
	seen := make(chan raft.Observation, 16) // a dropped one does no harm: the next read tells all
	o := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	r.RegisterObserver(o)
	defer r.DeregisterObserver(o)
	l.set(r, func(*Leadership) {}) // a leader that was known before anybody observed is never announced again
	for {
		select {
		case leads := <-notify:
			l.set(r, func(now *Leadership) { now.Leads = leads; now.Changes++ })
		case <-seen:
			l.set(r, func(*Leadership) {})
		case <-stopping:
			l.set(r, func(now *Leadership) { now.Leads = false; now.Changes++ })
			return
		}
	}
}

func (l *leadership) set(r *raft.Raft, change func(*Leadership)) {
	address, id := r.LeaderWithID() // reads of memory, not calls of Raft's loop
	term := r.CurrentTerm()
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.now
	change(&next)
	next.Term, next.ID, next.Address = term, string(id), string(address)
	if next == l.now {
		return
	}
	l.now = next
	close(l.changed)
	l.changed = make(chan struct{})
}

// Watch gives what is known of the leadership now, and a channel that is closed when that changes. It never blocks.
func (n *Node) Watch() (Leadership, <-chan struct{}) { return n.lead.get() }

// Leader names the leader known here; empty when none is known.
func (n *Node) Leader() (id, address string) {
	r := n.peek()
	if r == nil {
		return "", ""
	}
	a, i := r.LeaderWithID()
	return string(i), string(a)
}

// IsLeader says whether this node believes that it leads. It is not a proof: see [Node.Verify].
func (n *Node) IsLeader() bool {
	r := n.peek()
	return r != nil && r.State() == raft.Leader
}

// Term is the highest term seen, 0 before Start.
func (n *Node) Term() uint64 {
	r := n.peek()
	if r == nil {
		return 0
	}
	return r.CurrentTerm()
}
