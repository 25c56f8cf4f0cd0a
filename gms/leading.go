package gms

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/consensus"
	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// leading is what the leader does beyond Raft, for one term: it acknowledges renewals, finds the dead, moves
// appointments that are not kept, ends poll locks, and looks after the voters. It begins when the leader's first entry
// of the term is applied, and grants every run a full TTL from then.
type leading struct {
	g      *Group
	ctx    context.Context // of the term; the reason of its end is its cause
	term   uint64
	former string // who led before
	began  time.Duration
	tick   time.Duration
	proof  leaderProof
	submit func(ctx context.Context, cmds []*wire.Command) ([]*wire.Result, uint64, error)
	listed func(serverID string) bool // in the Raft configuration

	mu       sync.Mutex
	det      *detect.Machine
	runs     map[state.RunID]state.Run // those that det knows
	reports  map[string]appliedReport
	renewed  map[state.RunID]uint64   // number of the last renewal of each
	heard    map[state.RunID]uint64   // number of the last report of each watchdog's run
	expiries map[expiry]time.Duration // since when
	looked   time.Duration            // when the expiries were looked at last

	asks    chan renewalAsk
	tending sync.Mutex // held while the configuration is changed
	pair    pairWarning
	says    *sayings
	audits  auditor
	acts    sync.WaitGroup
	over    bool // no act is begun any more
}

// appliedReport is what a run said of its applied index with its last two renewals.
type appliedReport struct {
	run          state.RunID
	last, before uint64
	noting       bool // the run has ended, and last is being put on record
}

// renewalAsk is a renewal that waits for its acknowledgement.
type renewalAsk struct {
	renewal *wire.Renewal
	at      time.Duration // of its receipt
	answer  func(*wire.RenewReply)
}

// leaderProof is what consensus knows of this node's leadership.
type leaderProof interface {
	// Verify proves that this node led at some time after the call began.
	Verify(ctx context.Context) error
	// Term is the highest term seen.
	Term() uint64
	// IsLeader says whether this node believes that it leads.
	IsLeader() bool
}

func newLeading(ctx context.Context, g *Group, term uint64) *leading {
	now := g.cfg.Clock.Now()
	tick := min(max(g.cfg.Timing.TTL/20, 20*time.Millisecond), 250*time.Millisecond)
	return &leading{
		g: g, ctx: ctx, term: term, tick: tick, proof: g.cons, submit: g.batch.submit, listed: g.cons.Lists,
		det:     detect.New(detect.Settings{TTL: g.cfg.Timing.TTL, Tick: tick, NoRefused: g.cfg.NoRefused}, now),
		runs:    make(map[state.RunID]state.Run),
		reports: make(map[string]appliedReport), renewed: make(map[state.RunID]uint64), heard: make(map[state.RunID]uint64), began: now, expiries: make(map[expiry]time.Duration),
		asks: make(chan renewalAsk, 256), says: newSayings(), audits: g.newAuditor(),
	}
}

// run owns the term until ctx ends.
func (l *leading) run() {
	defer l.acts.Wait()
	defer l.end()
	l.acts.Go(l.acknowledge)
	l.acts.Go(func() { l.says.run(l.ctx, func(c *wire.Command) error { return l.commit(c) }) })
	ticker := time.NewTicker(l.tick)
	defer ticker.Stop()
	for {
		changed := l.follow()
		select {
		case <-l.ctx.Done():
			return
		case <-changed:
		case <-ticker.C:
			l.step(detect.Event{Kind: detect.Tick})
			l.expire()
			l.audit()
			l.later()
			l.tendVoters()
		}
	}
}

