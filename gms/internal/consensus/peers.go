package consensus

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// peerTable notes, per peer, the last call that it answered in favour of this leader. Calls are numbered in the order in
// which they start: an answer to call 7 proves the leadership at some time after whatever happened before call 7.
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

func (p *peerTable) heard(id raft.ServerID, call uint64, req *raft.AppendEntriesRequest) {
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
	note.match = max(note.match, req.PrevLogEntry+uint64(len(req.Entries)))
	p.peers[id] = note
	close(p.changed)
	p.changed = make(chan struct{})
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
