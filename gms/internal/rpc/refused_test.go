package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

const victimEnv = "FENCEPOST_RPC_VICTIM"

// victim is the process that gets killed: a cluster port that answers hellos, and a gossip port of both kinds. It prints
// its addresses.
func victim() {
	ctx := context.Background()
	id := Identity{Group: "g", Node: "v", Run: id16(8)}
	s, err := NewServer(ServerConfig{Network: system{}, BindAddr: "127.0.0.1:0", Identity: func() Identity { return id }, Handler: newEcho()})
	if err == nil {
		err = s.Start(ctx)
	}
	var tcp net.Listener
	var udp net.PacketConn
	for range 20 {
		if tcp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			break
		}
		if udp, err = net.ListenPacket("udp", tcp.Addr().String()); err == nil {
			break
		}
		_ = tcp.Close()
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	go func() {
		for {
			if c, err := tcp.Accept(); err == nil {
				_ = c.Close()
			}
		}
	}()
	fmt.Println(s.Addr(), udp.LocalAddr())
	select {}
}

// The peer's process dies: the handler of its session learns of it at once.
func TestSessionEndsWithItsCaller(t *testing.T) {
	e := newEcho()
	a, b := newNode(t, "a", 1, newEcho()), newNode(t, "b", 2, e)
	a.knows("b", b)
	client, err := a.d.Client("b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Session(bounded(t)); err != nil {
		t.Fatal(err)
	}
	if p := <-e.opened; p.Node != "a" {
		t.Errorf("the session is %q's", p.Node)
	}
	start := time.Now()
	a.d.conns.closeAll() // what the kernel does for a dead process
	if err := <-e.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the session's context ended with %v", err)
	}
	t.Logf("the handler knew after %v", time.Since(start))
}

// script answers dials by what it is told for each port; the last word of a port is repeated.
type script map[string][]any // "tcp cluster", "tcp gossip", "udp gossip" -> error or net.Conn maker

func (s script) Dial(_ context.Context, network, address string) (net.Conn, error) {
	key := network + " " + address
	words := s[key]
	if len(words) == 0 {
		return nil, fmt.Errorf("dial of %s was not expected", key)
	}
	if len(words) > 1 {
		s[key] = words[1:]
	}
	switch w := words[0].(type) {
	case error:
		return nil, w
	case func() net.Conn:
		return w(), nil
	}
	return nil, errors.New("no such word")
}

var errRefusedByHost = &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

// reads is a connection that takes everything and answers each read with one error.
type reads struct {
	net.Conn
	err error
}

func (r reads) Write(b []byte) (int, error) { return len(b), nil }
func (r reads) Read([]byte) (int, error)    { return 0, r.err }
func (r reads) SetDeadline(time.Time) error { return nil }
func (r reads) Close() error                { return nil }
func reading(err error) func() net.Conn     { return func() net.Conn { return reads{err: err} } }

// answering is a connection to somebody who answers the hello with that run.
func answering(run byte) func() net.Conn {
	return func() net.Conn {
		a, b := net.Pipe()
		go func() {
			defer b.Close()
			if _, err := readHello(b); err != nil {
				return
			}
			frame, err := encodeHello(Identity{Group: "g", Node: "v", Run: id16(run)}.hello(wire.Hello_KIND_PROBE))
			if err == nil {
				_, _ = b.Write(frame)
			}
		}()
		return a
	}
}

func TestRefusedVerdicts(t *testing.T) {
	reset := os.NewSyscallError("read", syscall.ECONNRESET)
	unreachable := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
	closed := reading(os.NewSyscallError("read", syscall.ECONNREFUSED))
	silent := reading(os.ErrDeadlineExceeded)
	for _, c := range []struct {
		name           string
		cluster        []any
		stream, packet []any
		refused, alive bool
		why            string
	}{
		{"all refuse", []any{errRefusedByHost}, []any{errRefusedByHost}, []any{closed}, true, false, "all three"},
		{"connects, is reset, then refuses", []any{reading(reset), reading(reset), errRefusedByHost}, []any{errRefusedByHost}, []any{closed}, true, false, "all three"},
		{"the run answers", []any{answering(8)}, nil, nil, false, true, "answers"},
		{"another run answers", []any{answering(9)}, nil, nil, false, false, "another run"},
		{"reset for ever", []any{reading(reset)}, nil, nil, false, false, "cluster port"},
		{"only the cluster port is closed", []any{errRefusedByHost}, []any{reading(reset)}, nil, false, false, "gossip TCP port"},
		{"datagrams are dropped", []any{errRefusedByHost}, []any{errRefusedByHost}, []any{silent}, false, false, "gossip UDP port"},
		{"datagrams are answered late", []any{errRefusedByHost}, []any{errRefusedByHost}, []any{silent, silent, closed}, true, false, "all three"},
		{"never in the same round", []any{errRefusedByHost, reading(reset), errRefusedByHost, reading(reset)}, []any{errRefusedByHost}, []any{silent}, false, false, ""},
		{"the host is away", []any{unreachable}, nil, nil, false, false, "unreachable"},
		{"dials time out", []any{context.DeadlineExceeded}, nil, nil, false, false, "no clear answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial := script{"tcp cluster": c.cluster, "tcp gossip": c.stream, "udp gossip": c.packet}
				target := ProbeTarget{ClusterAddr: "cluster", GossipAddr: "gossip", Run: id16(8)}
				start := time.Now()
				v := Prober{Identity: Identity{Group: "g", Node: "a"}, Network: dial}.Refused(t.Context(), target)
				if v.Refused != c.refused || v.Alive != c.alive || !strings.Contains(v.Why, c.why) {
					t.Errorf("%+v", v)
				}
				took := time.Since(start)
				if took > probeFor {
					t.Errorf("it took %v", took)
				}
				if !v.Refused && !v.Alive && c.name != "the host is away" && took != probeFor {
					t.Errorf("it gave up after %v", took)
				}
			})
		})
	}
}
