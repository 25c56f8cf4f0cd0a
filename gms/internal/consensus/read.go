package consensus

import (
	"context"
	"fmt"

	"github.com/hashicorp/raft"
)

// ReadIndex gives an index such that an FSM that has applied it is not staler than the call; wait for it with
// [Node.WaitApplied], here or on another node. Only the leader answers, others [ErrNotLeader].
func (n *Node) ReadIndex(ctx context.Context) (uint64, error) {
	r, done, err := n.running()
	if err != nil {
		return 0, fmt.Errorf("read index: %w", err)
	}
	defer done()
	term := r.CurrentTerm()
	if r.State() != raft.Leader {
		return 0, fmt.Errorf("read index: %w", ErrNotLeader)
	}
	if n.established.Load() != term { // until an own entry is applied, the commit index may be behind
		if err := n.Barrier(ctx); err != nil {
			return 0, fmt.Errorf("read index: %w", err)
		}
	}
	commit := r.CommitIndex()
	if err := n.Verify(ctx); err != nil {
		return 0, fmt.Errorf("read index: %w", err)
	}
	if r.CurrentTerm() != term || n.established.Load() != term {
		return 0, fmt.Errorf("read index: %w", ErrNotLeader)
	}
	return n.lastEntry(commit), nil
}

// lastEntry is the last index that an FSM gets to see of those up to index: barriers and changes of the configuration
// never reach it. If the FSM here is already further, its own position does as well.
func (n *Node) lastEntry(index uint64) uint64 {
	at, _ := n.machine.position()
	var l raft.Log
	for i := index; i > at; i-- {
		if err := n.logs.GetLog(i, &l); err != nil {
			break // compacted, so consumed
		}
		if l.Type == raft.LogCommand {
			return i
		}
	}
	at, _ = n.machine.position()
	return at
}

// WaitApplied waits until the FSM has consumed the entry at index, which must be one that Propose, ReadIndex or Applied
// gave. It returns nil, the cause of ctx's end, or [ErrStopped].
func (n *Node) WaitApplied(ctx context.Context, index uint64) error {
	for {
		at, changed := n.machine.position()
		if at >= index {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for index %d: %w", index, context.Cause(ctx))
		case <-n.ended:
			return fmt.Errorf("wait for index %d: %w", index, ErrStopped)
		}
	}
}

// Applied is the index of the last entry that the FSM has consumed; entries of Raft's own do not count.
func (n *Node) Applied() uint64 {
	at, _ := n.machine.position()
	return at
}
