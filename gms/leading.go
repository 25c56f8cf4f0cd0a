package gms

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// lockLimit is how long a poll lock may be held (PROTOCOL.md 21).
const lockLimit = 30 * time.Second

// leading is what the leader does beyond Raft, for one term: it acknowledges renewals, finds the dead, moves
// appointments that are not kept, ends poll locks, and looks after the voters. It begins when the leader's first entry
// of the term is applied, and grants every run a full TTL from then.
type leading struct {
	g    *Group
	ctx  context.Context // of the term; the reason of its end is its cause
	tick time.Duration

	mu       sync.Mutex
	det      *detect.Machine
	runs     map[state.RunID]bool // those that det knows
	reports  map[string]appliedReport
	expiries map[expiry]time.Duration // since when

	asks    chan renewalAsk
	tending sync.Mutex // held while the configuration is changed
	acts    sync.WaitGroup
}

// appliedReport is what a node said of its applied index with its last two renewals.
type appliedReport struct{ last, before uint64 }

// expiry is something that ends when nobody renews it: an appointment or a poll lock.
type expiry struct {
	fence fenceRef
	lock  string
	token uint64
}

// renewalAsk is a renewal that waits for its acknowledgement.
type renewalAsk struct {
	renewal *wire.Renewal
	at      time.Duration // of its receipt
	answer  func(*wire.RenewReply)
}

func newLeading(ctx context.Context, g *Group) *leading {
	now := g.cfg.Clock.Now()
	tick := min(max(g.cfg.Timing.TTL/20, 20*time.Millisecond), 250*time.Millisecond)
	return &leading{
		g: g, ctx: ctx, tick: tick,
		det:     detect.New(detect.Settings{TTL: g.cfg.Timing.TTL, Tick: tick, NoRefused: g.cfg.NoRefused}, now),
		runs:    make(map[state.RunID]bool),
		reports: make(map[string]appliedReport), expiries: make(map[expiry]time.Duration),
		asks: make(chan renewalAsk, 256),
	}
}

// run owns the term until ctx ends.
func (l *leading) run() {
	defer l.acts.Wait()
	l.acts.Go(l.acknowledge)
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
			l.tendVoters()
		}
	}
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
		if !l.runs[r.ID] {
			l.runs[r.ID] = true
			l.carryOut(l.det.Step(now, l.g.openedEvent(r)))
			if l.g.peers.dead(r.ID) {
				l.carryOut(l.det.Step(now, detect.Event{Kind: detect.GossipDead, Run: detect.RunID(r.ID)}))
			}
		}
	}
	for id := range l.runs {
		if !open[id] {
			delete(l.runs, id)
			l.carryOut(l.det.Step(now, detect.Event{Kind: detect.Closed, Run: detect.RunID(id)}))
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

// carryOut starts what the evidence machine proposes; each action has a goroutine that ends with the term.
func (l *leading) carryOut(ps []detect.Proposal) {
	for _, p := range ps {
		if l.ctx.Err() != nil {
			return
		}
		l.acts.Go(func() { l.do(p) })
	}
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
	case detect.Ping:
		l.step(detect.Event{Kind: detect.Pinged, Run: p.Run, Yes: l.g.ping(l.ctx, run)})
	case detect.AskVoters:
		l.step(detect.Event{Kind: detect.VotersAsked, Run: p.Run, Yes: l.g.askVoters(l.ctx, run)})
	case detect.Suspect:
		log.Warn("gms: suspected", "why", p.Why)
		_ = l.commit(&wire.Command{Op: &wire.Command_Suspect{Suspect: &wire.Suspect{Run: id[:], Why: p.Why}}})
	case detect.Unsuspect:
		log.Info("gms: no longer suspected")
		_ = l.commit(&wire.Command{Op: &wire.Command_Suspect{Suspect: &wire.Suspect{Run: id[:], Withdrawn: true}}})
	case detect.Close:
		l.close(run, p)
	}
}

// close proposes the closing of a run, and with it what is known of its home's log.
func (l *leading) close(run state.Run, p detect.Proposal) {
	evidence := wire.Evidence_EVIDENCE_LAPSED
	if p.Evidence == detect.Refused {
		evidence = wire.Evidence_EVIDENCE_REFUSED
	}
	l.g.log.Warn("gms: closing run", "node", run.Node(), "run", run.ID.String(), "evidence", evidence.String(), "why", p.Why)
	err := l.commit(
		&wire.Command{Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{Node: run.Node(), Run: run.ID.Bytes(), Evidence: evidence, Detail: p.Why}}},
		&wire.Command{Op: &wire.Command_NotePositions{NotePositions: &wire.NotePositions{Positions: l.positions(run)}}},
	)
	if err != nil {
		l.step(detect.Event{Kind: detect.CloseFailed, Run: p.Run})
	}
}

