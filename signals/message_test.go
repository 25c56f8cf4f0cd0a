package signals

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

func message(component string, size int) *Message {
	return NewMessage(Facts{Member: Member{Node: "a"}}, component, make([]byte, size))
}

func TestMessagesGoToTheirComponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRouter(t, Options{})
		var pay, notices recorder
		must(t, r.AddMessageFactory("pay", &pay))
		must(t, r.AddActionFactory(&notices))
		if err := r.AddMessageFactory("pay", &pay); !errors.Is(err, ErrRegistered) {
			t.Errorf("second factory: %v", err)
		}
		if err := r.AddMessageFactory("", &pay); err == nil {
			t.Error("component without a name accepted")
		}
		start(t, r)
		must(t, r.Deliver(message("pay", 3)))
		if err := r.Deliver(message("other", 3)); !errors.Is(err, ErrNoFactory) {
			t.Errorf("unknown component: %v", err)
		}
		synctest.Wait()
		pay.want(t, "message 0")
		notices.want(t)
	})
}

// SEEDS.md: 10,000 messages of 128 bytes with a handler that throws once: all arrive.
func TestTenThousandMessagesOneThrow(t *testing.T) {
	r := newRouter(t, Options{})
	const n = 10_000
	var all sync.WaitGroup
	all.Add(n)
	next := 0
	must(t, r.AddMessageFactory("pay", Handle(func(_ context.Context, s Signal) error {
		defer all.Done()
		m := s.(*Message)
		if want := fmt.Sprintf("%0128d", next); string(m.Payload()) != want {
			t.Errorf("message %d is %q", next, m.Payload())
		}
		if next++; next == n/2 {
			panic("once")
		}
		return nil
	})))
	start(t, r)
	for i := range n {
		must(t, r.Deliver(NewMessage(Facts{}, "pay", fmt.Appendf(nil, "%0128d", i))))
	}
	all.Wait()
}

func TestMessagesThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRouter(t, Options{MessageBytes: 1000})
		var other, slow recorder
		proceed := make(chan struct{})
		must(t, r.AddMessageFactory("slow", Handle(func(ctx context.Context, s Signal) error {
			<-proceed
			return slow.Consume(ctx, s)
		})))
		must(t, r.AddMessageFactory("other", &other))
		start(t, r)
		must(t, r.Deliver(message("slow", 5000))) // a single one is always taken
		synctest.Wait()
		must(t, r.Deliver(message("slow", 300)))
		if err := r.Deliver(message("slow", 300)); !errors.Is(err, ErrQueueFull) {
			t.Errorf("full queue: %v", err)
		}
		must(t, r.Deliver(message("other", 900)))
		close(proceed)
		synctest.Wait()
		must(t, r.Deliver(message("slow", 900)))
		synctest.Wait()
		slow.want(t, "message 0", "message 0", "message 0")
		other.want(t, "message 0")
	})
}

func TestQueueCountsWhatWaits(t *testing.T) {
	q := newQueue(3 * (100 + messageOverhead))
	push := func(want int) {
		t.Helper()
		for range 3 {
			q.push(message("c", 100))
		}
		if q.len() != want {
			t.Errorf("%d wait, want %d", q.len(), want)
		}
	}
	push(3)
	push(3)
	q.pop()
	q.pop()
	push(3)
}
