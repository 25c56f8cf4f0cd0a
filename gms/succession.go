package gms

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// standInStep is the pause between two voters' tries to follow a dead leader; far longer than an election takes.
const standInStep = 150 * time.Millisecond

// sightings is what this member saw itself of runs whose session it lost: the answer to a Probe of a new leader.
type sightings struct {
	mu      sync.Mutex
	refused map[state.RunID]bool
}

// saw notes a refusal, or that the run was heard of after all.
func (s *sightings) saw(run state.RunID, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = make(map[state.RunID]bool)
	}
	if len(s.refused) > 1000 { // runs are few; this only bounds a history
		clear(s.refused)
	}
	s.refused[run] = refused
}

func (s *sightings) reply(run state.RunID) *wire.ProbeReply {
	s.mu.Lock()
	defer s.mu.Unlock()
	refused, known := s.refused[run]
	return &wire.ProbeReply{Refused: refused, Alive: known && !refused}
}

// leaderBroke follows the end without a word of the session with a leader: when the leader's host proves its death, the
// voters stand for election one after the other, at once instead of after Raft's time-out.
func (g *Group) leaderBroke(ctx context.Context, leader string) {
	run, ok := g.rep.open(leader)
	if !ok || leader == g.cfg.Node || g.cfg.NoRefused || !run.Open.GetOwnInterface() {
		return
	}
	verdict := g.probe(ctx, run)
	g.seen.saw(run.ID, verdict.Refused)
	if !verdict.Refused {
		g.log.Debug("gms: leader's session broke, its death is not proven", "leader", leader, "why", verdict.Why)
		return
	}
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
