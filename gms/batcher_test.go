package gms

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// fakeLog is a proposer that keeps the entries; hold delays each.
type fakeLog struct {
	mu      sync.Mutex
	entries []*wire.Entry
	hold    time.Duration
	err     error
	short   bool // answers with one result too few
}

func (f *fakeLog) propose(ctx context.Context, data []byte) ([]*wire.Result, uint64, error) {
	e := &wire.Entry{}
	if err := proto.Unmarshal(data, e); err != nil {
		return nil, 0, err
	}
	f.mu.Lock()
	f.entries = append(f.entries, e)
	index, hold := uint64(len(f.entries)), f.hold
	f.mu.Unlock()
	if hold > 0 && !pause(ctx, nil, hold) {
		return nil, 0, context.Cause(ctx)
	}
	if f.err != nil {
		return nil, 0, f.err
	}
	var results []*wire.Result
	for _, c := range e.GetCommands() { // each answer is its own command's
		token, _ := strconv.ParseUint(c.GetLock().GetName(), 10, 64)
		results = append(results, &wire.Result{Token: token})
	}
	if f.short {
		results = results[1:]
	}
	return results, index, nil
}

func (f *fakeLog) sizes() (list []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.entries {
		list = append(list, len(e.GetCommands()))
	}
	return list
}

// firstProtocol is what a group writes that was never upgraded.
func firstProtocol() uint32 { return 1 }

func startBatcher(t *testing.T, f *fakeLog) (b *batcher, stop func()) {
	b = newBatcher(f.propose, firstProtocol)
	ctx, cancel := context.WithCancelCause(context.Background())
	var run sync.WaitGroup
	run.Go(func() { b.run(ctx) })
	stop = func() {
		cancel(ErrStopped)
		run.Wait()
	}
	t.Cleanup(stop)
	return b, stop
}

func numbered(n int) []*wire.Command {
	return []*wire.Command{{Op: &wire.Command_Lock{Lock: &wire.Lock{Name: strconv.Itoa(n)}}}}
}

func TestBatcherSendsALoneCommandAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := startBatcher(t, &fakeLog{})
		begun := time.Now()
		r, index, err := b.submit(t.Context(), numbered(7))
		if err != nil || index != 1 || r[0].GetToken() != 7 || time.Since(begun) > 0 {
			t.Errorf("%v, %d, %v after %v", r, index, err, time.Since(begun))
		}
	})
}

func TestBatcherGathersWhileAnEntryIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLog{hold: batchWindow / 2}
		b, _ := startBatcher(t, f)
		var calls sync.WaitGroup
		send := func(n int) {
			calls.Go(func() {
				if r, _, err := b.submit(t.Context(), numbered(n)); err != nil || r[0].GetToken() != uint64(n) {
					t.Errorf("command %d: %v, %v", n, r, err)
				}
			})
		}
		send(0)
		synctest.Wait()
		for n := range 20 {
			send(n + 1)
			synctest.Wait()
		}
		calls.Wait()
		if s := f.sizes(); len(s) != 2 || s[0] != 1 || s[1] != 20 {
			t.Errorf("entries of %v commands", s)
		}
	})
}

func TestBatcherWaitsNoLongerThanItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLog{hold: time.Minute}
		b, _ := startBatcher(t, f)
		for n := range 2 {
			go func() { _, _, _ = b.submit(t.Context(), numbered(n)) }()
			synctest.Wait()
		}
		pass(batchWindow)
		if s := f.sizes(); len(s) != 2 {
			t.Errorf("entries of %v commands after the window", s)
		}
		pass(2 * time.Minute)
	})
}

