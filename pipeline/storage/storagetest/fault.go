package storagetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// Op is a call of storage.Storage.
type Op string

// The calls that a fault can hit.
const (
	Put    Op = "put"
	Get    Op = "get"
	Stat   Op = "stat"
	List   Op = "list"
	Delete Op = "delete"
	Any    Op = "any call"
)

// place is where in a call a fault strikes.
type place int

const (
	atStart  place = iota // before the storage is asked
	inStream              // when a number of bytes has passed
	atEnd                 // after the storage has done its work: the answer is lost
)

// Fault is one thing that goes wrong. Made by the functions below; narrowed by On, Nth and Times before
// it is injected. A fault is used in one storage only.
type Fault struct {
	op     Op
	object string // part of the name; "" = all
	first  int    // of the matching calls, the first one hit; from 1
	last   int    // and the last; 0 = no end
	at     place
	after  int64 // bytes, inStream
	what   string
	strike func(ctx context.Context, name string) error

	mu    sync.Mutex
	seen  int // matching calls
	hits  int // of those, hit ones
	cutIt bool
}

// Fail makes calls of op fail with err before anything has happened.
func Fail(op Op, err error) *Fault {
	return &Fault{op: op, first: 1, what: fmt.Sprintf("fail with %q", err), strike: fails(err)}
}

// Lose makes calls of op do their work and then fail with err: the answer is lost. A Get's stream is closed; a List
// fails after its last entry.
func Lose(op Op, err error) *Fault {
	return &Fault{op: op, first: 1, at: atEnd, what: fmt.Sprintf("lose the answer with %q", err), strike: fails(err)}
}

// Break makes the stream of a Put (as the storage reads it) or a Get (as the caller reads it) fail with err after n
// bytes.
func Break(op Op, n int64, err error) *Fault {
	return &Fault{op: op, first: 1, at: inStream, after: n, what: fmt.Sprintf("fail with %q", err), strike: fails(err)}
}

// Cut makes the stream of a Get end after n bytes as if that were its end: what a storage must never do, and a reader
// has to find out all the same.
func Cut(n int64) *Fault {
	return &Fault{op: Get, first: 1, at: inStream, after: n, what: "end too early", cutIt: true}
}

// Do runs hook before calls of op; an error of the hook is the call's. A hook may wait for what a test decides, which
// makes a delay; it should obey ctx.
func Do(op Op, hook func(ctx context.Context, name string) error) *Fault {
	return &Fault{op: op, first: 1, what: "run a hook", strike: hook}
}

// DoAt is Do within the stream of a Put or a Get, after n bytes.
func DoAt(op Op, n int64, hook func(ctx context.Context, name string) error) *Fault {
	f := Do(op, hook)
	f.at, f.after = inStream, n
	return f
}

// Stall makes calls of op wait at the gate before anything has happened.
func Stall(op Op, g *Gate) *Fault {
	f := Do(op, g.pass)
	f.what = "stall"
	return f
}

// StallEnd makes calls of op do their work and then wait at the gate before they answer.
func StallEnd(op Op, g *Gate) *Fault {
	f := Do(op, g.pass)
	f.at, f.what = atEnd, "stall before the answer"
	return f
}

// StallAt makes the stream of a Put or a Get wait at the gate after n bytes.
func StallAt(op Op, n int64, g *Gate) *Fault {
	f := DoAt(op, n, g.pass)
	f.what = "stall"
	return f
}

// On restricts the fault to objects (for List: prefixes) whose name contains part.
func (f *Fault) On(part string) *Fault { f.object = part; return f }

// Nth restricts the fault to the n-th matching call, counted from 1.
func (f *Fault) Nth(n int) *Fault { f.first, f.last = n, n; return f }

// Times restricts the fault to the first n matching calls.
func (f *Fault) Times(n int) *Fault { f.first, f.last = 1, n; return f }

// Hits returns how many calls the fault was in force for.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// String describes the fault: `put of "manifest" (call 2), after 100 bytes: fail with "boom"`.
func (f *Fault) String() string {
	var b strings.Builder
	b.WriteString(string(f.op))
	if f.object != "" {
		fmt.Fprintf(&b, " of %q", f.object)
	}
	switch {
	case f.last == 0 && f.first > 1:
		fmt.Fprintf(&b, " (calls %d…)", f.first)
	case f.last == f.first:
		fmt.Fprintf(&b, " (call %d)", f.first)
	case f.last > 0:
		fmt.Fprintf(&b, " (calls %d-%d)", f.first, f.last)
	}
	if f.at == inStream {
		fmt.Fprintf(&b, ", after %d bytes", f.after)
	}
	return b.String() + ": " + f.what
}

// matches counts a call and tells whether the fault is in force for it.
func (f *Fault) matches(op Op, name string) bool {
	if f.op != Any && f.op != op || !strings.Contains(name, f.object) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen++
	if f.seen < f.first || f.last > 0 && f.seen > f.last {
		return false
	}
	f.hits++
	return true
}

func fails(err error) func(context.Context, string) error {
	return func(context.Context, string) error { return err }
}

// Gate holds up calls until it is released; then it is open for good.
type Gate struct {
	reached chan struct{}
	open    chan struct{}
	arrive  sync.Once
	release sync.Once
}

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{reached: make(chan struct{}), open: make(chan struct{})} }

// Reached is closed when the first call waits at the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Release opens the gate. It may be called several times.
func (g *Gate) Release() { g.release.Do(func() { close(g.open) }) }

// pass waits for Release or the end of ctx.
func (g *Gate) pass(ctx context.Context, _ string) error {
	g.arrive.Do(func() { close(g.reached) })
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
