package rpc

import (
	"context"
	"net"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Peer is who is at the other end of a connection, as it said in its hello; below TLS its certificate has proven the node.
type Peer struct {
	Node string
	Run  []byte // 16 bytes; empty between two runs
	Home []byte // 16 bytes
}

func peerOf(h *wire.Hello) Peer { return Peer{Node: h.Node, Run: h.Run, Home: h.Home} }

// PeerFrom tells a handler who calls. It is false outside of a handler.
func PeerFrom(ctx context.Context) (Peer, bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return Peer{}, false
	}
	a, ok := p.Addr.(peerAddr)
	return a.peer, ok
}

// WithPeer is a context in which PeerFrom tells of a caller, as a connection makes it: for tests of handlers.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: peerAddr{peer: p}})
}

// PeerOf tells who is at the other end of a connection that a [Streams] gave.
func PeerOf(conn net.Conn) Peer {
	a, _ := conn.RemoteAddr().(peerAddr)
	return a.peer
}

// peerAddr carries the peer through gRPC, which hands a connection's remote address to the handlers.
type peerAddr struct {
	net.Addr
	peer Peer
}

// Unanswered says of an error of a call that no answer came: the other side could not be reached, the connection broke,
// or time ran out. Whether the call had an effect there is unknown.
func Unanswered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}
