package gmstest

import (
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// observer sees every entry that any member applies, at the moment at which it does, and judges the invariants of
// PROTOCOL.md: 1, 2, 3, 4, 14, 17, the second half of 13, and of 16 what one state can show. What it finds fails the test.
type observer struct {
	w     *World
	fail  func(text string)
	lease func(owner *Node, r state.Run) // judges a lease, on a goroutine of its own

	mu        sync.Mutex
	resting   bool
	news      chan struct{} // closed and replaced at each entry
	entries   map[place][32]byte
	followed  map[*Node]*follower
	runs      map[state.RunID]*Node // by whom it was opened
	closings  []closing
	releases  map[recovered]int
	forgotten map[string]bool         // nodes that were forgotten; true: for good
	trouble   map[*Node]time.Time     // when the node's last pause has ended; zero time while it lasts
	cut       map[[2]string]time.Time // by IP: when the last cut of this link has ended; zero time while it lasts
	leaders   map[*Node]time.Time     // when each last applied an entry first
}

// follower is one replica's way through the log.
type follower struct {
	index uint64
	view  uint64
}

// closing is one run's end as the log has it.
type closing struct {
	Node     string
	Run      string
	Evidence wire.Evidence
	At       time.Time
}

// place is an index of one group's log; a world may have several groups.
type place struct {
	cluster string
	index   uint64
}

// recovered names the recovery of a component of a run.
type recovered struct{ Component, Run string }

func newObserver(w *World) *observer {
	o := &observer{
		w: w, news: make(chan struct{}), entries: map[place][32]byte{}, followed: map[*Node]*follower{},
		runs: map[state.RunID]*Node{}, releases: map[recovered]int{}, forgotten: map[string]bool{}, trouble: map[*Node]time.Time{}, cut: map[[2]string]time.Time{}, leaders: map[*Node]time.Time{},
	}
	o.fail = func(text string) { w.t.Error(text) }
	o.lease = o.judgeLease
	return o
}

// moved is closed when some member applies the next entry.
func (o *observer) moved() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.news
}

// rest ends the judging, for the end of the test.
func (o *observer) rest() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.resting = true
}

func (o *observer) broken(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	o.w.tape.note("!!", text)
	o.fail(text)
}

// applied is called by every replica for every entry, under the replica's lock.
func (o *observer) applied(n *Node, index uint64, m *state.Machine, changes []state.Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.resting {
		return
	}
	close(o.news)
	o.news = make(chan struct{})
	o.follow(n, index, m, changes == nil)
	var hash [32]byte
	if index%max(o.w.opts.hashes, 1) == 0 {
		hash = m.Hash()
	}
	at := place{string(m.ClusterID()), index}
	known, seen := o.entries[at]
	switch {
	case seen && known != hash:
		o.broken("invariant 1: %s has another state at index %d than the first that applied it", n.Name, index)
	case !seen:
		o.entries[at] = hash
		o.judge(m)
		o.leaders[n] = time.Now()
		o.take(n, m, changes)
		o.tell(index, changes)
	}
}

// follow holds that a replica goes forward only. A process that starts reads its log from the beginning.
func (o *observer) follow(n *Node, index uint64, m *state.Machine, snapshot bool) {
	f := o.followed[n]
	if f == nil {
		f = &follower{}
		o.followed[n] = f
	}
	view := m.View().Version
	if index < f.index || index == f.index && !snapshot && index > 0 || view < f.view {
		o.broken("invariant 1: %s went from index %d, view %d to index %d, view %d", n.Name, f.index, f.view, index, view)
	}
	f.index, f.view = index, view
}

// forgot tells whether a node was forgotten, and whether for good.
func (o *observer) forgot(node string) (forgotten, forGood bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	forGood, forgotten = o.forgotten[node]
	return forgotten, forGood
}

// releasedOf tells how often the recovery of a component of a run has ended.
func (o *observer) releasedOf(component, run string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.releases[recovered{component, run}]
}
