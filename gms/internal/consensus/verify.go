package consensus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Verify proves that this node led at some time after the call began: a majority of voters has answered calls that began
// after it. It returns nil, [ErrNotLeader], or the cause of ctx's end. Callers that arrive while a round is under way
// share the next round.
//
// Raft's own check is not enough: it also counts the answer to a heartbeat that had left before the check, so that a
// slow answer of a follower that has elected another leader meanwhile would prove a leadership that is over.
func (n *Node) Verify(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("verify: %w", context.Cause(ctx))
	}
	round, err := n.verify.join()
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	select {
	case <-round.done:
	case <-ctx.Done():
		return fmt.Errorf("verify: %w", context.Cause(ctx))
	case <-n.ended:
		return fmt.Errorf("verify: %w", ErrStopped)
	}
	if round.err != nil {
		return fmt.Errorf("verify: %w", round.err)
	}
	return nil
}

type verifyRound struct {
	done chan struct{}
	err  error // set before done is closed
}

// verifier runs rounds one after the other, each for all callers that came before it began.
type verifier struct {
	node *Node

	mu      sync.Mutex
	running bool
	next    *verifyRound // that nobody has begun yet
}

func (v *verifier) join() (*verifyRound, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.next != nil {
		return v.next, nil
	}
	if !v.running {
		r, done, err := v.node.running()
		if err != nil {
			return nil, err
		}
		v.running = true
		go func() {
			defer done()
			v.rounds(r)
		}()
	}
	v.next = &verifyRound{done: make(chan struct{})}
	return v.next, nil
}

// rounds runs until nobody waits any more.
func (v *verifier) rounds(r *raft.Raft) {
	for {
		v.mu.Lock()
		round := v.next
		v.next = nil
		if round == nil {
			v.running = false
			v.mu.Unlock()
			return
		}
		v.mu.Unlock()
		round.err = v.node.prove(r)
		close(round.done)
	}
}

// prove runs one round.
func (n *Node) prove(r *raft.Raft) error {
	term := r.CurrentTerm()
	if r.State() != raft.Leader {
		return ErrNotLeader
	}
	since := n.trans.peers.begin()
	// This makes heartbeats leave at once. Its own answer is not waited for: it keeps to the majority of the configuration that it
	// began under, and when voters that are gone are removed meanwhile it never comes, while the log goes on.
	_ = r.VerifyLeader()
	end := time.NewTimer(2 * n.cfg.Timing.ElectionTimeout)
	defer end.Stop()
	for {
		change, answer := n.leadChange(), n.trans.peers.wait()
		if r.State() != raft.Leader || r.CurrentTerm() != term {
			return ErrNotLeader
		}
		if n.majority(r, term, since) {
			return nil
		}
		select {
		case <-answer:
		case <-change:
		case <-n.stopping:
			return ErrStopped
		case <-end.C:
			return fmt.Errorf("%w: no majority answers", ErrNotLeader)
		}
	}
}

func (n *Node) leadChange() <-chan struct{} {
	_, change := n.lead.get()
	return change
}

// majority says whether more than half of the voters have answered in term since the call of that number.
func (n *Node) majority(r *raft.Raft, term, since uint64) bool {
	var others []raft.ServerID
	voters, yes := 0, 0
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if s.ID == raft.ServerID(n.cfg.ServerID) {
			yes++
		} else {
			others = append(others, s.ID)
		}
	}
	return yes+n.trans.peers.answered(others, term, since) > voters/2
}
