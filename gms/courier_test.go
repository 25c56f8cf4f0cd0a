package gms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// post is a network that answers each command with its own number, after a while.
type post struct {
	mu       sync.Mutex
	requests []int // how many commands each had
	reply    func(results []*wire.Result) (*wire.SubmitReply, error)
}

const postTime = time.Millisecond

func (p *post) send(ctx context.Context, _ string, cmds []*wire.Command) (*wire.SubmitReply, error) {
	p.mu.Lock()
	p.requests = append(p.requests, len(cmds))
	p.mu.Unlock()
	if !pause(ctx, nil, postTime) {
		return nil, context.Cause(ctx)
	}
	var results []*wire.Result
	for _, c := range cmds {
		token, _ := strconv.ParseUint(strings.TrimLeft(c.GetLock().GetName(), "x"), 10, 64)
		results = append(results, &wire.Result{Token: token})
	}
	if p.reply != nil {
		return p.reply(results)
	}
	return &wire.SubmitReply{Results: results, Index: 7}, nil
}

func (p *post) courier(ctx context.Context) *courier {
	return &courier{send: p.send, spawn: func(f func(context.Context)) bool { go f(ctx); return true }}
}

// sendAll has so many callers submit at the same time, and gives what each was answered.
func sendAll(ctx context.Context, c *courier, n int) (replies []*wire.SubmitReply, errs []error) {
	replies, errs = make([]*wire.SubmitReply, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { replies[i], errs[i] = c.submit(ctx, "b", numbered(i)) })
	}
	all.Wait()
	return replies, errs
}

// What several ask for before the first request is made travels in it, and each has an answer of its own.
func TestCourierTakesOthersAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &post{}
		var carry []func(context.Context)
		c := &courier{send: p.send, spawn: func(f func(context.Context)) bool { carry = append(carry, f); return true }}
		go func() {
			synctest.Wait() // all have submitted
			for _, f := range carry {
				f(t.Context())
			}
		}()
		replies, errs := sendAll(t.Context(), c, 9)
		for i, r := range replies {
			if errs[i] != nil || len(r.GetResults()) != 1 || r.GetResults()[0].GetToken() != uint64(i) || r.GetIndex() != 7 {
				t.Errorf("%d was answered %v, %v", i, r, errs[i])
			}
		}
		if !slices.Equal(p.requests, []int{9}) {
			t.Errorf("nine callers made requests of %v commands", p.requests)
		}
	})
}

// Who comes while a request is under way does not wait for it.
func TestCourierDoesNotWaitForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&post{}).courier(t.Context())
		begun := time.Now()
		var both sync.WaitGroup
		both.Go(func() { _, _ = c.submit(t.Context(), "b", numbered(1)) })
		both.Go(func() {
			pause(t.Context(), nil, postTime/2)
			_, _ = c.submit(t.Context(), "b", numbered(2))
		})
		both.Wait()
		if took := time.Since(begun); took != postTime*3/2 {
			t.Errorf("both were answered after %v", took)
		}
	})
}

