package gms

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Bounds of one log entry. Entries stay well under Raft's suggested 512 KiB, so that heartbeats are not held up.
const (
	batchWindow   = 5 * time.Millisecond   // longest wait for company while another entry is under way
	floodWindow   = 100 * time.Millisecond // between two entries that only open runs: each is a view that all members see
	batchYields   = 3                      // turns that others get before an entry goes out alone
	batchCommands = 512
	batchBytes    = 256 << 10
)

// proposer commits one entry and returns its results; errors are consensus'.
type proposer func(ctx context.Context, data []byte) ([]*wire.Result, uint64, error)

type submission struct {
	commands []*wire.Command
	size     int
	reply    chan batchReply // buffered
}

type batchReply struct {
	results []*wire.Result
	index   uint64
	err     error
}

// batcher packs the commands that arrive at the leader into entries, so that many grants share one fsync. An entry goes
// out at once while none is under way, with what comes in the same moment; under load commands gather until the one before is
// committed, at most batchWindow: an entry costs every node as much as many commands. When many nodes start together their
// openings gather for floodWindow after the last ones, as long as no other command comes.
type batcher struct {
	propose proposer
	// protocol is what the group writes: no entry has anything that came later.
	protocol func() uint32
	// proposing is told of each entry's commands before they are proposed, and landed of the outcome, after the answers are
	// given; landed may block until ctx ends.
	proposing func(cmds []*wire.Command) (landed func(ctx context.Context, err error))
	in        chan submission
	stopped   chan struct{}
	flights   sync.WaitGroup
	landed    chan struct{} // capacity 1: an entry's outcome is known
	opened    time.Time     // when the last entry that opens runs went out
}

func newBatcher(p proposer, protocol func() uint32) *batcher {
	return &batcher{
		propose: p, protocol: protocol, in: make(chan submission), stopped: make(chan struct{}), landed: make(chan struct{}, 1),
		proposing: func([]*wire.Command) func(context.Context, error) { return func(context.Context, error) {} },
	}
}

// tooNew is for people.
const tooNew = "a command, or something in it, came later than the protocol that the group writes: `fencepost upgrade` says which node is in the way"

// submit gets commands decided in one entry. ctx bounds the wait, not the outcome. What not all members would understand is
// refused, with all that came beside it.
func (b *batcher) submit(ctx context.Context, commands []*wire.Command) ([]*wire.Result, uint64, error) {
	s := submission{commands: commands, reply: make(chan batchReply, 1)}
	writes := b.protocol()
	for _, c := range commands {
		if wire.Needs(c) > writes {
			return refuseAll(commands, wire.Code_CODE_UNKNOWN_COMMAND, tooNew).GetResults(), 0, nil
		}
		s.size += proto.Size(c)
	}
	select {
	case b.in <- s:
	case <-b.stopped:
		return nil, 0, errUnreached
	case <-ctx.Done():
		return nil, 0, errUnreached
	}
	select {
	case r := <-s.reply:
		return r.results, r.index, r.err
	case <-ctx.Done():
		return nil, 0, context.Cause(ctx)
	}
}

// run owns the batcher until ctx ends, and then waits for what is under way.
func (b *batcher) run(ctx context.Context) {
	defer b.flights.Wait()
	defer close(b.stopped)
	busy := false
	var held *submission
	for {
		batch := held
		if batch == nil {
			select {
			case <-ctx.Done():
				return
			case <-b.landed:
				busy = false
				continue
			case s := <-b.in:
				batch = &s
			}
		}
		var all []submission
		all, held = b.gather(ctx, *batch, &busy)
		busy = true
		b.flights.Go(func() { b.fly(ctx, all) })
	}
}

// gather collects what is waiting; held is what did not fit any more.
func (b *batcher) gather(ctx context.Context, first submission, busy *bool) (all []submission, held *submission) {
	all = []submission{first}
	opening, flood := first.opens(), false
	defer func() {
		if opening {
			b.opened = time.Now()
		}
	}()
	limit := batchWindow
	if rest := floodWindow - time.Since(b.opened); opening && rest > 0 {
		flood, limit = true, rest
	}
	commands, size, yields := len(first.commands), first.size, 0
	window := time.NewTimer(limit)
	defer window.Stop()
	for {
		var s submission
		select {
		case s = <-b.in:
		default:
			if !*busy && !flood {
				if yields < batchYields { // whoever is about to submit at this very moment comes along
					yields++
					runtime.Gosched()
					continue
				}
				return all, nil
			}
			select {
			case s = <-b.in:
			case <-b.landed:
				*busy = false
				continue
			case <-window.C:
				return all, nil
			case <-ctx.Done():
				return all, nil
			}
		}
		if commands+len(s.commands) > batchCommands || size+s.size > batchBytes {
			return all, &s
		}
		all = append(all, s)
		commands += len(s.commands)
		size += s.size
		if opens := s.opens(); flood && !opens { // it is not to wait for openings
			flood = false
			window.Reset(batchWindow)
		} else {
			opening = opening || opens
		}
	}
}

// opens tells whether all that is submitted are openings of runs.
func (s submission) opens() bool {
	return !slices.ContainsFunc(s.commands, func(c *wire.Command) bool { return c.GetOpenRun() == nil })
}

func (b *batcher) fly(ctx context.Context, all []submission) {
	entry := &wire.Entry{Version: b.protocol(), Time: time.Now().UnixMilli()}
	for _, s := range all {
		entry.Commands = append(entry.Commands, s.commands...)
	}
	data, err := proto.Marshal(entry)
	landed := b.proposing(entry.GetCommands())
	var r batchReply
	if err == nil {
		r.results, r.index, r.err = b.propose(ctx, data)
	} else {
		r.err = errors.Join(errUnreached, err)
	}
	if r.err == nil && len(r.results) != len(entry.GetCommands()) {
		r = batchReply{err: errors.New("entry was answered with another number of results")}
	}
	deal(all, r)
	select {
	case b.landed <- struct{}{}:
	default:
	}
	landed(ctx, r.err)
}

// deal gives each submission its part of the answer.
func deal(all []submission, r batchReply) {
	at := 0
	for _, s := range all {
		mine := r
		if r.err == nil {
			mine.results = r.results[at : at+len(s.commands)]
			at += len(s.commands)
		}
		s.reply <- mine
	}
}
