package consensus

import (
	"time"

	"github.com/hashicorp/raft"
)

// noticePause lies between two notices to one follower while proposals follow one another: the next entry says the same then,
// a little later, and a busy log is not to have a call of each kind for each entry. Who waits for an entry is told at once all
// the same: see [Node.Hurry].
const noticePause = 5 * time.Millisecond

// notices tell the followers at once what is committed. Raft itself tells them with the next entry, or when nothing has
// followed for up to two CommitTimeouts; and whoever waits for an entry to be applied, by its own command or because it was
// given work in it, would wait that long.
//
// A notice is Raft's own call without entries: follow up to here, as far as the log agrees. It says no more than what its
// receiver is known to hold, and is checked there like each call, against the term and the log.
type notices struct {
	node      *Node
	committed chan struct{} // capacity 1
}

// commit notes that a proposal was committed. It never blocks.
func (n *notices) commit() {
	select {
	case n.committed <- struct{}{}:
	default:
	}
}

// Hurry has the follower at address, a node name, told of index as soon as it holds it: it waits until it has applied that
// entry, which is committed. It never blocks; on a node that does not lead it does nothing.
func (n *Node) Hurry(address string, index uint64) {
	_, done, err := n.running()
	if err != nil {
		return
	}
	defer done()
	n.trans.peers.want(raft.ServerAddress(address), index)
	n.notices.commit()
}

// loop looks again at each commit and at each answer of a follower: one that was not among the first to hold an entry is
// told when it does.
func (n *notices) loop(r *raft.Raft) {
	for {
		answered := n.node.trans.peers.wait()
		n.send(r)
		select {
		case <-n.committed:
		case <-answered:
		case <-n.node.stopping:
			return
		}
	}
}

// send gives each follower its notice. The term is read after the index: so the index was known to this node before any later
// term began, and whoever led this term holds all of it.
func (n *notices) send(r *raft.Raft) {
	if r.State() != raft.Leader {
		return
	}
	var pause time.Duration
	if n.node.proposals.Load() > 0 {
		pause = noticePause
	}
	index := r.CommitIndex()
	term := r.CurrentTerm()
	for _, due := range n.node.trans.peers.notify(term, index, pause) {
		_, done, err := n.node.running()
		if err != nil {
			return
		}
		go func() { // ends within the time-out of a call
			defer done()
			var answer raft.AppendEntriesResponse
			if err := n.node.trans.AppendEntries(due.id, due.to, due.request, &answer); err != nil {
				n.node.cfg.Logger.Debug("raft: a follower was not told what is committed, the next call does", "peer", string(due.id), "error", err)
			}
		}()
	}
}
