package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"
)

// Times of the simulated group: profile local, but for the leases, which are short so that they run out often.
const (
	ttl      = 2 * time.Second
	fenceTTL = 5 * time.Second
	margin   = ttl / 10
	fenceGap = fenceTTL / 10

	settle   = 120 * time.Second // after the faults, until everything must have ended
	maxSteps = 3_000_000         // ten times what a long history has
)

// world is one history.
type world struct {
	plan  Plan
	rng   *rand.Rand
	now   time.Duration
	queue events
	seq   uint64
	steps int

	nodes  []*node
	net    network
	ledger *ledger
	store  *store
	target *target
	items  *items
	check  *checker
	broken error // the first broken invariant
	report Report
	calm   bool // the faults are over
}

// event is something that happens at a time; equal times in the order of their making.
type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return last
}

// after does something later, whatever has become of any node.
func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, event{at: w.now + max(d, 0), seq: w.seq, do: do})
}

// between draws a time.
func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rng.Int64N(int64(to-from)+1))
}

// chance is true once in n.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// fail notes the first broken invariant; the history ends with it.
func (w *world) fail(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf("at %v, step %d: "+format, append([]any{w.now, w.steps}, args...)...)
	}
}

// play runs the history to its end.
func (w *world) play() {
	for w.broken == nil && len(w.queue) > 0 {
		e := heap.Pop(&w.queue).(event)
		if e.at > w.plan.Until+settle {
			w.atEnd()
			return
		}
		w.now = e.at
		w.steps++
		e.do()
		if w.steps == maxSteps {
			w.fail("the history does not come to rest, there is still %s", w.left())
		}

		if w.calm && w.steps%64 == 0 && w.quiet() {
			w.atEnd()
			return
		}
	}
}

// node finds one by name.
func (w *world) node(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// leader is the node that really leads: with the highest term among those that believe so.
func (w *world) leader() *node {
	var best *node
	for _, n := range w.nodes {
		if n.raft.role == leads && n.running() && (best == nil || n.raft.term > best.raft.term) {
			best = n
		}
	}
	return best
}
