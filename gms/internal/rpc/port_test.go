package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestCallsKnowTheirCaller(t *testing.T) {
	a, b := newNode(t, "a", 1, newEcho()), newNode(t, "b", 2, newEcho())
	a.knows("b", b)
	client, err := a.d.Client("b")
	if err != nil {
		t.Fatal(err)
	}
	reply, err := client.Ping(bounded(t), &wire.PingRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if !reply.Alive || !bytes.Equal(reply.Run, id16(1)) {
		t.Errorf("b was called by %x", reply.Run)
	}
	if again, _ := a.d.Client("b"); again != client {
		t.Error("the client is not kept")
	}
	if _, err := a.d.Client("c"); err == nil {
		t.Error("a client of an unknown node")
	}
	if _, ok := PeerFrom(t.Context()); ok {
		t.Error("a caller outside of a call")
	}
}

func TestRefusedHellosAreTyped(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Identity)
		dial   string
		want   error
	}{
		{"other group", func(id *Identity) { id.Group = "h" }, "b", ErrOtherGroup},
		{"other cluster", func(id *Identity) { id.ClusterID = id16(9) }, "b", ErrOtherCluster},
		{"wrong node", func(*Identity) {}, "c", ErrWrongNode},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newNode(t, "a", 1, newEcho()), newNode(t, "b", 2, newEcho())
			b.srv.Streams(b.d)
			a.knows(c.dial, b)
			a.become(c.change)
			if _, err := a.d.Raft(bounded(t), c.dial); !errors.Is(err, c.want) {
				t.Errorf("for Raft: %v", err)
			}
			client, err := a.d.Client(c.dial)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Ping(bounded(t), &wire.PingRequest{}); !Unanswered(err) {
				t.Errorf("a call: %v", err)
			}
			if err := a.d.LastError(c.dial); !errors.Is(err, c.want) {
				t.Errorf("the client's last error: %v", err)
			}
		})
	}
}

