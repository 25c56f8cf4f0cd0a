package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func FuzzReadHello(f *testing.F) {
	good, err := encodeHello(Identity{Group: "g", Node: "n", Run: id16(1)}.hello(wire.Hello_KIND_RAFT))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:7])
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("FNCP\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		h, err := readHello(r)
		if err != nil {
			return
		}
		if used := len(b) - r.Len(); used > maxHello+6 {
			t.Errorf("a hello of %d bytes was read", used)
		}
		if h.Node == "" || len(h.Run) != 0 && len(h.Run) != idSize {
			t.Errorf("a hello without shape was let through: %v", h)
		}
		frame, err := encodeHello(h)
		if err != nil {
			return // unknown fields of the sender may make it larger
		}
		again, err := readHello(bytes.NewReader(frame))
		if err != nil || !proto.Equal(h, again) {
			t.Errorf("%v became %v, %v", h, again, err)
		}
	})
}

// Gossip meta comes from strangers too; decoding it must never fail but with an error.
func FuzzMeta(f *testing.F) {
	good, err := proto.Marshal(&wire.Meta{Protocol: 1, Node: "n", Run: id16(1), ClusterAddr: "127.0.0.1:7947"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m wire.Meta
		if err := proto.Unmarshal(b, &m); err != nil {
			return
		}
		if _, err := proto.Marshal(&m); err != nil {
			t.Errorf("what was read can not be written: %v", err)
		}
	})
}

// Who does not read what the group writes gets no connection, whichever side notices; and the side that is to be changed
// knows it. Others of that name, and probes, say nothing about it.
func TestCheckOfProtocols(t *testing.T) {
	const here = wire.Protocol
	for _, c := range []struct {
		name            string
		mine            uint32 // what the group writes, as far as this side knows
		reads, theirs   uint32 // newest that the other reads; what its group writes
		cluster         byte
		kind            wire.Hello_Kind
		refused, misfit bool
	}{
		{"both alike", here, here, here, 1, wire.Hello_KIND_RAFT, false, false},
		{"the other is one ahead", here, here + 1, here, 1, wire.Hello_KIND_RPC, false, false},
		{"it is two ahead", here, here + 2, here, 1, wire.Hello_KIND_RPC, true, false},
		{"it is behind", here, here - 1, 0, 1, wire.Hello_KIND_RAFT, true, false},
		{"it is behind, and only asks", here, here - 1, 0, 1, wire.Hello_KIND_PROBE, here == 1, false},
		{"nothing is known yet", 0, here, 0, 1, wire.Hello_KIND_RAFT, false, false},
		{"the group has gone on", here, here + 1, here + 1, 1, wire.Hello_KIND_RPC, true, true},
		{"the group has gone on, and nothing is known here", 0, here + 1, here + 1, 1, wire.Hello_KIND_RAFT, true, true},
		{"another cluster has gone on", here, here + 1, here + 1, 2, wire.Hello_KIND_RAFT, true, false},
		{"who has gone on asks", here, here + 1, here + 1, 1, wire.Hello_KIND_PROBE, false, false},
	} {
		self := Identity{Group: "g", ClusterID: id16(1), Node: "a", Agreed: c.mine}
		h := Identity{Group: "g", ClusterID: id16(c.cluster), Node: "b", Agreed: c.theirs}.hello(c.kind)
		h.Protocol = c.reads
		err := self.check(h, c.kind)
		var told uint32
		tellMisfit(err, func(agreed uint32) { told = agreed })
		if (err != nil) != c.refused || (told != 0) != c.misfit || c.misfit && (told != c.theirs || !errors.Is(err, ErrProtocol)) {
			t.Errorf("%s: %v, told %d", c.name, err, told)
		}
	}
}

func TestCheckDecidesByKind(t *testing.T) {
	self := Identity{Group: "g", ClusterID: id16(1), Node: "a"}
	unformed := Identity{Group: "g", Node: "a"}
	for _, c := range []struct {
		name   string
		self   Identity
		theirs Identity
		kind   wire.Hello_Kind
		want   error
	}{
		{"same cluster", self, Identity{Group: "g", ClusterID: id16(1)}, wire.Hello_KIND_RAFT, nil},
		{"both unformed", unformed, Identity{Group: "g"}, wire.Hello_KIND_RPC, nil},
		{"other group", self, Identity{Group: "h", ClusterID: id16(1)}, wire.Hello_KIND_PROBE, ErrOtherGroup},
		{"other cluster", self, Identity{Group: "g", ClusterID: id16(2)}, wire.Hello_KIND_RAFT, ErrOtherCluster},
		{"only they are unformed", self, Identity{Group: "g"}, wire.Hello_KIND_RPC, ErrOtherCluster},
		{"only we are unformed", unformed, Identity{Group: "g", ClusterID: id16(2)}, wire.Hello_KIND_RAFT, ErrOtherCluster},
		{"a probe learns the id", unformed, Identity{Group: "g", ClusterID: id16(2)}, wire.Hello_KIND_PROBE, nil},
	} {
		if err := c.self.check(c.theirs.hello(c.kind), c.kind); !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if err := self.check(&wire.Hello{Group: "g", ClusterId: id16(1)}, wire.Hello_KIND_RPC); !errors.Is(err, ErrProtocol) {
		t.Errorf("no version: %v", err)
	}
}

func TestReadHelloRefusesShapes(t *testing.T) {
	for name, h := range map[string]*wire.Hello{
		"short run":    {Protocol: 1, Node: "a", Run: []byte{1}},
		"no node":      {Protocol: 1},
		"long node":    {Protocol: 1, Node: strings.Repeat("n", maxName+1)},
		"long group":   {Protocol: 1, Node: "n", Group: strings.Repeat("g", maxName+1)},
		"long cluster": {Protocol: 1, Node: "n", ClusterId: make([]byte, idSize+1)},
	} {
		frame, err := encodeHello(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readHello(bytes.NewReader(frame)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := encodeHello(&wire.Hello{Refused: strings.Repeat("x", maxHello)}); err == nil {
		t.Error("a hello that nobody would read was written")
	}
}

// A peer that accepts and says nothing must not hold the dialler beyond its context.
func TestGreetEndsWithItsContext(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.ReadFull(b, make([]byte, 10))
		cancel()
		_, _ = io.Copy(io.Discard, b)
	}()
	if _, err := greet(ctx, a, Identity{Group: "g", Node: "a"}, wire.Hello_KIND_PROBE); !errors.Is(err, context.Canceled) {
		t.Errorf("greet ended with %v", err)
	}
}
