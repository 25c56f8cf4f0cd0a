package consensus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

const enqueueLimit = 10 * time.Second // for Raft's loop to take an entry from a caller without a deadline

// Propose logs data and waits until the FSM of this node has applied it. It returns the entry's index and what the FSM
// answered. Errors: [ErrNotLeader], [ErrTooLarge], [ErrStopped] and [ErrNotStarted] mean that nothing has happened or
// will, like a ctx that had ended before the call; [ErrUnknown] that the entry may still take effect, which includes a
// ctx that ends meanwhile.
func (n *Node) Propose(ctx context.Context, data []byte) (index uint64, response any, err error) {
	if len(data) > MaxEntry {
		return 0, nil, fmt.Errorf("propose %d bytes: %w", len(data), ErrTooLarge)
	}
	n.proposals.Add(1)
	f, err := wait(ctx, n, func(r *raft.Raft) (raft.ApplyFuture, error) {
		f := r.Apply(data, enqueueTime(ctx))
		err := f.Error()
		n.proposals.Add(-1)
		if err == nil {
			n.notices.commit()
		}
		return f, err
	}, func() { n.proposals.Add(-1) })
	if err != nil {
		return 0, nil, fmt.Errorf("propose: %w", err)
	}
	return f.Index(), f.Response(), nil
}

// Barrier waits until this node, which must lead, has applied everything that was logged before the call. It writes an
// entry of its own. Errors as in Propose.
func (n *Node) Barrier(ctx context.Context) error {
	_, err := wait(ctx, n, func(r *raft.Raft) (struct{}, error) {
		term := r.CurrentTerm()
		err := r.Barrier(enqueueTime(ctx)).Error()
		if err == nil && r.CurrentTerm() == term {
			n.established.Store(term)
		}
		return struct{}{}, err
	}, nil)
	if err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	return nil
}

func enqueueTime(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(time.Until(end), time.Millisecond)
	}
	return enqueueLimit
}

// wait runs f, which waits for Raft as long as Raft likes, in a goroutine of the node, and gives up when ctx ends. If f is
// not run at all, refused is called (when not nil).
func wait[T any](ctx context.Context, n *Node, f func(*raft.Raft) (T, error), refused func()) (T, error) {
	var none T
	r, done, err := n.running()
	if err == nil && ctx.Err() != nil {
		done()
		err = context.Cause(ctx)
	}
	if err != nil {
		if refused != nil {
			refused()
		}
		return none, err
	}
	type outcome struct {
		value T
		err   error
	}
	answered := make(chan outcome, 1)
	go func() {
		defer done()
		v, err := f(r)
		answered <- outcome{v, err}
	}()
	select {
	case o := <-answered:
		return o.value, classify(o.err)
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	case <-n.ended:
		return none, fmt.Errorf("%w: %w", ErrUnknown, ErrStopped)
	}
}

// classify turns Raft's errors into those of this package. What Raft refuses before it logs it is ErrNotLeader; what it
// may have logged is ErrUnknown, a failed write of the log included: the entry may be on the disk.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	case errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("%w: %w", ErrUnknown, ErrStopped)
	default:
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
}
