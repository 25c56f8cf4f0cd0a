package gms

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// checkHome asks the members that can be reached what the group has on record about this home (DESIGN.md, "Homes"). A
// home that holds less than it once held would vote without memory: it does not start. It asks for a short while only: a
// full restart of all nodes has nobody to ask.
func (g *Group) checkHome(ctx context.Context) error {
	last, err := g.cons.LastIndex()
	if err != nil {
		return fmt.Errorf("read the log of the home: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	q := newInquiry(func(ctx context.Context, node string) (*wire.HomePositionReply, error) {
		r, err := g.homePosition(ctx, node)
		if err != nil {
			g.log.Debug("gms: home's record not read", "from", node, "error", err)
		}
		return r, err
	})
	return q.run(ctx, g.recordKeepers, func(r *wire.HomePositionReply) error { return g.judgeHome(r, last) })
}

// recordKeepers are the members of the formed group that gossip holds alive; more tells that others may come.
func (g *Group) recordKeepers() (nodes []string, more bool, changed <-chan struct{}) {
	list, changed := g.peers.alive()
	for _, p := range list {
		if p.meta.GetNode() != g.cfg.Node && len(p.meta.GetClusterId()) > 0 {
			nodes = append(nodes, p.meta.GetNode())
		}
	}
	return nodes, len(list) > 1 || len(g.joinTargets("")) > 0, changed
}

// inquiry asks members for the record of a home, all at once: one that hangs must not keep the others from being asked.
type inquiry struct {
	ask     func(ctx context.Context, node string) (*wire.HomePositionReply, error)
	replies chan recordReply
	asked   map[string]bool // false: it failed, or did not know the group yet
	open    int             // calls under way
}

type recordReply struct {
	node string
	r    *wire.HomePositionReply
	err  error
}

const inquiryPause = 100 * time.Millisecond // before one that failed, or knew nothing yet, is asked again

func newInquiry(ask func(ctx context.Context, node string) (*wire.HomePositionReply, error)) *inquiry {
	return &inquiry{ask: ask, replies: make(chan recordReply), asked: make(map[string]bool)}
}

// run asks whoever is there or comes, until no call is under way and somebody who knows the group has answered, until nobody
// is to be expected, or until ctx ends. It returns the first error of judge.
func (q *inquiry) run(ctx context.Context, keepers func() ([]string, bool, <-chan struct{}), judge func(*wire.HomePositionReply) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	again := time.NewTicker(inquiryPause)
	defer again.Stop()
	answered := false
	for {
		nodes, more, changed := keepers()
		for _, node := range nodes {
			q.begin(ctx, &calls, node)
		}
		if q.open == 0 && (answered || !more) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-again.C:
			q.forgive()
		case a := <-q.replies:
			q.open--
			knows := a.err == nil && len(a.r.GetClusterId()) > 0
			q.asked[a.node] = knows
			answered = answered || knows
			if a.err != nil {
				continue
			}
			if err := judge(a.r); err != nil {
				return err
			}
		}
	}
}

// begin asks a node, unless it was asked; the call ends with ctx.
func (q *inquiry) begin(ctx context.Context, calls *sync.WaitGroup, node string) {
	if _, was := q.asked[node]; was {
		return
	}
	q.asked[node] = true
	q.open++
	calls.Go(func() {
		r, err := q.ask(ctx, node)
		select {
		case q.replies <- recordReply{node, r, err}:
		case <-ctx.Done():
		}
	})
}

// forgive lets those be asked again that were of no use.
func (q *inquiry) forgive() {
	maps.DeleteFunc(q.asked, func(_ string, useful bool) bool { return !useful })
}

// judgeHome compares what a member has on record with what the home holds.
func (g *Group) judgeHome(r *wire.HomePositionReply, last uint64) error {
	switch {
	case r.GetForgotten():
		return g.refused(fmt.Errorf("start %s: %w", g.cfg.Node, ErrForgotten), forgottenHome)
	case r.GetOtherHome() && r.GetStanding():
		return g.refused(fmt.Errorf("start %s: %w", g.cfg.Node, ErrNameTaken), takenName)
	case r.GetStanding():
		return g.refused(fmt.Errorf("start %s: %w by a process on another copy of this home", g.cfg.Node, ErrNameTaken), copiedHome)
	case r.GetOtherHome():
		return g.refused(fmt.Errorf("start %s: %w", g.cfg.Node, ErrOtherHome), otherHome(g.cfg.Node))
	case r.GetKnown() && r.GetIndex() > last:
		return g.refused(fmt.Errorf("start %s: %w: the group knows it to have held index %d, it holds %d", g.cfg.Node, ErrOlderHome, r.GetIndex(), last), emptyHome(g.cfg.Node))
	}
	return nil
}

// Remedies for people.
const takenName = "give this node another name, or stop the other one"

const copiedHome = "a home is one node's: stop the other process, or empty the copy (`fencepostd home reset`) and give its node another name"

const forgottenHome = "its node was forgotten or its home replaced: `fencepostd home reset` empties it, then it comes as a newcomer"

func otherHome(node string) string {
	return "bring its old home back, or run `fencepost node replace " + node + "` on a member"
}

func emptyHome(node string) string {
	return "empty it (`fencepostd home reset`) and run `fencepost node replace " + node + "` on a member"
}

func (g *Group) homePosition(ctx context.Context, node string) (*wire.HomePositionReply, error) {
	c, err := g.client(node)
	if err != nil {
		return nil, err
	}
	return c.HomePosition(ctx, &wire.HomePositionRequest{Node: g.cfg.Node, Home: g.home.id[:]})
}
