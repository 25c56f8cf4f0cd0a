package gms

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/gms/internal/gossip"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Health is what operators want to know of this node's part in the group. All of it is as this node knows it.
type Health struct {
	Leads bool   // this node leads the group
	Term  uint64 // Raft's term
	// Raft's indexes: end of the log, last one known to be committed, last one applied here, of the last snapshot, and the
	// oldest entry still in the log: a follower that is further behind needs a snapshot.
	Last, Commit, Applied, Snapshot, First uint64
	Oldest                                 time.Time        // when that oldest entry was logged; zero for an empty log
	Restore                                time.Duration    // that the last snapshot took to be taken in; 0: none since the start
	Contact                                time.Time        // when a follower heard of the leader last; zero for the leader
	Followers                              []FollowerHealth // what the leader knows of each; empty elsewhere

	GossipWaiting int // changes of gossip that nobody has taken yet
	GossipScore   int // 0: this node answers and is answered in time; more: it is slow itself
	// StreamsOnly are nodes that were reached by stream within five minutes while their datagrams stayed unanswered.
	StreamsOnly []string

	// Unrecovered is when the run was closed whose recovery is open for longest; zero for none, or when no leader said.
	Unrecovered time.Time

	// Alarms are sentences about what a person should look at, each beginning with what it is about; empty when all is well.
	Alarms []string

	idleTooLong time.Duration // for a follower to apply nothing: what it has applied comes with its renewals
}

// FollowerHealth is what the leader knows of one follower.
type FollowerHealth struct {
	Node    string    // whose it is
	Voter   bool      // it votes
	Match   uint64    // last index that it is known to hold
	Applied uint64    // last index that its run said it has applied; 0: it has not renewed in this term
	Contact time.Time // of its last favourable answer; zero: none in this term
	// Standing is for how long it has been behind without moving, while its contact is fresh; 0 for a healthy one. Idle is the
	// same for what it applies, which it tells with each renewal.
	Standing, Idle time.Duration
}

// When something becomes an alarm.
const (
	healthEvery     = 5 * time.Second
	freshContact    = 2 * time.Second
	standingTooLong = 10 * time.Second
	gossipTooFull   = 256
	gossipTooSlow   = 4
	unrecoveredFor  = 5 * time.Minute
)

// Health gives the present state. It does not block.
func (g *Group) Health() Health {
	g.mu.Lock()
	gos, stand := g.gos, g.standstill
	g.mu.Unlock()
	h := Health{Leads: g.leadingNow() != nil}
	if gos != nil {
		h.addGossip(gos.Health())
	}
	if g.consensusRuns() {
		g.addConsensus(&h, stand)
	}
	g.rep.read(func(m *state.Machine) {
		h.Unrecovered = unrecovered(m)
		h.idleTooLong = standingTooLong + g.leases().longestOf(m) // whoever renews most seldom
	})
	h.Alarms = h.alarms(time.Now())
	return h
}

func (h *Health) addGossip(s gossip.Health) {
	h.GossipWaiting, h.GossipScore = s.Waiting, s.Score
	for name := range s.Blocked {
		node, _, _ := strings.Cut(name, "/")
		h.StreamsOnly = append(h.StreamsOnly, node)
	}
	slices.Sort(h.StreamsOnly)
	h.StreamsOnly = slices.Compact(h.StreamsOnly)
}

func (g *Group) addConsensus(h *Health, stand standstill) {
	s := g.cons.Stats()
	h.Term, h.Last, h.Commit, h.Applied, h.Snapshot = s.Term, s.LastIndex, s.Commit, s.Applied, s.Snapshot
	h.First, h.Oldest, h.Restore, h.Contact = s.First, s.Oldest, s.Restore, s.LastContact
	for _, sv := range g.cons.Configuration().Servers {
		p, ok := s.Peers[sv.ID]
		if !ok {
			continue
		}
		h.Followers = append(h.Followers, FollowerHealth{
			Node: sv.Address, Voter: sv.Voter, Match: p.Match, Contact: p.LastContact,
			Standing: stand.of(sv.Address, time.Now()), Idle: stand.idle(sv.Address, time.Now()),
		})
	}
	if l := g.leadingNow(); l != nil {
		for i, f := range h.Followers {
			h.Followers[i].Applied = l.appliedBy(f.Node)
		}
	}
}

