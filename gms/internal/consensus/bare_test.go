package consensus

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// bareNode is the library without anything of ours.
type bareNode struct {
	*raft.Raft
	trans *tapped
	store *raft.InmemStore
	tape  *tape
}

// tapped is the library's transport. It only remembers the pipelines, so that those that hang can be ended with the test.
type tapped struct {
	*raft.NetworkTransport
	mu    sync.Mutex
	pipes []raft.AppendPipeline
}

func (x *tapped) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := x.NetworkTransport.AppendEntriesPipeline(id, to)
	if err == nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.pipes = append(x.pipes, p)
	}
	return p, err
}

func (x *tapped) endPipes() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.pipes {
		_ = p.Close()
	}
}

// bareStream is a port in the shape of the library.
type bareStream struct{ *streams }

func (s bareStream) Accept() (net.Conn, error) {
	conn, _, err := s.admit()
	return conn, err
}

func bareTransport(w *wires, name string) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: bareStream{newStreams(w.port(name), name)}, MaxPool: 3, Timeout: 5 * time.Second, Logger: hclog.NewNullLogger(),
	})
}

func startBare(t *testing.T, w *wires, name string, store *raft.InmemStore, stable raft.StableStore, first ...string) *bareNode {
	t.Helper()
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(serverID(name))
	c.Logger = hclog.NewNullLogger()
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 300*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond
	n := &bareNode{trans: &tapped{NetworkTransport: bareTransport(w, name)}, store: store, tape: &tape{}}
	snaps := raft.NewInmemSnapshotStore()
	if len(first) > 0 {
		if err := raft.BootstrapCluster(c, store, stable, snaps, n.trans, configurationOf(first)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := raft.NewRaft(c, newMachine(n.tape), store, stable, snaps, n.trans)
	if err != nil {
		t.Fatal(err)
	}
	n.Raft = r
	return n
}

func configurationOf(names []string) (c raft.Configuration) {
	for _, s := range servers(names...) {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Address), Suffrage: raft.Voter})
	}
	return c
}

func (n *bareNode) stop() {
	n.trans.endPipes()
	_ = n.Shutdown().Error()
	_ = n.trans.Close()
	<-time.After(time.Minute) // what the library leaves behind ends by its time-outs
}

func awaitThat(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("waited for a minute for %s", what)
}

// puppet is a server that says what the test wants.
type puppet struct {
	name  string
	trans *raft.NetworkTransport

	mu     sync.Mutex
	answer func(*raft.AppendEntriesRequest) *raft.AppendEntriesResponse // nil: all is well
	seen   int                                                          // entries that were sent to it
	stop   chan struct{}
	done   sync.WaitGroup
}

func startPuppet(w *wires, name string) *puppet {
	p := &puppet{name: name, trans: bareTransport(w, name), stop: make(chan struct{})}
	p.done.Go(func() {
		for {
			select {
			case call := <-p.trans.Consumer():
				p.done.Go(func() { p.serve(call) })
			case <-p.stop:
				return
			}
		}
	})
	return p
}

func (p *puppet) serve(call raft.RPC) {
	switch r := call.Command.(type) {
	case *raft.RequestPreVoteRequest:
		call.Respond(&raft.RequestPreVoteResponse{RPCHeader: r.RPCHeader, Term: r.Term, Granted: true}, nil)
	case *raft.RequestVoteRequest:
		call.Respond(&raft.RequestVoteResponse{RPCHeader: r.RPCHeader, Term: r.Term, Granted: true}, nil)
	case *raft.AppendEntriesRequest:
		p.mu.Lock()
		p.seen += len(r.Entries)
		answer := p.answer
		p.mu.Unlock()
		last := r.PrevLogEntry + uint64(len(r.Entries))
		resp := &raft.AppendEntriesResponse{RPCHeader: r.RPCHeader, Term: r.Term, LastLog: last, Success: true}
		if answer != nil {
			resp = answer(r)
		}
		call.Respond(resp, nil)
	default:
		call.Respond(nil, errors.New("a puppet knows only elections and entries"))
	}
}

