package gms

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Bounds of a feed, at the side that serves it.
const (
	feedBytes   = 256 << 10 // of entries, or of a snapshot's part, in one message
	leastBeat   = 200 * time.Millisecond
	mostBeat    = time.Second
	feedPatient = 10 * time.Second // for a consumer to take a message; then it is cut off, and comes again
)

// feedBeat is the interval at which a feeder says that it is there.
func (t Timing) feedBeat() time.Duration {
	return min(max(t.TTL/6, leastBeat), mostBeat)
}

// feedBeatFor is the interval for a member, which may expect another one than this node does.
func (t Timing) feedBeatFor(r *wire.FollowRequest) time.Duration {
	if r.GetBeatMs() == 0 {
		return t.feedBeat()
	}
	return min(max(time.Duration(r.GetBeatMs())*time.Millisecond, leastBeat), mostBeat)
}

// Follow feeds a member that is not in the Raft configuration, from the entries that the replica keeps: nothing is queued
// for it beyond one message, and one that falls behind them gets a snapshot.
func (h handler) Follow(r *wire.FollowRequest, stream wire.Cluster_FollowServer) error {
	if !h.g.follows() {
		s := h.g.feedStatus()
		s.Ended = "this member does not follow the log itself"
		return stream.Send(&wire.FollowReply{Msg: &wire.FollowReply_Status{Status: s}})
	}
	f := feeder{g: h.g, stream: stream, at: r.GetApplied(), beat: h.g.cfg.Timing.feedBeatFor(r), out: make(chan *wire.FollowReply), failed: make(chan error, 1)}
	go f.send() // ends with the stream's context, which ends when the handler returns
	return f.serve(stream.Context())
}

// feeder serves one member.
type feeder struct {
	g      *Group
	stream wire.Cluster_FollowServer
	at     uint64 // index that the member has when it has taken all
	beat   time.Duration
	out    chan *wire.FollowReply
	failed chan error
	told   *wire.FeedStatus
}

var errSlowConsumer = errors.New("the member takes too long for what it is fed")

func (f *feeder) send() {
	for {
		select {
		case m := <-f.out:
			if err := f.stream.Send(m); err != nil {
				f.failed <- err
				return
			}
		case <-f.stream.Context().Done():
			return
		}
	}
}

// give hands a message to the sender, when it has sent the one before.
func (f *feeder) give(ctx context.Context, m *wire.FollowReply) error {
	limit := time.NewTimer(feedPatient)
	defer limit.Stop()
	select {
	case f.out <- m:
		return nil
	case err := <-f.failed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return errSlowConsumer
	}
}

func (f *feeder) serve(ctx context.Context) error {
	if err := f.say(ctx, ""); err != nil {
		return err
	}
	beat := time.NewTicker(f.beat)
	defer beat.Stop()
	for {
		moved := f.g.leaderChanged()
		list, ok, changed := f.g.rep.entriesSince(f.at, feedBytes)
		switch {
		case !f.g.follows():
			return f.say(ctx, "this member does not follow the log itself any more")
		case !ok:
			if err := f.snapshot(ctx); err != nil {
				return err
			}
			continue
		case len(list) > 0:
			if err := f.entries(ctx, list); err != nil {
				return err
			}
			continue
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.g.stopping():
			return f.say(ctx, "this member is stopping")
		case <-moved:
		case <-beat.C:
			f.told = nil
		}
		if err := f.say(ctx, ""); err != nil {
			return err
		}
	}
}

func (f *feeder) entries(ctx context.Context, list []keptEntry) error {
	m := &wire.FedEntries{}
	for _, e := range list {
		m.Entries = append(m.Entries, &wire.FedEntry{Before: e.before, Index: e.index, Data: e.data})
		f.at = e.index
	}
	return f.give(ctx, &wire.FollowReply{Msg: &wire.FollowReply_Entries{Entries: m}})
}

func (f *feeder) snapshot(ctx context.Context) error {
	data, index, err := f.g.rep.snapshot()
	if err != nil {
		return err
	}
	for part := range slices.Chunk(data, feedBytes) {
		data = data[len(part):]
		m := &wire.SnapshotPart{Data: part, Last: len(data) == 0}
		if err := f.give(ctx, &wire.FollowReply{Msg: &wire.FollowReply_Snapshot{Snapshot: m}}); err != nil {
			return err
		}
	}
	f.at = index
	return nil
}

// say tells the status, unless it was told already.
func (f *feeder) say(ctx context.Context, ended string) error {
	s := f.g.feedStatus()
	s.Ended = ended
	if f.told != nil && proto.Equal(s, f.told) {
		return nil
	}
	f.told = s
	return f.give(ctx, &wire.FollowReply{Msg: &wire.FollowReply_Status{Status: s}})
}

// feedStatus is what a member that is fed wants to know beside the entries.
func (g *Group) feedStatus() *wire.FeedStatus {
	if !g.follows() {
		s := &wire.FeedStatus{}
		s.Leader, _ = g.guide.leads()
		s.Voters, s.Feeders = g.guide.servers()
		return s
	}
	now, _ := g.cons.Watch()
	s := &wire.FeedStatus{Leader: now.Address, Term: now.Term}
	for _, v := range g.cons.Configuration().Servers {
		s.Feeders = append(s.Feeders, v.Address)
		if v.Voter {
			s.Voters = append(s.Voters, v.Address)
		}
	}
	return s
}

// stopping is closed when the group stops.
func (g *Group) stopping() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.bg == nil {
		return nil
	}
	return g.bg.Done()
}