// When many nodes start together, their openings share few entries, each of which is a view; a lone one, and any other
// command, waits for none of that.
func TestBatcherGathersAFloodOfOpenings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLog{hold: batchWindow / 4}
		b, _ := startBatcher(t, f)
		var calls sync.WaitGroup
		took := func(cmds []*wire.Command) *time.Duration {
			d, begun := new(time.Duration), time.Now()
			calls.Go(func() {
				if _, _, err := b.submit(t.Context(), cmds); err != nil {
					t.Error(err)
				}
				*d = time.Since(begun)
			})
			return d
		}
		opening := func(n int) []*wire.Command {
			return []*wire.Command{{Op: &wire.Command_OpenRun{OpenRun: &wire.OpenRun{Node: strconv.Itoa(n)}}}}
		}
		lone := took(opening(0))
		for n := range 50 {
			pass(time.Millisecond)
			took(opening(n + 1))
		}
		pass(time.Second)
		if s := f.sizes(); len(s) != 2 || s[0] != 1 || s[1] != 50 {
			t.Errorf("entries of %v openings", s)
		}
		again := took(opening(51))
		pass(time.Millisecond)
		late := took(opening(52))
		pass(time.Millisecond)
		lock := took(numbered(7))
		pass(time.Second)
		calls.Wait()
		if *lone > f.hold || *again > f.hold {
			t.Errorf("a lone opening took %v, %v", *lone, *again)
		}
		if *lock > f.hold+batchWindow || *late > f.hold+2*batchWindow {
			t.Errorf("a lock took %v, the opening that it hurried %v", *lock, *late)
		}
	})
}

func TestBatcherBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLog{hold: time.Second}
		b, _ := startBatcher(t, f)
		big := []*wire.Command{{Op: &wire.Command_Lock{Lock: &wire.Lock{Name: string(make([]byte, batchBytes*2/3))}}}}
		many := make([]*wire.Command, batchCommands*2/3)
		for i := range many {
			many[i] = numbered(i)[0]
		}
		var calls sync.WaitGroup
		for _, cmds := range [][]*wire.Command{numbered(1), big, big, many, many} {
			calls.Go(func() {
				if r, _, err := b.submit(t.Context(), cmds); err != nil || len(r) != len(cmds) {
					t.Errorf("%d results, %v", len(r), err)
				}
			})
			synctest.Wait()
		}
		calls.Wait()
		for _, e := range f.entries {
			if proto.Size(e) > batchBytes+1024 || len(e.GetCommands()) > batchCommands {
				t.Errorf("an entry of %d commands, %d bytes", len(e.GetCommands()), proto.Size(e))
			}
		}
	})
}

func TestBatcherErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		b, _ := startBatcher(t, &fakeLog{err: broken})
		if _, _, err := b.submit(t.Context(), numbered(1)); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
		b, _ = startBatcher(t, &fakeLog{short: true})
		if r, _, err := b.submit(t.Context(), numbered(1)); err == nil {
			t.Errorf("an answer that does not fit: %v", r)
		}
	})
}

func TestBatcherContextEndsTheWaitOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLog{hold: time.Second}
		b, _ := startBatcher(t, f)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _, err := b.submit(ctx, numbered(1))
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errUnreached) {
			t.Errorf("error %v: the outcome is open", err)
		}
		if len(f.sizes()) != 1 {
			t.Error("the command never left")
		}
		pass(2 * time.Second)
	})
}

func TestBatcherStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stop := startBatcher(t, &fakeLog{hold: time.Second})
		answered := make(chan error, 1)
		go func() {
			_, _, err := b.submit(t.Context(), numbered(1))
			answered <- err
		}()
		synctest.Wait()
		stop()
		if err := <-answered; !errors.Is(err, ErrStopped) {
			t.Errorf("under way: %v", err)
		}
		if _, _, err := b.submit(t.Context(), numbered(2)); !errors.Is(err, errUnreached) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// TestBatcherLosesNoReply: each caller gets the answers to its own commands, whatever comes together, and one answer or
// one error also when the batcher stops in between.
func TestBatcherLosesNoReply(t *testing.T) {
	f := &fakeLog{}
	b, stop := startBatcher(t, f)
	var calls sync.WaitGroup
	failures := make(chan string, 64)
	for worker := range 32 {
		r := rand.New(rand.NewPCG(uint64(worker), 2))
		calls.Go(func() {
			for i := range 200 {
				var cmds []*wire.Command
				for range 1 + r.IntN(4) {
					cmds = append(cmds, numbered(worker*1000 + i)[0])
				}
				results, _, err := b.submit(context.Background(), cmds)
				if errors.Is(err, errUnreached) || errors.Is(err, ErrStopped) {
					return
				}
				if err != nil || len(results) != len(cmds) || results[0].GetToken() != uint64(worker*1000+i) {
					failures <- fmt.Sprint(len(results), err)
					return
				}
			}
			if worker == 0 {
				go stop()
			}
		})
	}
	calls.Wait()
	close(failures)
	for f := range failures {
		t.Error(f)
	}
	stop()
}