func (l *leading) positions(run state.Run) []*wire.HomePosition {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.reports[run.Node()]
	if r.last == 0 {
		return nil
	}
	return []*wire.HomePosition{{Node: run.Node(), Home: run.Open.GetHome(), Index: r.last}}
}

// commit proposes commands of the leader.
func (l *leading) commit(cmds ...*wire.Command) error {
	_, _, err := l.g.batch.submit(l.ctx, cmds)
	if err != nil && l.ctx.Err() == nil {
		l.g.log.Debug("gms: leader's command did not commit", "error", err)
	}
	return err
}

// renew takes a renewal; answer is called once it is decided, from a goroutine of the term.
func (l *leading) renew(r *wire.Renewal, answer func(*wire.RenewReply)) {
	ask := renewalAsk{renewal: r, at: l.g.cfg.Clock.Now(), answer: answer}
	select {
	case l.asks <- ask:
	case <-l.ctx.Done():
	}
}

// acknowledge answers renewals in batches, each only after a proof of leadership that began after its receipt
// (PROTOCOL.md 4).
func (l *leading) acknowledge() {
	for {
		var batch []renewalAsk
		select {
		case <-l.ctx.Done():
			return
		case a := <-l.asks:
			batch = append(batch, a)
		}
		for more := true; more; {
			select {
			case a := <-l.asks:
				batch = append(batch, a)
			default:
				more = false
			}
		}
		if err := l.g.cons.Verify(l.ctx); err != nil {
			l.g.log.Debug("gms: leadership not proved, renewals stay unanswered", "error", err)
			continue
		}
		for _, a := range batch {
			l.decide(a)
		}
	}
}

// decide acknowledges one renewal, unless its run is closed, or about to be.
func (l *leading) decide(a renewalAsk) {
	id, ok := state.RunIDOf(a.renewal.GetRun())
	reply := &wire.RenewReply{Seq: a.renewal.GetSeq(), Leader: l.g.cfg.Node}
	var run state.Run
	l.g.rep.read(func(m *state.Machine) { run, _ = m.Run(id) })
	if !ok || run.Open == nil || !run.IsOpen() {
		reply.RunClosed = true
		a.answer(reply)
		return
	}
	l.mu.Lock()
	if l.det.Closing(detect.RunID(id)) {
		l.mu.Unlock()
		return // its renewals wait for the outcome
	}
	l.carryOut(l.det.Step(a.at, detect.Event{Kind: detect.Renewed, Run: detect.RunID(id)}))
	was := l.reports[run.Node()]
	l.reports[run.Node()] = appliedReport{last: a.renewal.GetApplied(), before: was.last}
	reply.Fences = l.renewFences(id, a)
	l.mu.Unlock()
	reply.Acknowledged = true
	a.answer(reply)
}

// renewFences renews the fences that still stand; with l.mu held.
func (l *leading) renewFences(holder state.RunID, a renewalAsk) []*wire.FenceRenewal {
	var stand []*wire.FenceRenewal
	l.g.rep.read(func(m *state.Machine) {
		for _, f := range a.renewal.GetFences() {
			dead, _ := state.RunIDOf(f.GetRun())
			r, ok := m.Recovery(f.GetComponent(), dead)
			if ok && r.GetIndex() == f.GetIndex() && string(r.GetAppointee()) == string(holder[:]) {
				stand = append(stand, f)
				l.expiries[expiry{fence: fenceRef{f.GetComponent(), dead, f.GetIndex()}}] = a.at
			}
		}
	})
	return stand
}

