package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/fencepost/fencepost/gms/certs"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

const (
	maxMessage    = 4 << 20  // bytes of one gRPC message, in both directions
	maxStreams    = 1024     // calls under way on one connection
	maxHeaders    = 16 << 10 // bytes of one call's headers, unpacked
	maxGreetings  = 256      // hellos under way at once
	keepaliveTime = 10 * time.Second
	keepaliveWait = 3 * time.Second
	acceptPause   = 5 * time.Millisecond
	partLimit     = 500 * time.Millisecond // for the other side to read why it was refused
	partBytes     = 64 << 10
)

// Network is the seam through which tests replace sockets.
type Network interface {
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// ErrStopped means that the Server or Dialer has been stopped.
var ErrStopped = errors.New("rpc is stopped")

// ServerConfig says what a [Server] is. All but Certificates and Logger are required.
type ServerConfig struct {
	Network Network
	// BindAddr is the host:port of the cluster port; port 0 takes a free one.
	BindAddr string
	// Identity is asked at each hello, from any goroutine; it must not block.
	Identity func() Identity
	// Handler answers the calls of the service. Its contexts end when the caller's connection does.
	Handler wire.ClusterServer
	// Admit is asked before each call, with the method's name, whether its sender may make it at all; nil lets all through.
	Admit func(method string, from Peer) error
	// Certificates put TLS below all connections and prove who is at both ends; nil means plain.
	Certificates *certs.Keeper
	// Misfit is told when a member of the group says that this writes a protocol which does not fit this program; it must not
	// block. nil: nobody is told.
	Misfit func(agreed uint32)
	// Logger takes refused connections; nil discards them.
	Logger *slog.Logger
}

// Server is the cluster port: it answers each connection's hello and hands the connection to Raft or to gRPC.
type Server struct {
	cfg   ServerConfig
	log   *grumbler
	conns *connSet
	slots chan struct{} // one per hello under way

	mu       sync.Mutex // guards the life below
	listener net.Listener
	grpc     *grpc.Server
	calls    *handover
	raft     *Streams
	stopped  bool
	ended    chan struct{} // closed when Stop is through

	stopping chan struct{}
	loops    sync.WaitGroup
}

// NewServer checks the configuration. It opens nothing and starts nothing.
func NewServer(cfg ServerConfig) (*Server, error) {
	switch {
	case cfg.Network == nil:
		return nil, errors.New("rpc: Network is nil")
	case cfg.BindAddr == "":
		return nil, errors.New("rpc: BindAddr is empty")
	case cfg.Identity == nil:
		return nil, errors.New("rpc: Identity is nil")
	case cfg.Handler == nil:
		return nil, errors.New("rpc: Handler is nil")
	}
	return &Server{
		cfg: cfg, log: newGrumbler(cfg.Logger), conns: newConnSet(), slots: make(chan struct{}, maxGreetings),
		ended: make(chan struct{}), stopping: make(chan struct{}),
	}, nil
}

// Start opens the port and begins to answer.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return ErrStopped
	case s.listener != nil:
		return errors.New("rpc: started already")
	}
	l, err := s.cfg.Network.Listen(ctx, "tcp", s.cfg.BindAddr)
	if err != nil {
		return fmt.Errorf("open the cluster port: %w", err)
	}
	s.listener, s.calls = l, newHandover(l.Addr())
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(maxHeaders),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if err := s.admit(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return handle(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if err := s.admit(stream.Context(), info.FullMethod); err != nil {
				return err
			}
			return handle(srv, stream)
		}),
		grpc.ConnectionTimeout(helloLimit),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveWait}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 2, PermitWithoutStream: true}),
	)
	wire.RegisterClusterServer(s.grpc, s.cfg.Handler)
	srv, calls := s.grpc, s.calls
	s.loops.Go(func() { _ = srv.Serve(calls) }) // ends with Stop
	s.loops.Go(func() { s.acceptLoop(l) })
	return nil
}

// admit asks whether a call may be made.
func (s *Server) admit(ctx context.Context, method string) error {
	from, known := PeerFrom(ctx)
	if !known {
		return status.Error(codes.PermissionDenied, "nobody calls")
	}
	if s.cfg.Admit == nil {
		return nil
	}
	if err := s.cfg.Admit(path.Base(method), from); err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	return nil
}

// Distrusted are the nodes that came with certificates of the group's authority which have expired, each with why.
func (s *Server) Distrusted() map[string]error { return s.log.distrusted() }

// Addr is the bound address; nil before Start.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Drop ends all connections that the given run opened to this server.
func (s *Server) Drop(run []byte) { s.conns.drop(run) }

// Stop closes the port and all connections, and waits for all handlers to return. It may be called before Start and more
// than once.
func (s *Server) Stop() {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		<-s.ended
		return
	}
	s.stopped = true
	raft := s.raft
	s.mu.Unlock()
	close(s.stopping)
	if raft != nil {
		_ = raft.Close() // never fails
	}
	if s.listener != nil {
		_ = s.listener.Close() // the loop ends by stopping
		s.conns.closeAll()
		_ = s.calls.Close() // never fails
		s.grpc.Stop()
	}
	s.loops.Wait()
	close(s.ended)
}

func (s *Server) acceptLoop(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			select {
			case <-s.stopping:
				return
			case <-time.After(acceptPause):
				s.log.say("rpc: connection not accepted", "", err)
				continue
			}
		}
		select {
		case s.slots <- struct{}{}:
		default:
			_ = conn.Close() // more strangers than anybody needs
			continue
		}
		s.loops.Go(func() {
			defer func() { <-s.slots }()
			s.serve(conn)
		})
	}
}

