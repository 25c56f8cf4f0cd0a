package gossip

import (
	"bytes"
	"context"
	"slices"
	"sync"
)

// Kind says what an [Event] tells.
type Kind int

// The kinds of event.
const (
	// Alive: the member has come, or has come back after Dead or Left.
	Alive Kind = iota + 1
	// Updated: a living member's meta or address has changed.
	Updated
	// Dead: gossip holds the member for dead. It may be wrong: this is suspicion, never proof.
	Dead
	// Left: the member has said that it goes.
	Left
)

// String is the kind as a word.
func (k Kind) String() string {
	switch k {
	case Alive:
		return "alive"
	case Updated:
		return "updated"
	case Dead:
		return "dead"
	case Left:
		return "left"
	}
	return "unknown"
}

// Member is what gossip knows of one member. The bytes belong to the receiver.
type Member struct {
	Name string // "node/run"
	Addr string // IP:port of its gossip
	Meta []byte
}

func (m Member) clone() Member {
	m.Meta = bytes.Clone(m.Meta)
	return m
}

// Event is one change of one member.
type Event struct {
	Kind   Kind
	Member Member
}

// queue holds events until they are asked for. Putting never blocks. It is bounded by the number of members: of one
// member at most two events wait, an end (Dead or Left) and what came after it. So a reader that was slow sees fewer
// changes but always the last state, and never misses that a member was gone in between.
type queue struct {
	mu     sync.Mutex
	events []Event
	closed bool
	more   chan struct{} // holds a token while there may be something to read
}

func newQueue() *queue { return &queue{more: make(chan struct{}, 1)} }

func (q *queue) put(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.events = coalesce(q.events, e)
	q.signal()
}

// coalesce adds e to the events that wait.
func coalesce(waiting []Event, e Event) []Event {
	same := func(w Event) bool { return w.Member.Name == e.Member.Name }
	if e.Kind == Dead || e.Kind == Left {
		return append(slices.DeleteFunc(waiting, same), e)
	}
	for i := len(waiting) - 1; i >= 0; i-- {
		if w := &waiting[i]; same(*w) {
			if w.Kind == Alive || w.Kind == Updated {
				w.Member = e.Member
				return waiting
			}
			break
		}
	}
	return append(waiting, e)
}

func (q *queue) signal() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

func (q *queue) next(ctx context.Context) (Event, error) {
	for {
		if e, ok, err := q.take(); ok || err != nil {
			return e, err
		}
		select {
		case <-q.more:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

func (q *queue) take() (Event, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) > 0 {
		e := q.events[0]
		q.events[0] = Event{}
		q.events = q.events[1:]
		if len(q.events) > 0 || q.closed {
			q.signal() // for another reader
		}
		return e, true, nil
	}
	if q.closed {
		q.signal()
		return Event{}, false, ErrStopped
	}
	return Event{}, false, nil
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}
