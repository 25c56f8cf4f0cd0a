package gms

import (
	"sync"

	"github.com/fencepost/fencepost/signals"
)

// quorum is what this process' sessions say of leaders: whether one answers.
type quorum struct {
	moved chan struct{} // capacity 1

	mu   sync.Mutex
	lost bool
}

func newQuorum() *quorum { return &quorum{moved: make(chan struct{}, 1)} }

// set never blocks.
func (q *quorum) set(lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost = lost
	select {
	case q.moved <- struct{}{}:
	default:
	}
}

func (q *quorum) isLost() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// tellQuorum tells of the loss of the quorum once, and of its return, whatever run stands by then.
func (s *signalling) tellQuorum() {
	lost := s.quorum.isLost()
	if lost == s.lost || lost && s.self.IsZero() {
		return
	}
	s.lost = lost
	f := signals.Facts{Kind: signals.QuorumRegained, Member: s.member(s.g.cfg.Node), View: s.view, PreviousView: s.view}
	if lost {
		f.Kind = signals.QuorumLost
	}
	s.hand(f)
}