// serve says hello and hands the connection over.
func (s *Server) serve(raw net.Conn) {
	conn, ok := s.conns.add(raw)
	if !ok {
		return
	}
	h, err := s.answer(conn)
	if err != nil {
		if errors.Is(err, certs.ErrExpired) { // a name that another authority wrote says nothing of who comes
			s.log.distrust(err)
		}
		s.log.say("rpc: connection refused", hostOf(raw.RemoteAddr()), err)
		part(conn, err)
		return
	}
	if !s.hand(conn, h.Kind) {
		_ = conn.Close() // a probe, or nobody took it
	}
}

// part ends a refused connection so that the other side can read why: a close with bytes unread would throw away what is
// on its way. Who said nothing is not waited for.
func part(conn *peerConn, why error) {
	half, ok := conn.raw.(interface{ CloseWrite() error })
	if ok && forPeople(why) && half.CloseWrite() == nil && conn.raw.SetDeadline(time.Now().Add(partLimit)) == nil {
		_, _ = io.CopyN(io.Discard, conn.raw, partBytes) // ends with the other side's close
	}
	_ = conn.Close() // the error that counts is why
}

// answer reads the hello, below TLS if there is any, and answers it, with the reason when it is refused.
func (s *Server) answer(conn *peerConn) (*wire.Hello, error) {
	if err := conn.SetDeadline(time.Now().Add(helloLimit)); err != nil {
		return nil, fmt.Errorf("bound the hello: %w", err)
	}
	var sec *secured
	if s.cfg.Certificates != nil {
		sec = secureServer(conn.raw, s.cfg.Certificates)
		conn.Conn = sec
	}
	h, err := readHello(conn)
	if err != nil && sec != nil {
		if spokePlain(err) {
			refusePlain(conn.raw, s.cfg.Identity())
		}
		err = sec.explain(err)
	}
	if err != nil {
		return nil, err
	}
	id := s.cfg.Identity()
	refusal := s.judge(id, h, sec)
	answer := id.hello(h.Kind)
	tellMisfit(refusal, s.cfg.Misfit)
	if refusal != nil {
		answer.Refused = refusal.Error()
	}
	frame, err := encodeHello(answer)
	if err != nil {
		return nil, err
	}
	if refusal == nil {
		s.conns.name(conn, peerOf(h))
		s.log.trusted(h.Node)
	}
	if _, err := conn.Write(frame); err != nil {
		return nil, errors.Join(refusal, fmt.Errorf("answer the hello: %w", err))
	}
	if refusal != nil {
		return nil, fmt.Errorf("node %q: %w", h.Node, refusal)
	}
	return h, conn.SetDeadline(time.Time{})
}

// judge decides about a hello. Below TLS, its node must be the certificate's: a certificate of the group speaks for its own
// node only.
func (s *Server) judge(id Identity, h *wire.Hello, sec *secured) error {
	if sec != nil && sec.peer.Node != h.Node {
		return fmt.Errorf("%w: %w: a node that calls itself %q has the certificate of %s", ErrUntrusted, ErrWrongNode, h.Node, sec.peer)
	}
	if err := id.check(h, h.Kind); err != nil {
		return err
	}
	return s.takes(h.Kind)
}

// refusePlain tells a node without certificates why it is refused, in the way that it can read.
func refusePlain(conn net.Conn, id Identity) {
	frame, err := encodeHello(&wire.Hello{
		Protocol: wire.Protocol, Node: id.Node, Refused: "it wants TLS, and this node has no certificate: `fencepost certs`",
	})
	if err == nil {
		_, _ = conn.Write(frame) // it is refused anyway
	}
}

// takes says whether connections of that kind find somebody here.
func (s *Server) takes(kind wire.Hello_Kind) error {
	switch kind {
	case wire.Hello_KIND_RPC, wire.Hello_KIND_PROBE:
		return nil
	case wire.Hello_KIND_RAFT:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.raft != nil && s.raft.open() {
			return nil
		}
		return fmt.Errorf("%w: raft does not run here", ErrRefused)
	default:
		return fmt.Errorf("%w: unknown kind of connection %d", ErrProtocol, kind)
	}
}

func (s *Server) hand(conn *peerConn, kind wire.Hello_Kind) bool {
	switch kind {
	case wire.Hello_KIND_RPC:
		return s.calls.offer(conn)
	case wire.Hello_KIND_RAFT:
		s.mu.Lock()
		raft := s.raft
		s.mu.Unlock()
		return raft != nil && raft.offer(conn)
	default:
		return false
	}
}

// Streams is the cluster port as Raft uses it: the connections that others open to it for Raft, and the way to theirs.
type Streams struct {
	*handover
	dialer *Dialer
}

// Dial opens a connection for Raft to a node.
func (s *Streams) Dial(ctx context.Context, node string) (net.Conn, error) {
	return s.dialer.Raft(ctx, node)
}

// Streams begins to take connections for Raft, until the Streams is closed; before and after, they are refused. It
// replaces and closes an earlier one.
func (s *Server) Streams(d *Dialer) *Streams {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raft != nil {
		_ = s.raft.Close() // never fails
	}
	var addr net.Addr
	if s.listener != nil {
		addr = s.listener.Addr()
	}
	s.raft = &Streams{handover: newHandover(addr), dialer: d}
	if s.stopped {
		_ = s.raft.Close() // never fails
	}
	return s.raft
}