// No request is larger than an entry may be, nor has more commands than its receiver takes.
func TestCourierBoundsItsRequests(t *testing.T) {
	size := func(n, bytes int) (box []parcel) {
		for range n {
			box = append(box, parcel{commands: []*wire.Command{{Op: &wire.Command_Lock{Lock: &wire.Lock{Name: strings.Repeat("x", bytes)}}}}})
		}
		return box
	}
	for _, c := range []struct{ n, bytes, want int }{
		{1, 10, 1}, {3, 10, 3}, {batchCommands, 10, batchCommands}, {batchCommands + 1, 10, batchCommands},
		{2, batchBytes/2 - 20, 2}, {2, batchBytes / 2, 1}, {2, batchBytes + 1, 1},
	} {
		if got := fitting(size(c.n, c.bytes)); got != c.want {
			t.Errorf("of %d commands of %d bytes one request takes %d, want %d", c.n, c.bytes, got, c.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p := &post{}
		replies, errs := sendAll(t.Context(), p.courier(t.Context()), batchCommands+100)
		for i, r := range replies {
			if errs[i] != nil || r.GetResults()[0].GetToken() != uint64(i) {
				t.Fatalf("%d was answered %v, %v", i, r, errs[i])
			}
		}
		for _, n := range p.requests {
			if n > batchCommands {
				t.Errorf("a request of %d commands", n)
			}
		}
	})
}

// A caller that gives up cuts nobody off, nor does it wait.
func TestCourierGoesOnWithoutACallerThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &post{}
		c := p.courier(t.Context())
		impatient, cancel := context.WithTimeoutCause(t.Context(), postTime/2, errors.New("enough"))
		defer cancel()
		var all sync.WaitGroup
		begun := time.Now()
		all.Go(func() {
			_, err := c.submit(impatient, "b", numbered(1))
			if fmt.Sprint(err) != "enough" || errors.Is(err, errUnreached) || time.Since(begun) != postTime/2 {
				t.Errorf("who gave up has %v after %v", err, time.Since(begun))
			}
		})
		all.Go(func() {
			if r, err := c.submit(t.Context(), "b", numbered(2)); err != nil || r.GetResults()[0].GetToken() != 2 {
				t.Errorf("the other one was answered %v, %v", r, err)
			}
		})
		all.Wait()
		synctest.Wait()
	})
}

// What is not decided is not decided for all; a wrong number of results is no answer to anybody.
func TestCourierTellsAllWhatWasNotDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		for name, c := range map[string]struct {
			reply  *wire.SubmitReply
			err    error
			fails  error
			leader string
		}{
			"not leader": {reply: &wire.SubmitReply{NotLeader: true, Leader: "c"}, leader: "c"},
			"unknown":    {reply: &wire.SubmitReply{Unknown: true}},
			"an error":   {err: broken, fails: broken},
		} {
			p := &post{reply: func([]*wire.Result) (*wire.SubmitReply, error) { return c.reply, c.err }}
			replies, errs := sendAll(t.Context(), p.courier(t.Context()), 3)
			for i, r := range replies {
				if !errors.Is(errs[i], c.fails) || r.GetNotLeader() != c.reply.GetNotLeader() || r.GetUnknown() != c.reply.GetUnknown() || r.GetLeader() != c.leader {
					t.Errorf("%s: %v, %v", name, r, errs[i])
				}
			}
		}
		short := &post{reply: func(r []*wire.Result) (*wire.SubmitReply, error) { return &wire.SubmitReply{Results: r[1:]}, nil }}
		_, errs := sendAll(t.Context(), short.courier(t.Context()), 3)
		for _, err := range errs {
			if err == nil || errors.Is(err, errUnreached) {
				t.Errorf("one result too few: %v", err)
			}
		}
	})
}

// While the group stops nobody begins goroutines any more: the caller sends, for all.
func TestCourierSendsWhileItsOwnerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &post{}
		c := &courier{send: p.send, spawn: func(func(context.Context)) bool { return false }}
		replies, errs := sendAll(t.Context(), c, 3)
		for i, r := range replies {
			if errs[i] != nil || r.GetResults()[0].GetToken() != uint64(i) {
				t.Errorf("%d was answered %v, %v", i, r, errs[i])
			}
		}
	})
}

// Each step under a fence is awaited by its sender's replica; what workers do all the time is not: they read nothing after it.
func TestStepsOfRecoveriesAreAwaited(t *testing.T) {
	fence := &wire.FenceHeld{Component: "work"}
	for want, list := range map[bool][]*wire.Command{
		true: {
			{Op: &wire.Command_Acquire{Acquire: &wire.Acquire{}}},
			{Op: &wire.Command_Release{Release: &wire.Release{}}},
			{Op: &wire.Command_Adopt{Adopt: &wire.Adopt{Fence: fence}}},
			endClaim("work", "1", 1, wire.EndClaim_HOW_FREE, fence),
		},
		false: {
			{Op: &wire.Command_Claim{Claim: &wire.Claim{}}},
			endClaim("work", "1", 1, wire.EndClaim_HOW_COMPLETE, nil),
			command(),
		},
	} {
		for _, c := range list {
			if awaited(c) != want {
				t.Errorf("%v is awaited: %t", c, !want)
			}
		}
	}
}
