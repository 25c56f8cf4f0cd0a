package signals

import "sync"

// queue is a first-in first-out queue between those that deliver and one worker. Pushing never blocks.
type queue struct {
	mu    sync.Mutex
	items []Signal
	bytes int           // weight of items
	limit int           // most bytes held; 0: no limit
	wake  chan struct{} // holds one mark when something was pushed
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, wake: make(chan struct{}, 1)}
}

// push appends s and returns the number of signals now waiting, or false when s does not fit.
func (q *queue) push(s Signal) (waiting int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := weight(s); q.limit > 0 && len(q.items) > 0 && q.bytes+w > q.limit {
		return len(q.items), false
	}
	q.items = append(q.items, s)
	q.bytes += weight(s)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return len(q.items), true
}

// next takes the oldest signal, waiting for one until done is closed.
func (q *queue) next(done <-chan struct{}) (Signal, bool) {
	for {
		select {
		case <-done:
			return nil, false
		default:
		}
		if s, ok := q.pop(); ok {
			return s, true
		}
		select {
		case <-q.wake:
		case <-done:
			return nil, false
		}
	}
}

func (q *queue) pop() (Signal, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return nil, false
	}
	s := q.items[0]
	q.items[0] = nil
	q.items = q.items[1:]
	q.bytes -= weight(s)
	return s, true
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// messageOverhead is what a waiting message weighs besides its payload.
const messageOverhead = 256

func weight(s Signal) int {
	if m, ok := s.(*Message); ok {
		return len(m.payload) + messageOverhead
	}
	return 0
}
