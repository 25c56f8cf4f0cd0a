package gms

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms/internal/consensus"
	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

var errTermEnded = errors.New("the leader's term has ended")

// leadLoop follows Raft's leadership: while this node leads, it does the leader's duties, one term at a time.
func (g *Group) leadLoop(ctx context.Context) {
	var end func()
	defer func() {
		if end != nil {
			end()
		}
	}()
	var term uint64
	former := "" // who led last, other than this node
	for {
		now, changed := g.cons.Watch()
		if now.Address != "" && now.Address != g.cfg.Node {
			former = now.Address
		}
		if end != nil && (!now.Leads || now.Changes != term) {
			end()
			end = nil
		}
		if now.Leads && end == nil {
			term = now.Changes
			end = g.beginTerm(ctx, former)
			former = ""
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// beginTerm starts the duties and returns what ends them and waits.
func (g *Group) beginTerm(ctx context.Context, former string) (end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	finished := make(chan struct{})
	g.wg.Go(func() {
		defer close(finished)
		g.lead(ctx, former)
	})
	return func() {
		cancel(errTermEnded)
		<-finished
	}
}

// lead is one term. Nothing is acknowledged before the term's first entry is applied (PROTOCOL.md 4).
func (g *Group) lead(ctx context.Context, former string) {
	var term uint64
	for backoff := 10 * time.Millisecond; ; backoff = min(2*backoff, time.Second) {
		var err error
		if term, err = g.establish(ctx); err == nil {
			err = g.form(ctx)
		}
		if err == nil {
			err = g.sayLeading(ctx, term)
		}
		if err == nil {
			break
		}
		g.log.Debug("gms: term not established yet", "error", err)
		if !pause(ctx, nil, backoff) {
			return
		}
	}
	l := newLeading(ctx, g, term)
	l.former = former
	l.follow()
	g.setLeading(l)
	defer g.setLeading(nil)
	g.log.Info("gms: leading", "term", term)
	g.reportFormer(l)
	l.run()
}

// establish applies the term's first entry and returns the term.
func (g *Group) establish(ctx context.Context) (uint64, error) {
	term := g.cons.Term()
	if err := g.cons.Barrier(ctx); err != nil {
		return 0, err
	}
	if g.cons.Term() != term {
		return 0, errTermEnded
	}
	return term, nil
}

// sayLeading has the log know the term, before anything is acknowledged in it: from there on what an earlier term found out
// changes nothing, also if it is proposed late (PROTOCOL.md 6).
func (g *Group) sayLeading(ctx context.Context, term uint64) error {
	results, _, err := g.batch.submit(ctx, []*wire.Command{{Op: &wire.Command_Lead{Lead: &wire.Lead{Node: g.cfg.Node, Term: term}}}})
	if err != nil {
		return err
	}
	return g.errorOf("lead the group", results[0])
}

// reportFormer lets the evidence machine ask the voters about runs whose refusal was seen here.
func (g *Group) reportFormer(l *leading) {
	for id := range l.known() {
		if seen, _ := g.seen.of(id); seen.refused {
			l.step(detect.Event{Kind: detect.Reported, Run: detect.RunID(id)})
		}
	}
}

// openedEvent introduces a run. One that led before is closed as refused by what the voters saw.
func (l *leading) openedEvent(r state.Run) detect.Event {
	seen, _ := l.g.seen.of(r.ID)
	return detect.Event{
		TTL:  l.g.leases().of(r).ttl,
		Kind: detect.Opened, Run: detect.RunID(r.ID), OwnInterface: r.Open.GetOwnInterface(), Suspected: r.Suspected,
		FormerLeader: seen.refused || r.Node() == l.former,
	}
}

// form gives a group that is not formed its cluster id and base: at least the present time in microseconds, so that a
// later group's numbers are above an earlier one's (DESIGN.md, "Numbers that never go back").
func (g *Group) form(ctx context.Context) error {
	formed := false
	g.rep.read(func(m *state.Machine) { formed = m.Formed() })
	if formed {
		return nil
	}
	base, err := g.floor(ctx)
	if err != nil {
		g.log.Warn("gms: group not formed yet: the highest number given out so far is not known", "error", err)
		return err
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	selector := wire.Selector_SELECTOR_RENDEZVOUS
	if g.cfg.Selector == signals.Successor {
		selector = wire.Selector_SELECTOR_SUCCESSOR
	}
	results, _, err := g.batch.submit(ctx, []*wire.Command{{Op: &wire.Command_FormGroup{FormGroup: &wire.FormGroup{
		ClusterId: id, Base: base + 1, Protocol: g.foundingProtocol(), Settings: &wire.Settings{Selector: selector, MaxAttempts: uint32(g.cfg.MaxAttempts)},
	}}}})
	if err != nil {
		return err
	}
	return g.errorOf("form the group", results[0])
}

func (g *Group) setLeading(l *leading) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leading = l
	g.announce()
}

func (g *Group) leadingNow() *leading {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leading
}

// watchLeader wakes those who wait for a leader whenever the own Raft knows of another.
func (g *Group) watchLeader(ctx context.Context) {
	for {
		_, changed := g.cons.Watch()
		g.guide.announce()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (g *Group) applied() uint64 { return g.cons.Applied() }

// voterNodes lists the voters of the configuration, in its order, as far as it is known here.
func (g *Group) voterNodes() []string {
	if !g.follows() {
		voters, _ := g.guide.servers()
		return voters
	}
	var list []string
	for _, s := range g.cons.Configuration().Servers {
		if s.Voter {
			list = append(list, s.Address)
		}
	}
	return list
}

// serverNodes lists the nodes of the configuration, as far as it is known here.
func (g *Group) serverNodes() []string { return g.feedStatus().GetFeeders() }

// gossipSays tells the leader's evidence machine what gossip holds.
func (g *Group) gossipSays(id state.RunID, alive bool) {
	l := g.leadingNow()
	if l == nil {
		return
	}
	kind := detect.GossipDead
	if alive {
		kind = detect.GossipAlive
	}
	l.step(detect.Event{Kind: kind, Run: detect.RunID(id)})
}

// tendVoters makes the next change of the configuration, if one is due and none is under way. Newcomers that only follow
// come in one after the other without a pause: fifty that start together must not wait for fifty ticks.
func (l *leading) tendVoters() {
	if !l.tending.TryLock() {
		return
	}
	l.acts.Go(func() {
		defer l.tending.Unlock()
		l.pair.look(len(l.g.cons.Configuration().Servers), l.g.cfg.Clock.Now(), l.g.log)
		overdue := l.overdue()
		for l.tendOnce(overdue) == addNonvoter {
		}
		l.reap(overdue, l.servers(nil))
	})
}

// tendOnce makes the change that is due and says which it was; 0 for none, or when it did not work.
func (l *leading) tendOnce(overdue map[string]bool) serverAct {
	cfg := l.g.cons.Configuration()
	ch, ok := planVoters(l.servers(overdue), l.standingNodes(), l.g.cfg.Voters, l.g.cfg.Followers)
	if !ok {
		return 0
	}
	if err := l.change(ch, cfg.Index); err != nil {
		if l.ctx.Err() == nil {
			l.g.log.Warn("gms: change of voters did not work", "node", ch.node, "error", err)
		}
		return 0
	}
	return ch.act
}

// servers are those of the configuration, with those marked that are to go: homes that were burnt, and nodes that are
// overdue.
func (l *leading) servers(overdue map[string]bool) []server {
	var list []server
	for _, s := range l.g.cons.Configuration().Servers {
		list = append(list, parseServer(s.ID, s.Voter))
	}
	l.g.rep.read(func(m *state.Machine) {
		for i, s := range list {
			home, err := hex.DecodeString(s.home)
			list[i].goes = overdue[s.node] || err == nil && m.IsBurnt(home)
		}
	})
	return list
}

func (l *leading) change(ch serverChange, prev uint64) (err error) {
	ctx, cancel := context.WithTimeout(l.ctx, 5*time.Second)
	defer cancel()
	switch ch.act {
	case addNonvoter:
		l.g.log.Info("gms: node follows the log", "node", ch.node)
		_, err = l.g.cons.AddNonvoter(ctx, ch.id(), ch.node, prev)
	case promote:
		l.g.log.Info("gms: node votes", "node", ch.node)
		_, err = l.g.cons.Promote(ctx, ch.id(), ch.node, prev)
	case demote:
		l.g.log.Info("gms: node votes no more", "node", ch.node)
		_, err = l.g.cons.Demote(ctx, ch.id(), prev)
	case remove:
		l.g.log.Info("gms: home has no part in the log any more", "node", ch.node, "home", ch.home)
		_, err = l.g.cons.Remove(ctx, ch.id(), prev)
	}
	if errors.Is(err, consensus.ErrStale) {
		return nil // somebody changed it meanwhile; the next tick looks again
	}
	return err
}

// caughtUpBy is how many entries a follower may lack to be promoted.
const caughtUpBy = 256

// standingNodes is the voters' rule's view of the open runs.
func (l *leading) standingNodes() []standingNode {
	applied := l.g.cons.Applied()
	var list []standingNode
	l.g.rep.read(func(m *state.Machine) {
		for _, r := range m.Runs() {
			if r.IsOpen() {
				role := r.Open.GetRole()
				list = append(list, standingNode{
					node: r.Node(), home: hexID(r.Open.GetHome()), votes: role == wire.Role_ROLE_CORE || role == wire.Role_ROLE_WITNESS,
					declines: len(r.Open.GetDetails()[DetailVoteless]) > 0,
					leads:    r.Node() == l.g.cfg.Node,
				})
			}
		}
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, n := range list {
		r, ok := l.reports[n.node]
		list[i].caughtUp = ok && r.before > 0 && r.last+caughtUpBy >= applied && r.before+2*caughtUpBy >= applied
	}
	slices.SortStableFunc(list, func(a, b standingNode) int { return slices.Compare([]byte(a.node), []byte(b.node)) })
	return list
}

// known lists the runs that the evidence machine knows.
func (l *leading) known() map[state.RunID]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make(map[state.RunID]bool, len(l.runs))
	for id := range l.runs {
		list[id] = true
	}
	return list
}

// appliedBy is the applied index that a node's run reported last to this leader.
func (l *leading) appliedBy(node string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reports[node].last
}
