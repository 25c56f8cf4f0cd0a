package gmstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	ipA, ipB = "127.0.0.1", "127.0.0.2"
	portB    = ipB + ":7946"
)

// pair is two processes with a stream between them.
func pair(t *testing.T) (n *network, a, b *process, near, far net.Conn) {
	t.Helper()
	n = newNetwork(Seed(t))
	a, b = n.boot(ipA), n.boot(ipB)
	l, err := b.Listen(t.Context(), "tcp", portB)
	must(t, err)
	near, err = a.Dial(t.Context(), "tcp", portB)
	must(t, err)
	far, err = l.Accept()
	must(t, err)
	return n, a, b, near, far
}

func TestStreamKeepsOrderAndEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, _, _, near, far := pair(t)
		n.change(func() { n.all = Link{Loss: 0.3, Jitter: 10 * time.Millisecond} })
		var want strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&want, "%d,", i)
			if _, err := fmt.Fprintf(near, "%d,", i); err != nil {
				t.Fatal(err)
			}
		}
		must(t, near.Close())
		got, err := io.ReadAll(far)
		if err != nil || string(got) != want.String() {
			t.Errorf("read %d bytes of %d: %v", len(got), want.Len(), err)
		}
		if _, err := far.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("a write to who has closed: %v", err)
		}
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read after Close: %v", err)
		}
	})
}

func TestStreamsWaitForCutsAndPauses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, _, _, near, far := pair(t)
		pairAB := [2]string{ipA, ipB}
		faults := []struct {
			name       string
			begin, end func()
		}{
			{"cut", func() { n.change(func() { n.links[pairAB] = Link{Cut: true} }) }, func() { n.change(func() { clear(n.links) }) }},
			{"sender paused", func() { n.pause(ipA, true) }, func() { n.pause(ipA, false) }},
			{"receiver paused", func() { n.pause(ipB, true) }, func() { n.pause(ipB, false) }},
		}
		for _, f := range faults {
			f.begin()
			begun := time.Now()
			time.AfterFunc(time.Hour, f.end)
			if _, err := near.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := far.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took != time.Hour {
				t.Errorf("%s: arrived after %v", f.name, took)
			}
		}
		n.change(func() { n.links[pairAB] = Link{Cut: true} }) // one way: the other is whole
		if _, err := far.Write([]byte("y")); err != nil {
			t.Fatal(err)
		}
		if _, err := near.Read(make([]byte, 1)); err != nil {
			t.Errorf("the way back of a one-way cut: %v", err)
		}
	})
}

func TestDeadlinesAndWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, _, _, near, far := pair(t)
		begun := time.Now()
		must(t, far.SetReadDeadline(time.Now().Add(time.Second)))
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("a read ended after %v: %v", time.Since(begun), err)
		}
		must(t, far.SetReadDeadline(time.Time{}))
		if _, err := near.Write(make([]byte, window)); err != nil {
			t.Fatal(err)
		}
		must(t, near.SetWriteDeadline(time.Now().Add(time.Second)))
		if _, err := near.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write into a full window: %v", err)
		}
		must(t, near.SetWriteDeadline(time.Time{}))
		time.AfterFunc(time.Minute, func() { _, _ = io.ReadFull(far, make([]byte, window)) })
		begun = time.Now()
		if _, err := near.Write([]byte("x")); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("a write into a window that was emptied after a minute ended after %v: %v", time.Since(begun), err)
		}
	})
}

// A firewall that rejects answers as the host of a dead process would, and leaves the streams that were there.
func TestRejectedLink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(1)
		a, b := n.boot("10.0.0.1"), n.boot("10.0.0.2")
		l, err := b.Listen(t.Context(), "tcp", "10.0.0.2:1")
		must(t, err)
		_, err = b.ListenPacket(t.Context(), "udp", "10.0.0.2:1")
		must(t, err)
		before, err := a.Dial(t.Context(), "tcp", "10.0.0.2:1")
		must(t, err)
		there, err := l.Accept()
		must(t, err)
		n.change(func() { n.links[[2]string{"10.0.0.1", "10.0.0.2"}] = Link{Rejected: true} })
		if _, err := a.Dial(t.Context(), "tcp", "10.0.0.2:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
		u, err := a.Dial(t.Context(), "udp", "10.0.0.2:1")
		must(t, err)
		_, err = u.Write([]byte("x"))
		must(t, err)
		if _, err := u.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("datagram: %v", err)
		}
		_, err = before.Write([]byte("y"))
		must(t, err)
		got := make([]byte, 1)
		if _, err := there.Read(got); err != nil || got[0] != 'y' {
			t.Errorf("the stream from before: %q, %v", got, err)
		}
	})
}

