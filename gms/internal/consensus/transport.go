package consensus

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/hashicorp/raft"
)

var errSilent = errors.New("silent: the disk has stalled")

// transport stands between Raft and the network and holds four duties: heartbeats take no short cut past Raft's one loop
// (a heartbeat that raises the term beside it makes replicas differ); one call in flight per peer; silence in both
// directions when the disk has stalled; a note of who answered which call, for [Node.Verify]; and, in doors.go, that
// nobody's call speaks for another server.
type transport struct {
	*raft.NetworkTransport // the way out; what comes in has doors
	silent                 func() bool
	warn                   func(msg string, args ...any)
	peers                  *peerTable
	calls                  chan raft.RPC // what Raft consumes

	stop chan struct{}
	once sync.Once
	done sync.WaitGroup
}

func newTransport(s *streams, inner func(raft.StreamLayer) *raft.NetworkTransport, silent func() bool, warn func(string, ...any)) *transport {
	t := &transport{
		NetworkTransport: inner(s),
		silent:           silent,
		warn:             warn,
		peers:            newPeerTable(),
		calls:            make(chan raft.RPC),
		stop:             make(chan struct{}),
	}
	t.done.Go(func() { t.admit(s, inner) })
	return t
}

func (t *transport) inject(call raft.RPC) {
	select {
	case t.calls <- call:
	case <-t.stop:
	}
}

// electNow makes Raft stand for election at once, as a leader does that hands over.
func (t *transport) electNow(ctx context.Context) error {
	answer := make(chan raft.RPCResponse, 1)
	req := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}
	call := raft.RPC{Command: req, RespChan: answer}
	select {
	case t.calls <- call:
	case <-t.stop:
		return ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case a := <-answer:
		return a.Error
	case <-t.stop:
		return ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the relays and the network below them. Raft calls it while it shuts down.
func (t *transport) Close() error {
	var err error
	t.once.Do(func() {
		close(t.stop)
		err = t.NetworkTransport.Close() // and with it the network's, which ends admit
		t.done.Wait()
	})
	return err
}

// Consumer is where Raft takes the calls of others from.
func (t *transport) Consumer() <-chan raft.RPC { return t.calls }

// SetHeartbeatHandler does nothing, so that heartbeats go the way of all calls.
func (t *transport) SetHeartbeatHandler(func(raft.RPC)) {}

// AppendEntriesPipeline refuses: one call at a time.
func (t *transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries sends entries or a heartbeat, and notes the answer.
func (t *transport) AppendEntries(id raft.ServerID, to raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if t.silent() {
		return errSilent
	}
	call := t.peers.begin()
	// The answer is decoded into a fresh value: Raft reuses resp from heartbeat to heartbeat, and a field that the
	// peer leaves out would keep what an earlier answer said.
	var answer raft.AppendEntriesResponse
	if err := t.NetworkTransport.AppendEntries(id, to, req, &answer); err != nil {
		return err
	}
	*resp = answer
	if answer.Success && answer.Term <= req.Term {
		t.peers.heard(id, to, call, req)
	}
	return nil
}

// RequestVote asks for a vote.
func (t *transport) RequestVote(id raft.ServerID, to raft.ServerAddress, req *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if t.silent() {
		return errSilent
	}
	return t.NetworkTransport.RequestVote(id, to, req, resp)
}

// RequestPreVote asks whether a vote would be given.
func (t *transport) RequestPreVote(id raft.ServerID, to raft.ServerAddress, req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if t.silent() {
		return errSilent
	}
	return t.NetworkTransport.RequestPreVote(id, to, req, resp)
}

// InstallSnapshot sends a snapshot.
func (t *transport) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if t.silent() {
		return errSilent
	}
	return t.NetworkTransport.InstallSnapshot(id, to, req, resp, data)
}

// TimeoutNow hands the leadership over.
func (t *transport) TimeoutNow(id raft.ServerID, to raft.ServerAddress, req *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	if t.silent() {
		return errSilent
	}
	return t.NetworkTransport.TimeoutNow(id, to, req, resp)
}
