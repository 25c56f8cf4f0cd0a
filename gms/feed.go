package gms

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// feedGrace is how long a member waits for Raft to bring it the log before it asks to be fed: a newcomer for which there
// is room is a follower by then.
const feedGrace = 500 * time.Millisecond

// feedLag is how long the own log may be behind the leader before the member asks to be fed meanwhile: Raft lets up to ten
// seconds pass before it tries again whom it did not reach for long.
const feedLag = time.Second

// feedShun is how long a feeder that failed comes after all others.
const feedShun = 10 * time.Second

// feed keeps the replica of a member that is not in the Raft configuration up to date (DESIGN.md section 5): another
// member's stream brings the entries. The state is held in memory only; the home's log stays as it is.
type feed struct {
	g     *Group
	shun  map[string]time.Time // feeders that failed lately
	hot   bool                 // one feeder follows the other without grace
	want  uint64               // index that the own log is waited for to bring
	since time.Time            // from when on
}

// feedLoop is fed by one member after the other while the own log does not bring the entries.
func (g *Group) feedLoop(ctx context.Context) {
	f := &feed{g: g, shun: make(map[string]time.Time)}
	backoff := firstBackoff
	for f.awaitNeed(ctx) {
		_, heard := g.peers.alive()
		node := f.choose("")
		if node == "" {
			if !pause(ctx, heard, lastBackoff) {
				return
			}
			continue
		}
		begun := time.Now()
		err := f.from(ctx, node)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errOwnLog):
			g.log.Info("gms: node follows the log itself from now on")
			f.hot = false
			continue
		case errors.Is(err, ErrDiverged):
			g.fail(err)
			return
		}
		g.log.Debug("gms: feed ended", "feeder", node, "error", err)
		f.shun[node] = time.Now().Add(feedShun)
		if time.Since(begun) > feedShun {
			backoff = firstBackoff
		}
		if !pause(ctx, nil, backoff) {
			return
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// awaitNeed blocks until the own log has brought nothing for a while and is not expected to; false when ctx ended.
func (f *feed) awaitNeed(ctx context.Context) bool {
	since := time.Time{}
	for {
		moved := f.g.guide.moved()
		wait := time.Hour
		switch {
		case f.g.follows():
			since, f.hot = time.Time{}, false
			if wait = feedLag; f.lags() {
				return ctx.Err() == nil
			}
		case f.hot:
			return ctx.Err() == nil
		case since.IsZero():
			since = time.Now()
			fallthrough
		default:
			if wait = feedGrace - time.Since(since); wait <= 0 {
				return ctx.Err() == nil
			}
		}
		if !pause(ctx, moved, wait) {
			return false
		}
	}
}

// lags tells whether the own log has been behind the leader for too long. What it is behind is what a leader has told with
// an acknowledgement.
func (f *feed) lags() bool {
	at, now := f.g.rep.index(), time.Now()
	if at >= f.want {
		f.want, f.since = f.g.guide.ahead(), now
	}
	return at < f.want && now.Sub(f.since) > feedLag
}

// choose gives the member to be fed by: of those that are alive and follow the log, the first in an order that differs
// from consumer to consumer, so that the load is spread; those that failed lately, are suspected or lead come last.
func (f *feed) choose(not string) string {
	g, now := f.g, time.Now()
	leader := g.leaderHint()
	_, known := g.guide.servers()
	list, _ := g.peers.alive()
	type option struct {
		node           string
		shunned, leads bool
		weight         uint64
	}
	var options []option
	for _, p := range list {
		node := p.meta.GetNode()
		if node == g.cfg.Node || node == not || len(p.meta.GetClusterId()) == 0 || len(known) > 0 && !slices.Contains(known, node) {
			continue
		}
		options = append(options, option{
			node: node, leads: node == leader, weight: feedWeight(g.cfg.Node, node),
			shunned: now.Before(f.shun[node]) || g.suspected(node),
		})
	}
	if len(options) == 0 {
		g.guide.forgetServers() // somebody else may know better
		return ""
	}
	return slices.MinFunc(options, func(a, b option) int {
		return cmp.Or(compareBool(a.shunned, b.shunned), compareBool(a.leads, b.leads), cmp.Compare(b.weight, a.weight), cmp.Compare(a.node, b.node))
	}).node
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func feedWeight(consumer, feeder string) uint64 {
	sum := sha256.Sum256([]byte(consumer + "/" + feeder))
	return binary.BigEndian.Uint64(sum[:])
}

func (g *Group) suspected(node string) bool {
	run, ok := g.rep.open(node)
	return ok && run.Suspected
}

// from is fed by one member until that ends, is silent, falls behind, or the own log takes over.
func (f *feed) from(ctx context.Context, node string) error {
	c, err := f.g.client(node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at := f.g.rep.beginFeed()
	replies := f.open(ctx, c, at)
	defer func() {
		cancel()
		for range replies {
		}
	}()
	f.g.log.Debug("gms: fed", "feeder", node, "from", at)
	f.hot = !f.g.follows()
	f.g.guide.fedBy(node)
	defer f.g.guide.fedBy("")
	return f.take(ctx, node, replies)
}

// fedReply is one message of the feeder, or the end of the stream.
type fedReply struct {
	m   *wire.FollowReply
	err error
}

// open receives in a goroutine that ends with ctx; the channel is closed then.
func (f *feed) open(ctx context.Context, c wire.ClusterClient, at uint64) <-chan fedReply {
	ch := make(chan fedReply)
	go func() {
		defer close(ch)
		stream, err := c.Follow(ctx, &wire.FollowRequest{Applied: at, BeatMs: millis(f.g.cfg.Timing.feedBeat())})
		for {
			var r fedReply
			if r.err = err; err == nil {
				r.m, r.err = stream.Recv()
			}
			select {
			case ch <- r:
			case <-ctx.Done():
				return
			}
			if r.err != nil {
				return
			}
		}
	}()
	return ch
}

var (
	errFeederSilent = errors.New("the feeder is silent")
	errFeederBehind = errors.New("the feeder is behind the leader")
)

// take applies what comes. A feeder is silent after three missed beats, and behind when an index that a leader has told is
// not reached for as long.
func (f *feed) take(ctx context.Context, node string, replies <-chan fedReply) error {
	g, beat := f.g, f.g.cfg.Timing.feedBeat()
	heard, want, since := time.Now(), g.guide.ahead(), time.Now()
	meanwhile := g.follows() // until the own log has caught up
	tick := time.NewTicker(beat / 2)
	defer tick.Stop()
	var in feedIntake
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case r, open := <-replies:
			if !open {
				return context.Cause(ctx)
			}
			if r.err != nil {
				return fmt.Errorf("feed broke: %w", r.err)
			}
			heard = time.Now()
			if err := in.take(g, r.m); err != nil {
				return err
			}
		case <-tick.C:
		}
		if g.rep.index() >= want || in.part != nil {
			want, since = g.guide.ahead(), time.Now()
		}
		switch {
		case g.follows() && !meanwhile, g.rep.followsLog():
			return errOwnLog
		case time.Since(heard) > 3*beat:
			return errFeederSilent
		case time.Since(since) > 3*beat:
			return errFeederBehind
		case g.peers.lost(node):
			return errors.New("the feeder is dead by gossip")
		case g.suspected(node) && f.other(node):
			return errors.New("the feeder is suspected")
		}
	}
}

// other tells whether there is a member to be fed by that is not suspected.
func (f *feed) other(than string) bool {
	next := f.choose(than)
	return next != "" && !f.g.suspected(next) && !time.Now().Before(f.shun[next])
}

// feedIntake puts a snapshot together and hands on the rest.
type feedIntake struct{ part []byte }

func (in *feedIntake) take(g *Group, m *wire.FollowReply) error {
	switch m := m.GetMsg().(type) {
	case *wire.FollowReply_Status:
		g.guide.status(m.Status)
		if why := m.Status.GetEnded(); why != "" {
			return errors.New(why)
		}
	case *wire.FollowReply_Entries:
		for _, e := range m.Entries.GetEntries() {
			if err := g.rep.feedEntry(e); err != nil {
				return err
			}
		}
	case *wire.FollowReply_Snapshot:
		if len(in.part)+len(m.Snapshot.GetData()) > maxSnapshot {
			return errors.New("the feeder's snapshot is larger than 1 GiB")
		}
		in.part = append(in.part, m.Snapshot.GetData()...)
		if !m.Snapshot.GetLast() {
			return nil
		}
		data := in.part
		in.part = nil
		return g.rep.feedSnapshot(data)
	}
	return nil
}

// lost tells whether gossip has known the node and holds none of its runs alive.
func (p *peers) lost(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := false
	for _, e := range p.runs {
		if e.meta.GetNode() == node {
			if e.alive {
				return false
			}
			known = true
		}
	}
	return known
}