// end keeps handlers that still hold this term from beginning acts that nobody would wait for.
func (l *leading) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// follow tells the evidence machine of runs that were opened and closed.
func (l *leading) follow() <-chan struct{} {
	var opened []state.Run
	open := make(map[state.RunID]bool)
	changed := l.g.rep.watch(func(m *state.Machine) {
		for _, r := range m.Runs() {
			if r.IsOpen() {
				open[r.ID] = true
				opened = append(opened, r)
			}
		}
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.g.cfg.Clock.Now()
	for _, r := range opened {
		if _, known := l.runs[r.ID]; !known {
			l.runs[r.ID] = r
			l.carryOut(l.det.Step(now, l.openedEvent(r)))
			if l.g.peers.dead(r.ID) {
				l.carryOut(l.det.Step(now, detect.Event{Kind: detect.GossipDead, Run: detect.RunID(r.ID)}))
			}
		}
	}
	for id, r := range l.runs {
		if !open[id] {
			delete(l.runs, id)
			delete(l.renewed, id)
			l.carryOut(l.det.Step(now, detect.Event{Kind: detect.Closed, Run: detect.RunID(id)}))
			l.notePosition(r)
		}
	}
	return changed
}

// step feeds one event and carries out what follows.
func (l *leading) step(e detect.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.carryOut(l.det.Step(l.g.cfg.Clock.Now(), e))
}

// carryOut starts what the evidence machine proposes; each action has a goroutine that ends with the term, but for what
// is said of suspicions, which keeps its order. l.mu is held.
func (l *leading) carryOut(ps []detect.Proposal) {
	for _, p := range ps {
		if l.over || l.ctx.Err() != nil {
			return
		}
		if p.Act == detect.Suspect || p.Act == detect.Unsuspect {
			l.say(p)
			continue
		}
		l.acts.Go(func() { l.do(p) })
	}
}

func (l *leading) say(p detect.Proposal) {
	run := l.runs[state.RunID(p.Run)]
	log := l.g.log.With("node", run.Node(), "run", run.ID.String())
	withdrawn := p.Act == detect.Unsuspect
	if withdrawn {
		log.Info("gms: no longer suspected")
	} else {
		log.Warn("gms: suspected", "why", p.Why)
	}
	l.says.add(&wire.Command{Op: &wire.Command_Suspect{Suspect: &wire.Suspect{Run: run.ID.Bytes(), Withdrawn: withdrawn, Why: p.Why}}})
}

func (l *leading) do(p detect.Proposal) {
	id := state.RunID(p.Run)
	var run state.Run
	l.g.rep.read(func(m *state.Machine) { run, _ = m.Run(id) })
	if run.Open == nil {
		return
	}
	log := l.g.log.With("node", run.Node(), "run", id.String())
	switch p.Act {
	case detect.Probe:
		v := l.g.probe(l.ctx, run)
		log.Debug("gms: probed", "refused", v.Refused, "why", v.Why, "rounds", v.Rounds, "took", v.Took)
		l.step(detect.Event{Kind: detect.Probed, Run: p.Run, Yes: v.Refused})
	case detect.Ping, detect.Glance:
		l.step(detect.Event{Kind: detect.Pinged, Run: p.Run, Yes: l.g.ping(l.ctx, run)})
	case detect.PingDead:
		l.step(detect.Event{Kind: detect.Outlived, Run: p.Run, Yes: l.g.ping(l.ctx, run)})
	case detect.AskVoters:
		l.step(detect.Event{Kind: detect.VotersAsked, Run: p.Run, Yes: l.g.askVoters(l.ctx, run)})
	case detect.Close:
		l.close(run, p)
	}
}

// close proposes the closing of a run. Only a closing that cannot take effect any more lets its renewals go on
// (PROTOCOL.md 4): one of unknown outcome does not, and a new term's leader begins anew.
func (l *leading) close(run state.Run, p detect.Proposal) {
	evidence := map[detect.Evidence]wire.Evidence{
		detect.Refused: wire.Evidence_EVIDENCE_REFUSED, detect.Lapsed: wire.Evidence_EVIDENCE_LAPSED, detect.Buried: wire.Evidence_EVIDENCE_OBITUARY,
	}[p.Evidence]
	l.g.log.Warn("gms: closing run", "node", run.Node(), "run", run.ID.String(), "evidence", string(evidences[evidence]), "why", p.Why)
	cmd := &wire.Command{Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{Node: run.Node(), Run: run.ID.Bytes(), Evidence: evidence, Detail: p.Why}}}
	l.g.putInOrder([]*wire.Command{cmd})
	cmds := []*wire.Command{cmd}
	if note := l.lastPosition(run); note != nil { // in the same entry: those who are appointed now wait for the next one
		cmds = append(cmds, note)
	}
	for err := l.commit(cmds...); err != nil; err = l.commit(cmds...) {
		if errors.Is(err, errUnreached) || errors.Is(err, consensus.ErrNotLeader) {
			l.positionNoted(run, false)
			l.step(detect.Event{Kind: detect.CloseFailed, Run: p.Run})
			return
		}
		if !pause(l.ctx, nil, 50*time.Millisecond) {
			return
		}
	}
	l.positionNoted(run, true)
}

// notePosition puts the position of a run on record that was closed by others, or whose closing did not. l.mu is held.
func (l *leading) notePosition(run state.Run) {
	if l.over || l.ctx.Err() != nil {
		return
	}
	if note := l.takePosition(run); note != nil {
		l.acts.Go(func() { l.positionNoted(run, l.commit(note) == nil) })
	}
}

func (l *leading) lastPosition(run state.Run) *wire.Command {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takePosition(run)
}

// takePosition makes the record of how far the home of a run that ends is known to have been, once: it may come back from a
// copy. nil when nothing is known. Until positionNoted the report itself is the record. l.mu is held.
func (l *leading) takePosition(run state.Run) *wire.Command {
	r := l.reports[run.Node()]
	if r.run != run.ID || r.last == 0 || r.noting {
		return nil
	}
	r.noting = true
	l.reports[run.Node()] = r
	note := &wire.NotePositions{Positions: []*wire.HomePosition{{Node: run.Node(), Home: run.Open.GetHome(), Index: r.last}}}
	return &wire.Command{Op: &wire.Command_NotePositions{NotePositions: note}}
}

// positionNoted tells that what takePosition made is in the log, or that it is not.
func (l *leading) positionNoted(run state.Run, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.reports[run.Node()]
	switch {
	case r.run != run.ID:
	case is:
		delete(l.reports, run.Node())
	default:
		r.noting = false
		l.reports[run.Node()] = r
	}
}

// commit proposes commands of the leader. What an earlier term of this node found out counts for nothing in a later one.
func (l *leading) commit(cmds ...*wire.Command) error {
	if l.proof.Term() != l.term {
		return errUnreached
	}
	for _, c := range cmds {
		c.Term = l.term
	}
	_, _, err := l.submit(l.ctx, cmds)
	if err != nil && l.ctx.Err() == nil {
		l.g.log.Debug("gms: leader's command did not commit", "error", err)
	}
	return err
}
