package gossip

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

// The tests of this file provoke faults of the bare library that others have met (their numbers are those of the list of
// field reports), and then show that the same schedule does no harm here. "Bare" is memberlist with its own settings and
// without our delegates and names; only its sockets are in memory, so that it runs in a bubble.

func bare(t *testing.T, e *ether, ip, name string, edit func(*memberlist.Config)) *memberlist.Memberlist {
	t.Helper()
	trans, err := newTransport(t.Context(), Config{BindAddr: ip + ":7946", Network: e.host(ip), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c := memberlist.DefaultLANConfig()
	c.Name, c.Transport, c.Logger = name, trans, log.New(io.Discard, "", 0)
	c.AdvertiseAddr, c.AdvertisePort, c.BindAddr, c.BindPort = ip, 7946, ip, 7946
	if edit != nil {
		edit(c)
	}
	m, err := memberlist.Create(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func bareJoin(t *testing.T, m *memberlist.Memberlist, ip string) {
	t.Helper()
	if _, err := m.Join([]string{ip + ":7946"}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // the other side has merged what it was told
}

// addressOf is where m holds a living member to be; empty when it holds it for none.
func addressOf(m *memberlist.Memberlist, name string) string {
	for _, n := range m.Members() {
		if n.Name == name {
			return n.Address()
		}
	}
	return ""
}

func shutAll(t *testing.T, all ...*memberlist.Memberlist) {
	t.Helper()
	for _, m := range all {
		if err := m.Shutdown(); err != nil {
			t.Error(err)
		}
	}
}

func has(g *Gossip, name string) bool {
	for _, m := range g.Members() {
		if m.Name == name {
			return true
		}
	}
	return false
}

// M3: a member that comes back under its name from another address is a conflict, and ignored. Here each run has a name of
// its own.
func TestM03AMovedNodeIsHeardAtOnce(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			e := newEther()
			a, x := bare(t, e, "10.0.0.1", "a", nil), bare(t, e, "10.0.0.2", "x", nil)
			bareJoin(t, x, "10.0.0.1")
			e.setCut("10.0.0.2", true) // x dies
			moved := bare(t, e, "10.0.0.3", "x", nil)
			bareJoin(t, moved, "10.0.0.1")
			<-time.After(3 * time.Second)
			if at := addressOf(a, "x"); at == "10.0.0.3:7946" {
				t.Errorf("the bare library does not do it any more: x is at %s", at)
			}
			shutAll(t, a, x, moved)
		})
	})
	t.Run("embedded", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			e := newEther()
			a, x := member(t, e, 1, "1", nil), member(t, e, 2, "1", nil)
			join(t, x, a)
			await(t, a, Alive, "n2/1")
			e.setCut("10.0.0.2", true)
			moved := member(t, e, 3, "2", func(c *Config) { c.Name = "n2/2" })
			join(t, moved, a)
			start := time.Now()
			if ev := await(t, a, Alive, "n2/2"); ev.Member.Addr != "10.0.0.3:7946" || time.Since(start) > time.Second {
				t.Errorf("n2/2 is at %s, after %v", ev.Member.Addr, time.Since(start))
			}
			await(t, a, Dead, "n2/1")
			stopAll(a, x, moved)
		})
	})
}

// M4: incarnations begin at one with each start, so that a member that holds the former life for dead ignores the new one,
// which never hears of the accusation. Push-pull, which would mend it by chance, is off.
func TestM04ARestartedNodeIsNotTakenForItsFormerLife(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			e := newEther()
			quiet := func(c *memberlist.Config) { c.PushPullInterval = 0 }
			a, b := bare(t, e, "10.0.0.1", "a", quiet), bare(t, e, "10.0.0.2", "b", quiet)
			bareJoin(t, b, "10.0.0.1")
			for range 5 {
				if err := b.UpdateNode(time.Second); err != nil { // its incarnation grows
					t.Fatal(err)
				}
			}
			<-time.After(5 * time.Second)
			e.setCut("10.0.0.2", true)
			awaitGone(t, a, "b")
			<-time.After(10 * time.Second) // until a has told its accusation as often as it does
			c := bare(t, e, "10.0.0.3", "c", quiet)
			bareJoin(t, c, "10.0.0.1")
			shutAll(t, b)
			e.setCut("10.0.0.2", false)
			again := bare(t, e, "10.0.0.2", "b", quiet)
			bareJoin(t, again, "10.0.0.3")
			<-time.After(20 * time.Second)
			if addressOf(a, "b") != "" || addressOf(again, "a") == "" || addressOf(c, "b") == "" {
				t.Errorf("the bare library does not do it any more: a holds b at %q", addressOf(a, "b"))
			}
			shutAll(t, a, c, again)
		})
	})
	t.Run("embedded", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			e := newEther()
			a, b := member(t, e, 1, "1", nil), member(t, e, 2, "1", nil)
			join(t, b, a)
			for i := range 5 {
				if err := b.SetMeta(t.Context(), fmt.Append(nil, "meta", i)); err != nil {
					t.Fatal(err)
				}
			}
			e.setCut("10.0.0.2", true)
			await(t, a, Dead, "n2/1")
			c := member(t, e, 3, "1", nil)
			join(t, c, a)
			b.Stop()
			e.setCut("10.0.0.2", false)
			again := member(t, e, 2, "2", nil)
			join(t, again, c)
			start := time.Now()
			await(t, a, Alive, "n2/2")
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("a heard of the new life after %v", took)
			}
			stopAll(a, c, again)
		})
	})
}