// unrecovered is the time of the oldest closing whose recovery is open.
func unrecovered(m *state.Machine) (oldest time.Time) {
	for _, r := range m.Recoveries() {
		for _, s := range r.GetSteps() {
			at := time.UnixMilli(s.GetTime())
			if s.GetKind() == wire.RecoveryStep_KIND_CLOSED && s.GetTime() > 0 && (oldest.IsZero() || at.Before(oldest)) {
				oldest = at
			}
		}
	}
	return oldest
}

// alarms judges; the rest of h is filled in.
func (h *Health) alarms(now time.Time) (list []string) {
	for _, f := range h.Followers {
		if f.Standing > standingTooLong {
			list = append(list, fmt.Sprintf("follower %s: it holds index %d of %d and has not moved for %v though it answers; restart the leader's process, then its own",
				f.Node, f.Match, h.Last, f.Standing.Round(time.Second)))
		}
		if f.Idle > h.idleTooLong {
			list = append(list, fmt.Sprintf("follower %s: it has applied up to index %d of %d and has applied nothing for %v; look at its log and restart its process",
				f.Node, f.Applied, h.Applied, f.Idle.Round(time.Second)))
		}
	}
	if h.GossipWaiting > gossipTooFull {
		list = append(list, fmt.Sprintf("gossip queue: %d changes wait, this node does not keep up", h.GossipWaiting))
	}
	if h.GossipScore >= gossipTooSlow {
		list = append(list, fmt.Sprintf("gossip score: %d, this node is slow to answer and to hear: look at its load", h.GossipScore))
	}
	for _, n := range h.StreamsOnly {
		list = append(list, "datagrams: those to "+n+" stay unanswered while streams get through; let UDP pass the firewall")
	}
	if !h.Unrecovered.IsZero() && now.Sub(h.Unrecovered) > unrecoveredFor {
		list = append(list, fmt.Sprintf("recovery: one is open since %s; see the recoveries", h.Unrecovered.UTC().Format(time.RFC3339)))
	}
	return list
}

// standstill knows since when followers are behind without moving. It is a value: each look makes the next one.
type standstill struct{ holding, applying map[string]stood }

type stood struct {
	at    uint64
	since time.Time
}

// look takes the leader's present knowledge: its last index, and the last one that it has applied. Who is not heard of is
// dead, not standing; who has all needs not move.
func (s standstill) look(now time.Time, last, applied uint64, followers []FollowerHealth) standstill {
	next := standstill{map[string]stood{}, map[string]stood{}}
	for _, f := range followers {
		if now.Sub(f.Contact) > freshContact {
			continue
		}
		if f.Match < last {
			next.holding[f.Node] = stoodAt(s.holding, f.Node, f.Match, now)
		}
		if f.Applied > 0 && f.Applied < applied {
			next.applying[f.Node] = stoodAt(s.applying, f.Node, f.Applied, now)
		}
	}
	return next
}

func stoodAt(was map[string]stood, node string, at uint64, now time.Time) stood {
	if x, known := was[node]; known && x.at == at {
		return x
	}
	return stood{at, now}
}

func (s standstill) of(node string, now time.Time) time.Duration {
	return lastedOf(s.holding, node, now)
}
func (s standstill) idle(node string, now time.Time) time.Duration {
	return lastedOf(s.applying, node, now)
}

func lastedOf(list map[string]stood, node string, now time.Time) time.Duration {
	if x, ok := list[node]; ok {
		return now.Sub(x.since)
	}
	return 0
}

// watchHealth logs alarms when they come and when they have gone, until ctx ends.
func (g *Group) watchHealth(ctx context.Context) {
	told := map[string]bool{}
	for pause(ctx, nil, healthEvery) {
		h := g.Health()
		g.mu.Lock()
		g.standstill = g.standstill.look(time.Now(), h.Last, h.Applied, h.Followers)
		g.mu.Unlock()
		now := map[string]bool{}
		for _, a := range h.Alarms {
			about, what, _ := strings.Cut(a, ": ")
			if now[about] = true; !told[about] {
				g.log.Warn("gms: alarm", "about", about, "what", what)
			}
		}
		for about := range told {
			if !now[about] {
				g.log.Info("gms: alarm is over", "about", about)
			}
		}
		told = now
	}
}
