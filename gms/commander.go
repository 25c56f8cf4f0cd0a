package gms

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// submitter brings commands to where they may be decided.
type submitter interface {
	// submit sends commands to node (empty: to whoever seems to lead). A reply that is neither NotLeader nor Unknown is
	// final. An error means that it is not known whether the commands arrived.
	submit(ctx context.Context, node string, commands []*wire.Command) (*wire.SubmitReply, error)
	// leaderHint is the node that leads as far as is known here; empty for unknown.
	leaderHint() string
	// leaderChanged is closed when the hint changes.
	leaderChanged() <-chan struct{}
}

// commander gives commands their request ids and repeats each until its outcome is known (PROTOCOL.md 21): "unknown" is
// never taken for "no", and a repeated command is answered from the table of answers, not done twice.
type commander struct {
	to submitter

	mu      sync.Mutex
	client  []byte
	next    uint64
	waiting map[uint64]struct{} // request ids whose answers have not been seen
}

func newCommander(to submitter) *commander {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	return &commander{to: to, client: id, waiting: make(map[uint64]struct{})}
}

const (
	firstBackoff = 5 * time.Millisecond
	lastBackoff  = 250 * time.Millisecond
	attemptLimit = 2 * time.Second // of one try; the next one goes to whoever leads then
	maxRedirects = 3               // followed at once; members that point at each other are asked again after a pause
	maxCommand   = 384 << 10       // bytes of one command, well under what one entry may have
)

// do gets one command decided. It blocks until the outcome is known or ctx ends: then the error is ErrUnknown, or
// ErrNoQuorum when the command cannot have reached a leader.
func (c *commander) do(ctx context.Context, cmd *wire.Command) (*wire.Result, error) {
	if err := c.begin(cmd); err != nil {
		return nil, err
	}
	defer c.end(cmd.GetSeq())
	return c.repeat(ctx, cmd)
}

// begin assigns the request id; ErrTooLarge when no entry would take the command.
func (c *commander) begin(cmd *wire.Command) error {
	if n := proto.Size(cmd); n > maxCommand {
		return fmt.Errorf("%w: the command has %d bytes, at most %d", ErrTooLarge, n, maxCommand)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	cmd.Client, cmd.Seq = c.client, c.next
	c.waiting[c.next] = struct{}{}
	return nil
}

// end notes that the answer was seen, or that nobody will look at it.
func (c *commander) end(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, seq)
}

func (c *commander) acked() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	least := c.next + 1
	for seq := range c.waiting {
		least = min(least, seq)
	}
	return least - 1
}

func (c *commander) repeat(ctx context.Context, cmd *wire.Command) (*wire.Result, error) {
	backoff, node, sent, redirects := firstBackoff, "", false, 0
	for {
		changed := c.to.leaderChanged()
		reply, err := c.try(ctx, node, cmd)
		switch {
		case err == nil && isAgain(reply): // this try had no effect, and the next one may go the same way
		case err == nil && !reply.GetNotLeader() && !reply.GetUnknown() && len(reply.GetResults()) == 1:
			return c.known(reply.GetResults()[0], sent)
		case err == nil && reply.GetNotLeader():
			hint := reply.GetLeader()
			if hint != "" && hint != node && redirects < maxRedirects {
				node = hint
				redirects++
				continue
			}
			node = ""
		default:
			sent = sent || !errors.Is(err, errUnreached)
			node = ""
		}
		if !pause(ctx, changed, backoff) {
			return nil, c.gaveUp(ctx, sent)
		}
		backoff, redirects = min(2*backoff, lastBackoff), 0
	}
}

// isAgain tells that a command is to be repeated though a leader has looked at it.
func isAgain(r *wire.SubmitReply) bool {
	return len(r.GetResults()) == 1 && r.GetResults()[0].GetCode() == wire.Code_CODE_AGAIN
}

// known takes a result. That the run is not open says nothing of an earlier try whose answer was lost: with the run, the
// answers to its commands are forgotten.
func (c *commander) known(r *wire.Result, sent bool) (*wire.Result, error) {
	if sent && r.GetCode() == wire.Code_CODE_RUN_NOT_OPEN {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, ErrRunClosed)
	}
	return r, nil
}

// errUnreached marks a try that cannot have reached a leader.
var errUnreached = errors.New("not sent")

func (c *commander) try(ctx context.Context, node string, cmd *wire.Command) (*wire.SubmitReply, error) {
	if node == "" {
		node = c.to.leaderHint()
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	try := proto.CloneOf(cmd) // an earlier try may still be on its way through the batcher
	try.Acked = c.acked()
	return c.to.submit(ctx, node, []*wire.Command{try})
}

func (c *commander) gaveUp(ctx context.Context, sent bool) error {
	kind := ErrNoQuorum
	if sent {
		kind = ErrUnknown
	}
	return fmt.Errorf("%w: %w", kind, context.Cause(ctx))
}

// pause waits for d, or less when wake is closed; false when ctx ended.
func pause(ctx context.Context, wake <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-t.C:
	}
	return ctx.Err() == nil
}