// expire moves appointments that nobody keeps, and ends poll locks that are held too long.
func (l *leading) expire() {
	now := l.g.cfg.Clock.Now()
	held := make(map[expiry]bool)
	var cmds []*wire.Command
	l.mu.Lock()
	over := func(e expiry, limit time.Duration) bool {
		held[e] = true
		since, ok := l.expiries[e]
		if !ok {
			l.expiries[e] = now
			return false
		}
		if now-since <= limit {
			return false
		}
		l.expiries[e] = now // the command is not repeated at each tick
		return true
	}
	l.g.rep.read(func(m *state.Machine) {
		for _, r := range m.Recoveries() {
			if r.GetState() != wire.RecoveryState_RECOVERY_APPOINTED && r.GetState() != wire.RecoveryState_RECOVERY_RAISED {
				continue
			}
			dead, _ := state.RunIDOf(r.GetRun())
			if over(expiry{fence: fenceRef{r.GetComponent(), dead, r.GetIndex()}}, l.g.cfg.FenceTTL) {
				cmds = append(cmds, moveAppointment(r))
			}
		}
		for _, lock := range m.Locks() {
			if over(expiry{lock: lock.GetName(), token: lock.GetToken()}, lockLimit) {
				cmds = append(cmds, &wire.Command{Op: &wire.Command_ExpireLock{ExpireLock: &wire.ExpireLock{Name: lock.GetName(), Token: lock.GetToken()}}})
			}
		}
	})
	for e := range l.expiries {
		if !held[e] {
			delete(l.expiries, e)
		}
	}
	l.mu.Unlock()
	if len(cmds) > 0 {
		l.acts.Go(func() { _ = l.commit(cmds...) })
	}
}

func moveAppointment(r *wire.Recovery) *wire.Command {
	why := "the fence was not renewed in time"
	if r.GetState() == wire.RecoveryState_RECOVERY_APPOINTED {
		why = "the fence was not acquired in time"
	}
	return &wire.Command{Op: &wire.Command_MoveAppointment{MoveAppointment: &wire.MoveAppointment{
		Recovery: &wire.RecoveryRef{Component: r.GetComponent(), Run: r.GetRun(), Index: r.GetIndex()}, Why: why,
	}}}
}

// probe asks the kernel of the run's host whether the run's ports are gone.
func (g *Group) probe(ctx context.Context, run state.Run) rpc.Verdict {
	target := rpc.ProbeTarget{ClusterAddr: run.Open.GetClusterAddr(), GossipAddr: run.Open.GetGossipAddr(), Run: run.ID.Bytes()}
	return rpc.Refused(ctx, target, g.identity(), g.cfg.Network)
}

// ping asks a run directly whether it is there.
func (g *Group) ping(ctx context.Context, run state.Run) bool {
	ctx, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
	defer cancel()
	hello, err := g.dialer.Hello(ctx, run.Open.GetClusterAddr())
	return err == nil && string(hello.GetRun()) == string(run.ID.Bytes())
}

// askVoters counts who of the voters saw the refusal of a former leader; a majority of all must have, none may have
// heard of it since.
func (g *Group) askVoters(ctx context.Context, run state.Run) bool {
	voters := g.voterNodes()
	answers := make(chan *wire.ProbeReply, len(voters))
	ctx, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
	defer cancel()
	for _, node := range voters {
		if node == g.cfg.Node {
			answers <- g.seen.reply(run.ID)
			continue
		}
		g.wg.Go(func() { answers <- g.askVoter(ctx, node, run.ID) })
	}
	refused := 0
	for range voters {
		a := <-answers
		if a.GetAlive() {
			return false
		}
		if a.GetRefused() {
			refused++
		}
	}
	return refused > len(voters)/2
}

func (g *Group) askVoter(ctx context.Context, node string, run state.RunID) *wire.ProbeReply {
	c, err := g.client(node)
	if err != nil {
		return &wire.ProbeReply{}
	}
	reply, err := c.Probe(ctx, &wire.ProbeRequest{Run: run.Bytes()})
	if err != nil {
		g.log.Debug("gms: voter could not be asked", "voter", node, "error", fmt.Sprint(err))
		return &wire.ProbeReply{}
	}
	return reply
}
