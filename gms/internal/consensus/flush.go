package consensus

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// isolation is how long a commit must stay the last one before it counts as isolated: longer than a caller takes from
// one answer to its next proposal, so that a busy log gets no barriers.
const isolation = time.Millisecond

// flusher logs a barrier after an isolated commit. Followers hear of a commit with the next entry only, so without it they
// would apply the last entry of a burst up to two CommitTimeouts later.
type flusher struct {
	node  *Node
	dirty chan struct{}
	last  atomic.Uint64 // highest index that a proposal of this node got
}

// committed notes a proposal's index.
func (f *flusher) committed(index uint64) {
	for {
		old := f.last.Load()
		if index <= old || f.last.CompareAndSwap(old, index) {
			break
		}
	}
	select {
	case f.dirty <- struct{}{}:
	default:
	}
}

func (f *flusher) loop(r *raft.Raft) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-f.dirty:
		case <-f.node.stopping:
			return
		}
		pause.Reset(isolation)
		select {
		case <-pause.C:
		case <-f.node.stopping:
			return
		}
		if f.isolated(r) {
			r.Barrier(enqueueLimit) // nobody waits for it
		}
	}
}

// isolated says whether the last entry of the log is a proposal's, with none behind it and somebody to tell.
func (f *flusher) isolated(r *raft.Raft) bool {
	return f.node.proposals.Load() == 0 && r.State() == raft.Leader && r.LastIndex() == f.last.Load() &&
		len(r.GetConfiguration().Configuration().Servers) > 1
}