func awaitGone(t *testing.T, m *memberlist.Memberlist, name string) {
	t.Helper()
	for range 600 {
		if addressOf(m, name) == "" {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Fatalf("%s is not held dead", name)
}

// M5: after a partition that outlasts GossipToTheDeadTime nobody knows anybody. Here the host joins again, and again, the
// addresses that it knows from elsewhere.
func TestM05AnOutlastingPartitionHeals(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			e := newEther()
			a, b := bare(t, e, "10.0.0.1", "a", nil), bare(t, e, "10.0.0.2", "b", nil)
			bareJoin(t, b, "10.0.0.1")
			e.setCut("10.0.0.2", true)
			awaitGone(t, a, "b")
			awaitGone(t, b, "a")
			<-time.After(2 * time.Minute)
			e.setCut("10.0.0.2", false)
			<-time.After(time.Hour)
			if addressOf(a, "b") != "" || addressOf(b, "a") != "" {
				t.Error("the bare library does not do it any more: they have found each other")
			}
			shutAll(t, a, b)
		})
	})
	t.Run("embedded", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			e := newEther()
			a, b := member(t, e, 1, "a", nil), member(t, e, 2, "b", nil)
			join(t, b, a)
			await(t, a, Alive, "n2/b")
			e.setCut("10.0.0.2", true)
			await(t, a, Dead, "n2/b")
			<-time.After(2 * time.Minute)
			e.setCut("10.0.0.2", false)
			join(t, b, a) // the host's join loop
			await(t, a, Alive, "n2/b")
			if !has(b, "n1/a") {
				t.Error("only one has found the other")
			}
			stopAll(a, b)
		})
	})
}

// M6: "dead at 10" is dropped because the member is dead at 1 already, so a late "alive at 2" revives it. Here the host
// admits no run that the log has closed.
func TestM06TheClosedDoNotRise(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			e := newEther()
			a := bare(t, e, "10.0.0.1", "a", nil)
			raise(t, e, "", "x")
			if addressOf(a, "x") == "" {
				t.Error("the bare library does not do it any more")
			}
			shutAll(t, a)
		})
	})
	t.Run("embedded", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			e := newEther()
			var mu sync.Mutex
			closed := map[string]bool{}
			a := member(t, e, 1, "a", func(c *Config) {
				c.Admit = func(m Member) error {
					mu.Lock()
					defer mu.Unlock()
					if closed[m.Name] {
						return errors.New("its run is closed")
					}
					return nil
				}
			})
			raise(t, e, "g", "x/1", func() {
				await(t, a, Dead, "x/1")
				mu.Lock()
				defer mu.Unlock()
				closed["x/1"] = true // the log's word
			})
			if has(a, "x/1") {
				t.Error("a closed run is back")
			}
			stopAll(a)
		})
	})
}

// raise tells 10.0.0.1 that a member lives, died, died once more, and, late, that it lives. dead is called while it is dead.
func raise(t *testing.T, e *ether, label, name string, dead ...func()) {
	t.Helper()
	ghost, err := e.host("10.0.0.9").ListenPacket(t.Context(), "udp", "10.0.0.9:7946")
	if err != nil {
		t.Fatal(err)
	}
	defer ghost.Close()
	tell := func(kind byte, fields ...any) {
		var p []byte
		if label != "" {
			p = append([]byte{244, byte(len(label))}, label...)
		}
		p = append(append(p, kind), packed(fields...)...)
		if _, err := ghost.WriteTo(p, net.Addr(udpAddr("10.0.0.1:7946"))); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	}
	const alive, died = 4, 5
	says := func(incarnation uint64) {
		tell(alive, "Incarnation", incarnation, "Node", name, "Addr", string([]byte{10, 0, 0, 9}), "Port", uint64(7946),
			"Meta", "", "Vsn", string([]byte{1, 5, 2, 0, 0, 0}))
	}
	says(1)
	tell(died, "Incarnation", uint64(1), "Node", name, "From", "c")
	tell(died, "Incarnation", uint64(10), "Node", name, "From", "c")
	for _, f := range dead {
		f()
	}
	says(2)
}

// packed is a map of names to strings and numbers, as the library encodes its messages.
func packed(fields ...any) []byte {
	b := []byte{0x80 | byte(len(fields)/2)}
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			b = append(append(b, 0xa0|byte(len(f))), f...)
		case uint64:
			b = binary.BigEndian.AppendUint64(append(b, 0xcf), f)
		}
	}
	return b
}

// M21: names are resolved outside the library, all at once and within StreamTimeout. One whose answer never comes, and the
// dead among the addresses of another, hold nobody up.
func TestM21NamesHoldNobodyUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEther()
		b := member(t, e, 2, "r", nil)
		a := member(t, e, 1, "r", func(c *Config) {
			c.Resolve = func(ctx context.Context, name string) ([]string, error) {
				if name == "hangs" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return []string{"10.0.0.77", "10.0.0.78", "10.0.0.79", "10.0.0.2"}, nil
			}
		})
		for _, dead := range []string{"10.0.0.77", "10.0.0.78", "10.0.0.79"} {
			e.setCut(dead, true)
		}
		begun := time.Now()
		var joined int
		var calls sync.WaitGroup
		calls.Go(func() { joined, _ = a.Join(t.Context(), []string{"hangs:7946", "several:7946"}) })
		await(t, a, Alive, "n2/r")
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("joined after %v", took)
		}
		calls.Wait()
		if took := time.Since(begun); joined != 1 || took > 3*time.Second {
			t.Errorf("%d joined in %v", joined, took)
		}
		stopAll(a, b)
	})
}
