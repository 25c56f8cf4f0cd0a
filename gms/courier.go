package gms

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// courier brings commands to other members; those that go to the same one in the same moment travel in one request, and so
// come into one entry. A member that is appointed to all components of a dead run acquires their fences by one call. Each
// command keeps an answer of its own.
type courier struct {
	send func(ctx context.Context, node string, cmds []*wire.Command) (*wire.SubmitReply, error)
	// spawn runs f on a goroutine of the owner's; false: none is begun any more, and the caller has to do it.
	spawn func(f func(ctx context.Context)) bool

	mu    sync.Mutex
	boxes map[string][]parcel // by node: what the next request takes along; one request each is about to be made
}

// parcel is one caller's part of a request.
type parcel struct {
	commands []*wire.Command
	answer   chan parcelAnswer // buffered
}

type parcelAnswer struct {
	reply *wire.SubmitReply
	err   error
}

// submit is submitter's, to a node that is not this one. ctx bounds the wait; others in the same request are not cut off.
func (c *courier) submit(ctx context.Context, node string, cmds []*wire.Command) (*wire.SubmitReply, error) {
	p := parcel{commands: cmds, answer: make(chan parcelAnswer, 1)}
	if c.put(node, p) && !c.spawn(func(ctx context.Context) { c.carry(ctx, node) }) {
		c.carry(ctx, node)
	}
	select {
	case a := <-p.answer:
		return a.reply, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// put says whether p is the first one in its box: then somebody has to carry it.
func (c *courier) put(node string, p parcel) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.boxes == nil {
		c.boxes = make(map[string][]parcel)
	}
	first = len(c.boxes[node]) == 0
	c.boxes[node] = append(c.boxes[node], p)
	return first
}

// carry sends what is in a box, after everybody else who is about to submit has had a turn to put something in.
func (c *courier) carry(ctx context.Context, node string) {
	for range batchYields {
		runtime.Gosched()
	}
	c.mu.Lock()
	box := c.boxes[node]
	delete(c.boxes, node)
	c.mu.Unlock()
	var sent sync.WaitGroup
	defer sent.Wait()
	for len(box) > 0 {
		n := fitting(box)
		request := box[:n]
		box = box[n:]
		sent.Go(func() { c.deliver(ctx, node, request) })
	}
}

// fitting is how many parcels one request takes, at least one: no more than one entry takes.
func fitting(box []parcel) int {
	commands, size := 0, 0
	for i, p := range box {
		commands += len(p.commands)
		for _, cmd := range p.commands {
			size += proto.Size(cmd)
		}
		if i > 0 && (commands > batchCommands || size > batchBytes) {
			return i
		}
	}
	return len(box)
}

// deliver sends one request and gives each parcel its part of the answer.
func (c *courier) deliver(ctx context.Context, node string, request []parcel) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	var cmds []*wire.Command
	for _, p := range request {
		cmds = append(cmds, p.commands...)
	}
	reply, err := c.send(ctx, node, cmds)
	decided := err == nil && !reply.GetNotLeader() && !reply.GetUnknown()
	if decided && len(reply.GetResults()) != len(cmds) {
		decided, err = false, fmt.Errorf("%d commands were answered with %d results", len(cmds), len(reply.GetResults()))
	}
	at := 0
	for _, p := range request {
		mine := reply
		if decided {
			mine = &wire.SubmitReply{Results: reply.GetResults()[at : at+len(p.commands)], Index: reply.GetIndex()}
			at += len(p.commands)
		}
		p.answer <- parcelAnswer{mine, err}
	}
}