// A killed process: its streams break at once for the others, its host refuses both kinds of ports, and its successor gets
// them. What it still does reaches nobody.
func TestKill(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, a, b, near, far := pair(t)
		packets, err := b.ListenPacket(t.Context(), "udp", portB)
		must(t, err)
		probe, err := a.Dial(t.Context(), "udp", portB)
		must(t, err)
		ask := func() error {
			if _, err := probe.Write([]byte{1}); err != nil {
				return err
			}
			must(t, probe.SetReadDeadline(time.Now().Add(time.Second)))
			_, err := probe.Read(make([]byte, 1))
			return err
		}
		if err := ask(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("an open port: %v", err)
		}
		n.kill(b)
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a stream of the dead: %v", err)
		}
		if _, err := a.Dial(t.Context(), "tcp", portB); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a dial to the dead: %v", err)
		}
		if err := ask(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a datagram to the dead: %v", err)
		}
		if _, err := far.Write([]byte("x")); err == nil {
			t.Error("the dead write")
		}
		if _, err := packets.WriteTo([]byte("x"), probe.LocalAddr()); err != nil {
			t.Errorf("a datagram of the dead: %v", err)
		}
		if _, err := b.Dial(t.Context(), "tcp", portB); err == nil {
			t.Error("the dead dial")
		}
		next := n.boot(ipB)
		if _, err := next.Listen(t.Context(), "tcp", portB); err != nil {
			t.Errorf("the successor's port: %v", err)
		}
		if _, err := a.Dial(t.Context(), "tcp", portB); err != nil {
			t.Errorf("a dial to the successor: %v", err)
		}
	})
}

func TestDialsHangOnCutsAndReachThePaused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, a, _, _, _ := pair(t)
		n.pause(ipB, true)
		c, err := a.Dial(t.Context(), "tcp", portB)
		if err != nil {
			t.Errorf("a dial to a paused process: %v", err)
		} else {
			must(t, c.Close())
		}
		n.pause(ipB, false)
		n.change(func() { n.links[[2]string{ipB, ipA}] = Link{Cut: true} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		if _, err := a.Dial(ctx, "tcp", portB); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Minute {
			t.Errorf("a dial over a cut ended after %v: %v", time.Since(begun), err)
		}
		if _, err := a.Dial(ctx, "tcp", "127.0.0.99:1"); err == nil {
			t.Error("a dial to no host")
		}
		if _, err := a.Listen(t.Context(), "tcp", ipB+":1"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("another host's address: %v", err)
		}
	})
}

// Datagrams are lost and doubled as often as the link says, and kept for a process that is paused, up to a bound.
func TestDatagrams(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, a, b, _, _ := pair(t)
		from, err := a.ListenPacket(t.Context(), "udp", ipA+":7946")
		must(t, err)
		to, err := b.ListenPacket(t.Context(), "udp", portB)
		must(t, err)
		count := func() (got int) {
			for {
				must(t, to.(*socket).SetReadDeadline(time.Now().Add(time.Second)))
				if _, _, err := to.ReadFrom(make([]byte, 10)); err != nil {
					return got
				}
				got++
			}
		}
		send := func(count int) {
			for range count {
				if _, err := from.WriteTo([]byte("x"), to.LocalAddr()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, c := range []struct {
			link Link
			want int
		}{{Link{}, 2000}, {Link{Loss: 0.3}, 1400}, {Link{Duplicate: 0.3}, 2600}, {Link{Loss: 1}, 0}, {Link{Cut: true}, 0}} {
			n.change(func() { n.all = c.link })
			send(2000)
			if got := count(); got < c.want-150 || got > c.want+150 || c.want%2000 == 0 && got != c.want {
				t.Errorf("%+v: %d of 2000 arrived", c.link, got)
			}
		}
		n.change(func() { n.all = Link{} })
		for _, ip := range []string{ipA, ipB} {
			n.pause(ip, true)
			send(2000)
			Advance(time.Second)
			n.pause(ip, false)
			if got := count(); got != maxHeld {
				t.Errorf("%s paused: %d datagrams were kept", ip, got)
			}
		}
		if _, err := from.WriteTo(make([]byte, maxDatagram+1), to.LocalAddr()); !errors.Is(err, syscall.EMSGSIZE) {
			t.Errorf("too large: %v", err)
		}
	})
}
