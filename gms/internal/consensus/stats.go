package consensus

import (
	"strconv"
	"time"

	"github.com/hashicorp/raft"
)

// Stats are numbers for decisions and for people. All are read from memory.
type Stats struct {
	State     string // Leader, Follower, Candidate, Shutdown; empty before Start
	Term      uint64
	LastIndex uint64 // end of the log
	Commit    uint64 // last index known to be committed
	Applied   uint64 // last entry that the FSM has consumed
	Snapshot  uint64 // index of the last snapshot
	First     uint64 // oldest entry still in the log; a follower that is further behind needs a snapshot
	// Oldest is when the leader of that time logged that entry; zero when the log is empty.
	Oldest time.Time
	// Restore is how long it took to take the last snapshot in; 0 for none since the start.
	Restore time.Duration
	// LastContact is when a follower heard from the leader; zero for never, and for the leader itself.
	LastContact time.Time
	// Peers holds the other servers of the configuration, by server id; only the leader fills it.
	Peers map[string]Peer
}

// Peer is what the leader knows of another server in its present term.
type Peer struct {
	LastContact time.Time // of its last favourable answer; zero: none in this term
	Match       uint64    // last index that it is known to hold
}

// Stats gives the present numbers.
func (n *Node) Stats() Stats {
	r := n.peek()
	if r == nil {
		return Stats{}
	}
	s := Stats{
		State: r.State().String(), Term: r.CurrentTerm(), LastIndex: r.LastIndex(),
		Commit: r.CommitIndex(), Applied: n.Applied(),
	}
	s.Restore = time.Duration(n.machine.restored.Load())
	s.First, s.Oldest = n.oldest()
	s.Snapshot, _ = strconv.ParseUint(r.Stats()["last_snapshot_index"], 10, 64)
	if r.State() != raft.Leader {
		s.LastContact = r.LastContact()
		return s
	}
	s.Peers = map[string]Peer{}
	for _, server := range r.GetConfiguration().Configuration().Servers {
		if server.ID == raft.ServerID(n.cfg.ServerID) {
			continue
		}
		note, _ := n.trans.peers.get(server.ID, s.Term)
		if note.term != s.Term {
			note = peerNote{}
		}
		s.Peers[string(server.ID)] = Peer{LastContact: note.at, Match: note.match}
	}
	return s
}

func (n *Node) oldest() (uint64, time.Time) {
	first, err := n.logs.FirstIndex()
	var l raft.Log
	if err != nil || first == 0 || n.logs.GetLog(first, &l) != nil {
		return 0, time.Time{}
	}
	return first, l.AppendedAt
}
