package consensus

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// peerTable notes, per peer, the last call that it answered in favour of this leader, and what it is known to hold. Calls are
// numbered in the order in which they start: an answer to call 7 proves the leadership at some time after whatever happened
// before call 7.
type peerTable struct {
	mu      sync.Mutex
	calls   uint64
	peers   map[raft.ServerID]peerNote
	changed chan struct{} // closed and replaced at each note
}

type peerNote struct {
	call  uint64    // number of the latest call that was answered
	term  uint64    // the term that it was sent in
	at    time.Time // when it was answered
	match uint64    // last index that the peer is known to hold

	matchTerm uint64             // of the entry at match
	to        raft.ServerAddress // where it was called
	header    raft.RPCHeader     // of its calls
	told      uint64             // the peer is known to have committed up to here
	notified  uint64             // of this it has had a notice, which may have been lost
	noticed   time.Time          // when that was
	wanted    uint64             // it waits for this one
}

func newPeerTable() *peerTable {
	return &peerTable{peers: map[raft.ServerID]peerNote{}, changed: make(chan struct{})}
}

// begin numbers a call.
func (p *peerTable) begin() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	return p.calls
}

func (p *peerTable) heard(id raft.ServerID, to raft.ServerAddress, call uint64, req *raft.AppendEntriesRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note := p.peers[id]
	if req.Term < note.term {
		return
	}
	if req.Term > note.term {
		note = peerNote{term: req.Term}
	}
	note.call = max(note.call, call)
	note.at = time.Now()
	note.to, note.header = to, req.RPCHeader
	last, lastTerm := req.PrevLogEntry, req.PrevLogTerm
	if n := len(req.Entries); n > 0 {
		last, lastTerm = last+uint64(n), req.Entries[n-1].Term
	}
	if last > note.match {
		note.match, note.matchTerm = last, lastTerm
	}
	note.told = max(note.told, min(last, req.LeaderCommitIndex))
	p.peers[id] = note
	close(p.changed)
	p.changed = make(chan struct{})
}

// notice is a call that tells a peer what is committed.
type notice struct {
	id      raft.ServerID
	to      raft.ServerAddress
	request *raft.AppendEntriesRequest
}

// notify makes the notices for those that have answered in term and hold more that is committed, by index, than they have been
// told of; not for those whose last one was made within pause, unless it holds what they wait for. Each is made once: what
// becomes of it, the caller need not come back to.
func (p *peerTable) notify(term, index uint64, pause time.Duration) (due []notice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for id, note := range p.peers {
		upTo := min(index, note.match)
		if note.term != term || upTo <= note.told || upTo <= note.notified {
			continue
		}
		awaited := max(note.told, note.notified) < note.wanted && note.wanted <= upTo
		if now.Sub(note.noticed) < pause && !awaited {
			continue
		}
		note.notified, note.noticed = upTo, now
		p.peers[id] = note
		due = append(due, notice{id, note.to, &raft.AppendEntriesRequest{
			RPCHeader: note.header, Term: term,
			PrevLogEntry: note.match, PrevLogTerm: note.matchTerm, LeaderCommitIndex: upTo,
		}})
	}
	return due
}

// want notes that the peer that is called at to waits until it has applied index.
func (p *peerTable) want(to raft.ServerAddress, index uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, note := range p.peers {
		if note.to == to {
			note.wanted = max(note.wanted, index)
			p.peers[id] = note
		}
	}
}

// wait gives the channel that is closed at the next note.
func (p *peerTable) wait() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// answered counts those of ids that answered, in term, a call that began after the one numbered since.
func (p *peerTable) answered(ids []raft.ServerID, term, since uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, id := range ids {
		if note := p.peers[id]; note.term == term && note.call > since {
			n++
		}
	}
	return n
}

// get gives the note of one peer, if it has answered in term.
func (p *peerTable) get(id raft.ServerID, term uint64) (peerNote, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note, ok := p.peers[id]
	return note, ok && note.term == term
}