// The id of a formed group reaches a newcomer by a probe, and then its connections are let in.
func TestNewcomerLearnsTheClusterByProbe(t *testing.T) {
	a, b := newNode(t, "a", 1, newEcho()), newNode(t, "b", 2, newEcho())
	a.knows("b", b)
	b.srv.Streams(b.d)
	b.become(func(id *Identity) { id.ClusterID = id16(7) })
	if _, err := a.d.Raft(bounded(t), "b"); !errors.Is(err, ErrOtherCluster) {
		t.Fatalf("before: %v", err)
	}
	answer, err := a.d.Hello(bounded(t), "b", b.srv.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if answer.Node != "b" || !bytes.Equal(answer.Run, id16(2)) {
		t.Errorf("the answer is %v", answer)
	}
	a.become(func(id *Identity) { id.ClusterID = answer.ClusterId })
	conn, err := a.d.Raft(bounded(t), "b")
	if err != nil {
		t.Fatalf("after: %v", err)
	}
	_ = conn.Close()
}

func TestRaftStreamsPassBytesAfterTheHello(t *testing.T) {
	a, b := newNode(t, "a", 1, newEcho()), newNode(t, "b", 2, newEcho())
	a.knows("b", b)
	if _, err := a.d.Raft(bounded(t), "b"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "raft does not run here") {
		t.Errorf("before b takes streams: %v", err)
	}
	in, out := b.srv.Streams(b.d), a.srv.Streams(a.d)
	conn, err := out.Dial(bounded(t), "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("entries")); err != nil {
		t.Fatal(err)
	}
	got, err := in.Accept()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 7)
	if _, err := io.ReadFull(got, buf); err != nil || string(buf) != "entries" {
		t.Errorf("%q arrived, %v", buf, err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if _, err := a.d.Raft(bounded(t), "b"); !errors.Is(err, ErrRefused) {
		t.Errorf("after b takes no streams: %v", err)
	}
	_ = conn.Close()
	_ = got.Close()
}

func TestDropEndsOneRunsConnections(t *testing.T) {
	e := newEcho()
	a, b, c := newNode(t, "a", 1, newEcho()), newNode(t, "b", 2, e), newNode(t, "c", 3, newEcho())
	ctx := bounded(t)
	for _, n := range []*node{a, c} {
		n.knows("b", b)
		client, err := n.d.Client("b")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Session(ctx); err != nil {
			t.Fatal(err)
		}
	}
	<-e.opened
	<-e.opened
	b.srv.Drop(id16(1))
	b.srv.Drop(nil) // nobody
	if err := <-e.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the stream of the dropped run ended with %v", err)
	}
	select {
	case err := <-e.ended:
		t.Errorf("the other run's stream ended too: %v", err)
	default:
	}
	client, err := c.d.Client("b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Ping(ctx, &wire.PingRequest{}); err != nil {
		t.Errorf("the other run's calls: %v", err)
	}
	c.d.Drop(id16(2)) // and from the dialling side
	<-e.ended
}

func TestClientFollowsTheAddress(t *testing.T) {
	a, b1, b2 := newNode(t, "a", 1, newEcho()), newNode(t, "b", 2, newEcho()), newNode(t, "b", 3, newEcho())
	a.knows("b", b1)
	first, err := a.d.Client("b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Ping(bounded(t), &wire.PingRequest{}); err != nil {
		t.Fatal(err)
	}
	b1.srv.Stop()
	a.knows("b", b2)
	second, err := a.d.Client("b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Ping(bounded(t), &wire.PingRequest{}); err != nil {
		t.Errorf("at the new address: %v", err)
	}
}

func TestTooLargeMessagesAreRefused(t *testing.T) {
	a, b := newNode(t, "a", 1, newEcho()), newNode(t, "b", 2, newEcho())
	a.knows("b", b)
	client, err := a.d.Client("b")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Ping(bounded(t), &wire.PingRequest{Run: make([]byte, maxMessage+1)})
	if err == nil || Unanswered(err) {
		t.Errorf("a message above the limit: %v", err)
	}
}

// Garbage, silence and half a hello end the connection and nothing else.
func TestStrangersAreTurnedAway(t *testing.T) {
	b := newNode(t, "b", 2, newEcho())
	for _, said := range []string{"GET / HTTP/1.1\r\n\r\n", "FNCP\xff\xff", "FNCP\x00\x02xx", "FN"} {
		conn, err := system{}.Dial(bounded(t), "tcp", b.srv.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(said)); err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).CloseWrite() // fails when it is turned away already
		got, _ := io.ReadAll(conn)           // a reset is as good as an end
		if len(got) != 0 {
			t.Errorf("%q was answered with %q", said, got)
		}
		_ = conn.Close()
	}
	a := newNode(t, "a", 1, newEcho())
	if _, err := a.d.Hello(bounded(t), "b", b.srv.Addr().String()); err != nil {
		t.Errorf("after the strangers: %v", err)
	}
}

func TestServerStartStopStress(t *testing.T) {
	for range 30 {
		id := func() Identity { return Identity{Group: "g", Node: "a"} }
		s, err := NewServer(ServerConfig{Network: system{}, BindAddr: "127.0.0.1:0", Identity: id, Handler: newEcho()})
		if err != nil {
			t.Fatal(err)
		}
		d, err := NewDialer(DialerConfig{Network: system{}, Identity: id, Resolve: func(string) (string, error) {
			if a := s.Addr(); a != nil {
				return a.String(), nil
			}
			return "", errors.New("not yet")
		}})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if i%2 == 0 {
					_ = s.Start(context.Background()) // may come second, or too late
				}
				s.Streams(d)
				if c, err := d.Client("a"); err == nil {
					_, _ = c.Ping(context.Background(), &wire.PingRequest{})
				}
				_, _ = d.Raft(context.Background(), "a")
				s.Drop(id16(1))
				d.Stop()
				s.Stop()
				s.Stop()
			})
		}
		all.Wait()
		if err := s.Start(context.Background()); !errors.Is(err, ErrStopped) {
			t.Fatalf("Start after Stop: %v", err)
		}
		if _, err := d.Client("a"); err == nil {
			t.Fatal("a client after Stop")
		}
	}
}

func TestConfigsAreChecked(t *testing.T) {
	if _, err := NewServer(ServerConfig{}); err == nil {
		t.Error("an empty server was made")
	}
	if _, err := NewDialer(DialerConfig{}); err == nil {
		t.Error("an empty dialer was made")
	}
	id := func() Identity { return Identity{} }
	s, err := NewServer(ServerConfig{Network: system{}, BindAddr: "127.0.0.1:0", Identity: id, Handler: newEcho()})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := s.Start(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("Start after Stop: %v", err)
	}
}
