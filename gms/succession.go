package gms

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// standInStep is the pause between two voters' tries to follow a dead leader; far longer than an election takes.
const standInStep = 150 * time.Millisecond

// sightCounts is for how long a refusal that was seen need not be looked for again: an election takes less.
const sightCounts = 2 * time.Second

// sighting is what this member found out itself about a run, and when.
type sighting struct {
	refused bool
	at      time.Duration
}

// sightings are the answers to the Probe of a new leader, and keep one search per run under way.
type sightings struct {
	mu      sync.Mutex
	runs    map[state.RunID]sighting
	pursued map[state.RunID]bool
}

// saw notes the verdict of a probe.
func (s *sightings) saw(run state.RunID, v rpc.Verdict, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil || len(s.runs) > 1000 { // runs are few; this only bounds a history
		s.runs = make(map[state.RunID]sighting)
	}
	s.runs[run] = sighting{refused: v.Refused, at: now}
}

// pursue is true for the first caller until done is called.
func (s *sightings) pursue(run state.RunID) (done func(), first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pursued[run] {
		return nil, false
	}
	if s.pursued == nil {
		s.pursued = make(map[state.RunID]bool)
	}
	s.pursued[run] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pursued, run)
	}, true
}

func (s *sightings) of(run state.RunID) (sighting, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.runs[run]
	return seen, ok
}

// witness is what this member finds out of a run for a leader that was refused by its host: what it saw a moment ago, else what
// the host says now (right after a kill the kernel takes its time). Whether it has ever had a session with the run does
// not matter.
func (g *Group) witness(ctx context.Context, id state.RunID) *wire.ProbeReply {
	if seen, _ := g.seen.of(id); seen.refused && g.cfg.Clock.Now()-seen.at < sightCounts {
		return &wire.ProbeReply{Refused: true}
	}
	var run state.Run
	g.rep.read(func(m *state.Machine) { run, _ = m.Run(id) })
	if run.Open == nil || g.cfg.NoRefused || !run.Open.GetOwnInterface() {
		return &wire.ProbeReply{}
	}
	v := g.probe(ctx, run)
	g.seen.saw(id, v, g.cfg.Clock.Now())
	return &wire.ProbeReply{Refused: v.Refused, Alive: v.Alive}
}

// leaderBroke follows the end without a word of the session with a leader: when the leader's host proves its death, the
// voters stand for election one after the other, at once instead of after Raft's time-out.
func (g *Group) leaderBroke(ctx context.Context, leader string) {
	run, ok := g.rep.open(leader)
	if !ok || leader == g.cfg.Node || g.cfg.NoRefused || !run.Open.GetOwnInterface() {
		return
	}
	done, first := g.seen.pursue(run.ID)
	if !first {
		return
	}
	defer done()
	verdict := g.probe(ctx, run)
	if ctx.Err() != nil {
		return
	}
	g.seen.saw(run.ID, verdict, g.cfg.Clock.Now())
	if !verdict.Refused {
		g.log.Debug("gms: leader's session broke, its death is not proven", "leader", leader, "why", verdict.Why)
		return
	}
	g.succeed(ctx, leader)
}

// succeed stands for election when this voter's turn has come and nobody else leads.
func (g *Group) succeed(ctx context.Context, leader string) {
	rank, votes := g.rank(leader)
	if !votes {
		return
	}
	for wait := time.Duration(rank) * standInStep; ; wait = 4 * standInStep {
		changed := g.leaderChanged()
		if wait > 0 && !g.stillHeadless(ctx, changed, leader, wait) {
			return
		}
		if hint := g.leaderHint(); hint != "" && hint != leader {
			return
		}
		g.log.Info("gms: standing for election, the leader is proven dead", "leader", leader, "rank", rank)
		if err := g.cons.ElectNow(ctx); err != nil {
			g.log.Warn("gms: could not stand for election", "error", err)
			return
		}
		if ctx.Err() != nil || wait == 4*standInStep {
			return // from here on Raft's own time-outs do
		}
	}
}

// stillHeadless waits; false when ctx ended or somebody else leads.
func (g *Group) stillHeadless(ctx context.Context, changed <-chan struct{}, dead string, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-changed:
			if hint := g.leaderHint(); hint != "" && hint != dead {
				return false
			}
			changed = g.leaderChanged()
		}
	}
}

// rank is this node's place among the voters that are not the dead leader, in the order of the configuration.
func (g *Group) rank(leader string) (rank int, votes bool) {
	for _, node := range g.voterNodes() {
		switch node {
		case leader:
		case g.cfg.Node:
			return rank, true
		default:
			if _, ok := g.rep.open(node); ok {
				rank++
			}
		}
	}
	return 0, false
}
