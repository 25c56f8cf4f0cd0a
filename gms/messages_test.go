package gms_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/gmstest"
	"github.com/fencepost/fencepost/signals"
)

// postbox keeps the numbers that messages carry, by receiver.
type postbox struct {
	mu     sync.Mutex
	got    map[string][]uint64
	from   map[string]string // sender of the last one
	throws bool              // the next message makes the handler panic, after it was noted
}

func newPostbox() *postbox { return &postbox{got: map[string][]uint64{}, from: map[string]string{}} }

func (p *postbox) option() gmstest.Option {
	return gmstest.WithApp(func(n *gmstest.Node) (func(), error) {
		return nil, n.Router.AddMessageFactory("mail", signals.Handle(func(_ context.Context, s signals.Signal) error {
			return p.take(n.Name, s)
		}))
	})
}

func (p *postbox) take(node string, s signals.Signal) error {
	m, ok := s.(*signals.Message)
	if !ok || m.Component() != "mail" {
		return fmt.Errorf("handler got %T", s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got[node] = append(p.got[node], binary.BigEndian.Uint64(m.Payload()))
	f := m.Facts()
	p.from[node] = f.Member.Node
	if _, here := f.View.Member(f.Member.Node); !here || f.Member.Run == "" || f.StartTime.IsZero() {
		return fmt.Errorf("facts %+v", f)
	}
	if p.throws {
		p.throws = false
		panic("once")
	}
	return nil
}

func (p *postbox) count(node string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.got[node])
}

func (p *postbox) numbers(node string) []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got[node])
}

func letter(n uint64, size int) []byte {
	b := make([]byte, size)
	binary.BigEndian.PutUint64(b, n)
	return b
}

// 10,000 messages of 128 bytes with a handler that throws once: all arrive, in their order.
func TestTenThousandMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 10_000
		p := newPostbox()
		p.throws = true
		w := gmstest.Cluster(t, 2, p.option())
		from := w.Node("n1").Group
		for i := range uint64(count) {
			if err := from.Send(t.Context(), "mail", letter(i, 128), "n2"); err != nil {
				t.Fatal(err)
			}
		}
		w.Await("all messages", func() bool { return p.count("n2") >= count })
		for i, n := range p.numbers("n2") {
			if n != uint64(i) {
				t.Fatalf("message %d came as the %dth", n, i)
			}
		}
		if s := from.MessageStats(); s.Sent != count || s.Received != 0 {
			t.Errorf("sender counts %+v", s)
		}
		if s := w.Node("n2").Group.MessageStats(); s.Received != count || s.Unhandled+s.Dropped != 0 {
			t.Errorf("receiver counts %+v", s)
		}
	})
}

// Many threads to one member: none is lost, none comes twice, and each thread's come in its order.
func TestManyThreadsToOneMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const threads, each = 16, 100
		p := newPostbox()
		w := gmstest.Cluster(t, 3, p.option())
		var all sync.WaitGroup
		for i := range uint64(threads) {
			from := w.Node(fmt.Sprintf("n%d", i%3+1)).Group // one of them is the receiver itself
			all.Go(func() {
				for j := range uint64(each) {
					if err := from.Send(t.Context(), "mail", letter(i*each+j, 64), "n2"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		w.Await("all messages", func() bool { return p.count("n2") >= threads*each })
		last := map[uint64]uint64{}
		for _, n := range p.numbers("n2") {
			if want := last[n/each]; n%each != want {
				t.Errorf("thread %d: message %d, want %d", n/each, n%each, want)
			}
			last[n/each]++
		}
		if len(p.numbers("n2")) != threads*each {
			t.Errorf("%d messages", len(p.numbers("n2")))
		}
	})
}

func TestMessagesToAllSomeAndOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPostbox()
		w := gmstest.Cluster(t, 4, p.option())
		from := w.Node("n1").Group
		for i, to := range [][]string{nil, {"n2", "n4"}, {"n3"}, {"n1"}} {
			if err := from.Send(t.Context(), "mail", letter(uint64(i), 8), to...); err != nil {
				t.Errorf("to %v: %v", to, err)
			}
		}
		want := map[string]string{"n1": "[3]", "n2": "[0 1]", "n3": "[0 2]", "n4": "[0 1]"}
		w.Await("all messages", func() bool { return p.count("n1")+p.count("n2")+p.count("n3")+p.count("n4") == 7 })
		for node, numbers := range want {
			if got := fmt.Sprint(p.numbers(node)); got != numbers || p.from[node] != "n1" {
				t.Errorf("%s got %s from %s, want %s", node, got, p.from[node], numbers)
			}
		}
	})
}

func TestMessagesThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPostbox()
		w := gmstest.Cluster(t, 3, p.option())
		from := w.Node("n1").Group
		if err := from.Send(t.Context(), "mail", make([]byte, gms.MaxMessage+1), "n2"); !errors.Is(err, gms.ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
		if err := from.Send(t.Context(), "mail", letter(1, gms.MaxMessage), "n2"); err != nil {
			t.Errorf("just as large as allowed: %v", err)
		}
		if err := from.Send(t.Context(), "mail", letter(2, 8), "n2", "nobody"); !errors.Is(err, gms.ErrUnknownMember) {
			t.Errorf("unknown member: %v", err)
		}
		if err := from.Send(t.Context(), "", letter(3, 8), "n2"); err == nil {
			t.Error("no component: no error")
		}
		if err := from.Send(t.Context(), "unheard", letter(4, 8), "n2"); err != nil {
			t.Errorf("unknown component: %v", err)
		}
		w.Await("the message", func() bool { return p.count("n2") == 1 })
		if s := w.Node("n2").Group.MessageStats(); s.Unhandled != 1 || s.Received != 1 {
			t.Errorf("receiver counts %+v", s)
		}
	})
}

// A dead member is an error in time, and the next run of its node is another receiver.
func TestMessagesToTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPostbox()
		w := gmstest.Cluster(t, 3, p.option())
		from := w.Node("n1").Group
		w.Kill("n2")
		if err := from.Send(t.Context(), "mail", letter(1, 8), "n2"); !errors.Is(err, gms.ErrUnknown) {
			t.Errorf("to a dead member of the view: %v", err)
		}
		w.AwaitGone("n2")
		if err := from.Send(t.Context(), "mail", letter(2, 8), "n2"); !errors.Is(err, gms.ErrUnknownMember) {
			t.Errorf("to a dead one: %v", err)
		}
		w.Start("n2")
		w.AwaitView("n1", "n2", "n3")
		if err := from.Send(t.Context(), "mail", letter(3, 8), "n2"); err != nil {
			t.Errorf("to its next run: %v", err)
		}
		w.Await("the message", func() bool { return fmt.Sprint(p.numbers("n2")) == "[3]" })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := from.Send(ctx, "mail", letter(4, 8), "n2"); err == nil {
			t.Error("sent after the context's end")
		}
	})
}