func (p *puppet) answers(f func(*raft.AppendEntriesRequest) *raft.AppendEntriesResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = f
}

func (p *puppet) entries() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

func (p *puppet) close() {
	close(p.stop)
	_ = p.trans.Close()
	p.done.Wait()
}

func headOf(name string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(serverID(name)), Addr: []byte(name)}
}

// heartbeat sends what a leader of that term sends between entries.
func (p *puppet) heartbeat(t *testing.T, to string, term uint64) {
	t.Helper()
	var resp raft.AppendEntriesResponse
	req := &raft.AppendEntriesRequest{RPCHeader: headOf(p.name), Term: term}
	if err := p.trans.AppendEntries(raft.ServerID(serverID(to)), raft.ServerAddress(to), req, &resp); err != nil {
		t.Fatal(err)
	}
	if resp.Term != term {
		t.Fatalf("%s answers with term %d", to, resp.Term)
	}
}

// requestVote asks for a vote and says whether it is given.
func (p *puppet) requestVote(t *testing.T, to string, term, lastIndex, lastTerm uint64) bool {
	t.Helper()
	var resp raft.RequestVoteResponse
	req := &raft.RequestVoteRequest{
		RPCHeader: headOf(p.name), Term: term, LastLogIndex: lastIndex, LastLogTerm: lastTerm,
		LeadershipTransfer: true, // else a candidate is turned away while another is known to lead
	}
	for range 5 { // connections to a process that has ended break at their first use
		if err := p.trans.RequestVote(raft.ServerID(serverID(to)), raft.ServerAddress(to), req, &resp); err == nil {
			return resp.Granted
		}
	}
	t.Errorf("%s asks for a vote and gets no answer", p.name)
	return resp.Granted
}

// embedded starts a node of ours whose peers are puppets.
func embedded(t *testing.T, w *wires, name string, stores Stores, names ...string) *Node {
	t.Helper()
	n, err := New(Config{
		ServerID: serverID(name), Address: name, Streams: w.port(name), FSM: &tape{}, Stores: stores,
		Timing: Timing{HeartbeatTimeout: 300 * time.Millisecond, LeaderLeaseTimeout: 200 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) > 0 {
		if err := n.Bootstrap(servers(names...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

func lastEntry(t *testing.T, logs raft.LogStore) raft.Log {
	t.Helper()
	last, err := logs.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	var l raft.Log
	if err := logs.GetLog(last, &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// bufferedPipe is a connection whose writes never wait, as those of a socket with room in its buffers.
func bufferedPipe() (net.Conn, net.Conn) {
	x, y := newSpool(), newSpool()
	near, far := net.Pipe() // for addresses
	return &spooled{Conn: near, in: x, out: y}, &spooled{Conn: far, in: y, out: x}
}

type spool struct {
	mu   sync.Mutex
	cond *sync.Cond
	data []byte
	over bool
}

func newSpool() *spool {
	s := &spool{}
	s.cond = sync.NewCond(&s.mu)
	return s
}

type spooled struct {
	net.Conn
	in, out *spool
}

func (s *spooled) Read(b []byte) (int, error) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	for len(s.in.data) == 0 && !s.in.over {
		s.in.cond.Wait()
	}
	if len(s.in.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.in.data)
	s.in.data = s.in.data[n:]
	return n, nil
}

func (s *spooled) Write(b []byte) (int, error) {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	if s.out.over {
		return 0, net.ErrClosed
	}
	s.out.data = append(s.out.data, b...)
	s.out.cond.Broadcast()
	return len(b), nil
}

func (s *spooled) Close() error {
	for _, sp := range []*spool{s.in, s.out} {
		sp.mu.Lock()
		sp.over = true
		sp.cond.Broadcast()
		sp.mu.Unlock()
	}
	return s.Conn.Close()
}
