package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// A hello on the wire: four bytes that tell this protocol from all others, the length as two bytes, the message. The one
// who dials speaks first, the other answers, and then the connection belongs to Raft or to gRPC, or ends.
const (
	magic      = "FNCP"
	maxHello   = 1024            // bytes of the message
	helloLimit = 2 * time.Second // for both messages together
	maxName    = 255             // bytes of a group's or a node's name
	idSize     = 16              // bytes of a run, a home and a cluster id
)

// Errors of a hello. Each says why no connection came about.
var (
	// ErrOtherGroup: the other side belongs to another group.
	ErrOtherGroup = errors.New("another group answers")
	// ErrOtherCluster: the group's name is the same, its cluster id is not: it was made anew, or one of the two does
	// not know yet that the group has been formed.
	ErrOtherCluster = errors.New("another cluster of that name answers")
	// ErrWrongNode: another node answers at the address than the one that was wanted.
	ErrWrongNode = errors.New("another node answers")
	// ErrProtocol: the protocol of one side is too old or too new for the other's group, or is not this one at all.
	ErrProtocol = errors.New("no common protocol")
	// ErrRefused: the other side refuses for a reason of its own.
	ErrRefused = errors.New("the other side refuses")
)

// Identity is what this process says of itself in a hello.
type Identity struct {
	Group     string
	ClusterID []byte // 16 bytes; empty while no formed group is known
	Node      string
	Run       []byte // 16 bytes; empty between two runs
	Home      []byte // 16 bytes
	Agreed    uint32 // protocol that the group writes; 0 while it is not known
}

// misfit is ErrProtocol when it is this side that has to be changed: what the group writes is not read or not written here.
type misfit struct{ agreed uint32 }

func (m misfit) Error() string {
	return fmt.Sprintf("%v: the group writes version %d, this program reads up to %d and writes from %d on", ErrProtocol, m.agreed, wire.Protocol, wire.Oldest)
}

func (misfit) Is(target error) bool { return target == ErrProtocol }

// tellMisfit calls f when err says that it is this side that has to be changed.
func tellMisfit(err error, f func(agreed uint32)) {
	var m misfit
	if f != nil && errors.As(err, &m) {
		f(m.agreed)
	}
}

func (id Identity) hello(kind wire.Hello_Kind) *wire.Hello {
	return &wire.Hello{
		Protocol: wire.Protocol, Group: id.Group, ClusterId: id.ClusterID,
		Node: id.Node, Run: id.Run, Home: id.Home, Kind: kind, Agreed: id.Agreed,
	}
}

// check decides whether a hello of the other side may lead to a connection of that kind. A probe learns the cluster id of
// another node, so it is the one kind that asks for no agreement about it.
func (id Identity) check(h *wire.Hello, kind wire.Hello_Kind) error {
	switch {
	case h.Protocol == 0:
		return fmt.Errorf("%w: version %d", ErrProtocol, h.Protocol)
	case h.Group != id.Group:
		return fmt.Errorf("%w: %q, not %q", ErrOtherGroup, h.Group, id.Group)
	case kind != wire.Hello_KIND_PROBE && !bytes.Equal(h.ClusterId, id.ClusterID):
		return fmt.Errorf("%w: id %x, not %x", ErrOtherCluster, h.ClusterId, id.ClusterID)
	case kind == wire.Hello_KIND_PROBE:
		return nil
	case h.Agreed > wire.Protocol || h.Agreed > 0 && h.Agreed < wire.Oldest:
		return misfit{h.Agreed}
	case id.Agreed > 0 && (h.Protocol < id.Agreed || h.Protocol > id.Agreed+1):
		return fmt.Errorf("%w: its program has version %d, and the group writes %d", ErrProtocol, h.Protocol, id.Agreed)
	}
	return nil
}

// encodeHello gives the bytes of one hello.
func encodeHello(h *wire.Hello) ([]byte, error) {
	body, err := proto.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode the hello: %w", err)
	}
	if len(body) > maxHello {
		return nil, fmt.Errorf("encode the hello: %d bytes, at most %d fit", len(body), maxHello)
	}
	frame := append([]byte(magic), 0, 0)
	binary.BigEndian.PutUint16(frame[len(magic):], uint16(len(body)))
	return append(frame, body...), nil
}

// readHello reads one hello and not a byte more. It trusts nothing that it reads.
func readHello(r io.Reader) (*wire.Hello, error) {
	var head [len(magic) + 2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("read the hello: %w", err)
	}
	if string(head[:len(magic)]) != magic {
		return nil, firstBytes(head[:len(magic)])
	}
	size := binary.BigEndian.Uint16(head[len(magic):])
	if size > maxHello {
		return nil, fmt.Errorf("%w: a hello of %d bytes", ErrProtocol, size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("read the hello: %w", err)
	}
	h := &wire.Hello{}
	if err := proto.Unmarshal(body, h); err != nil {
		return nil, fmt.Errorf("%w: decode the hello: %w", ErrProtocol, err)
	}
	return h, checkShape(h)
}

// checkShape bounds what later code may rely on.
func checkShape(h *wire.Hello) error {
	for _, id := range [][]byte{h.ClusterId, h.Run, h.Home} {
		if len(id) != 0 && len(id) != idSize {
			return fmt.Errorf("%w: an id of %d bytes", ErrProtocol, len(id))
		}
	}
	if h.Node == "" || len(h.Node) > maxName || len(h.Group) > maxName {
		return fmt.Errorf("%w: a node's name of %d bytes, a group's of %d", ErrProtocol, len(h.Node), len(h.Group))
	}
	return nil
}

// greet says hello on a fresh connection, which makes the handshake of TLS if there is one, and reads the answer. Afterwards the connection has no deadline, unless it is a
// probe's, which is of no further use.
// It returns the answer also beside an error, when there was one that could be read.
func greet(ctx context.Context, conn net.Conn, id Identity, kind wire.Hello_Kind) (*wire.Hello, error) {
	end := time.Now().Add(helloLimit)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	if err := conn.SetDeadline(end); err != nil {
		return nil, fmt.Errorf("bound the hello: %w", err)
	}
	undo := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // wakes reads and writes
	answer, err := exchange(conn, id, kind)
	if sec, ok := conn.(*secured); ok && err != nil {
		err = sec.explain(err)
	} else if ok && answer.Node != sec.peer.Node {
		err = fmt.Errorf("%w: %w: a node that calls itself %q has the certificate of %s", ErrUntrusted, ErrWrongNode, answer.Node, sec.peer)
	}
	if !undo() {
		return answer, fmt.Errorf("say hello: %w", context.Cause(ctx))
	}
	if err != nil || kind == wire.Hello_KIND_PROBE { // the other side has closed a probe by now
		return answer, err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return answer, fmt.Errorf("unbound the connection: %w", err)
	}
	return answer, nil
}

func exchange(conn io.ReadWriter, id Identity, kind wire.Hello_Kind) (*wire.Hello, error) {
	frame, err := encodeHello(id.hello(kind))
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(frame); err != nil {
		return nil, fmt.Errorf("say hello: %w", err)
	}
	answer, err := readHello(conn)
	if err != nil {
		return nil, err
	}
	if answer.Refused != "" && answer.Group == "" { // it said no more, since this side speaks no TLS
		return nil, fmt.Errorf("%w: node %q says: %s", ErrUntrusted, answer.Node, answer.Refused)
	}
	if err := id.check(answer, kind); err != nil {
		return answer, err
	}
	if answer.Refused != "" {
		return answer, fmt.Errorf("%w: %s", ErrRefused, answer.Refused)
	}
	return answer, nil
}
