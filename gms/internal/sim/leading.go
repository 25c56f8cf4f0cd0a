package sim

import (
	"time"

	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

const (
	tick       = ttl / 20
	answerTime = 250 * time.Millisecond // of pings and probes
	lockLimit  = 30 * time.Second
)

// leading is what a leader does beyond Raft, for one term, from the moment when its first entry is applied.
type leading struct {
	n        *node
	term     uint64
	over     bool
	det      *detect.Machine
	runs     map[state.RunID]state.Run
	renewed  map[state.RunID]uint64
	closings map[state.RunID]int
	expiries map[expiry]time.Duration
	looked   time.Duration
	since    time.Duration // of the world
	gossip   map[string]bool
	former   string          // node that led before
	sayings  []*wire.Command // of suspicions, in their order
	saying   bool
}

// expiry is something that ends when nobody renews it.
type expiry struct {
	component string
	dead      state.RunID
	index     uint64
	raised    bool
	lock      string
	token     uint64
}

func newLeading(n *node, former string) *leading {
	l := &leading{
		n: n, term: n.raft.term, det: detect.New(detect.Settings{TTL: ttl, Tick: tick}, n.clock()),
		runs: map[state.RunID]state.Run{}, renewed: map[state.RunID]uint64{}, closings: map[state.RunID]int{},
		expiries: map[expiry]time.Duration{}, former: former, since: n.w.now, gossip: map[string]bool{},
	}
	n.lead = l
	l.follow()
	l.tick()
	return l
}

func (l *leading) end() { l.over = true }

// alive runs something later in this term.
func (l *leading) after(d time.Duration, do func()) {
	l.n.after(d, func() {
		if !l.over {
			do()
		}
	})
}

func (l *leading) tick() {
	l.listen()
	l.step(detect.Event{Kind: detect.Tick})
	if !l.over {
		l.expire()
	}
	l.after(tick, l.tick)
}

// follow tells the evidence machine of runs that were opened and closed.
func (l *leading) follow() {
	open := map[state.RunID]bool{}
	for _, r := range l.n.machine.Runs() {
		if !r.IsOpen() {
			continue
		}
		open[r.ID] = true
		if _, known := l.runs[r.ID]; known {
			continue
		}
		l.runs[r.ID] = r
		l.step(detect.Event{Kind: detect.Opened, Run: detect.RunID(r.ID), OwnInterface: true, FormerLeader: r.Node() == l.former && r.Node() != l.n.name, Suspected: r.Suspected, TTL: ttl})
	}
	for _, r := range sortedRuns(l.runs) {
		if !open[r.ID] {
			delete(l.runs, r.ID)
			delete(l.renewed, r.ID)
			l.step(detect.Event{Kind: detect.Closed, Run: detect.RunID(r.ID)})
		}
	}
}

func (l *leading) step(e detect.Event) {
	if l.over {
		return
	}
	for _, p := range l.det.Step(l.n.clock(), e) {
		l.carryOut(p)
	}
}

func (l *leading) carryOut(p detect.Proposal) {
	id := state.RunID(p.Run)
	run, ok := l.runs[id]
	if !ok {
		return
	}
	switch p.Act {
	case detect.Suspect, detect.Unsuspect:
		l.sayings = append(l.sayings, suspect(id, p.Act == detect.Unsuspect, p.Why, l.term))
		l.say()
	case detect.Probe:
		l.probe(run, func(refused bool) { l.step(detect.Event{Kind: detect.Probed, Run: p.Run, Yes: refused}) })
	case detect.AskVoters:
		l.askVoters(run, func(refused bool) { l.step(detect.Event{Kind: detect.VotersAsked, Run: p.Run, Yes: refused}) })
	case detect.Ping, detect.Glance:
		l.ping(run, func(yes bool) { l.step(detect.Event{Kind: detect.Pinged, Run: p.Run, Yes: yes}) })
	case detect.PingDead:
		l.ping(run, func(yes bool) { l.step(detect.Event{Kind: detect.Outlived, Run: p.Run, Yes: yes}) })
	case detect.Close:
		l.close(run, p.Evidence)
	}
}

func (l *leading) say() {
	if l.saying || len(l.sayings) == 0 || l.over {
		return
	}
	l.saying = true
	next := l.sayings[0]
	l.sayings = l.sayings[1:]
	l.n.raft.propose([]*wire.Command{next}, func([]*wire.Result) {
		l.saying = false
		l.say()
	})
}

var evidences = map[detect.Evidence]wire.Evidence{
	detect.Refused: wire.Evidence_EVIDENCE_REFUSED,
	detect.Lapsed:  wire.Evidence_EVIDENCE_LAPSED,
	detect.Buried:  wire.Evidence_EVIDENCE_OBITUARY,
}

func (l *leading) close(run state.Run, why detect.Evidence) {
	l.closings[run.ID]++
	l.n.raft.propose([]*wire.Command{closeRun(run, evidences[why], l.term)}, func(results []*wire.Result) {
		if l.closings[run.ID]--; l.closings[run.ID] <= 0 {
			delete(l.closings, run.ID)
		}
		if results == nil || results[0].GetCode() != wire.Code_CODE_OK {
			l.step(detect.Event{Kind: detect.CloseFailed, Run: detect.RunID(run.ID)})
		}
	})
}

// probe asks the kernel of a run's host: it refuses only when the host is there and the process is not.
func (l *leading) probe(run state.Run, tell func(bool)) {
	l.n.probe(l.n.w.node(run.Node()), tell)
}

func (n *node) probe(to *node, tell func(bool)) {
	if n.w.net.walls[[2]int{n.id, to.id}] > 0 { // somebody answers in its name
		n.after(n.w.delay(), func() { tell(true) })
		return
	}
	n.ask(to, to.hostUp, func() bool { return !to.up }, tell)
}

// askVoters has all nodes probe a run's host: a majority must have seen it refuse. In a world without walls whoever gets an
// answer gets the same one, and the leader's own stands for all.
func (l *leading) askVoters(run state.Run, tell func(bool)) {
	if len(l.n.w.net.walls) == 0 {
		l.probe(run, tell)
		return
	}
	w, to, yes, told := l.n.w, l.n.w.node(run.Node()), 0, false
	say := func(refused bool) {
		if !told {
			told = true
			tell(refused)
		}
	}
	saw := func(refused bool) {
		if refused {
			yes++
		}
		if yes > len(w.nodes)/2 {
			say(true)
		}
	}
	for _, voter := range w.nodes {
		w.send(l.n, voter, func() {
			voter.probe(to, func(refused bool) { w.send(voter, l.n, func() { saw(refused) }) })
		})
	}
	l.after(2*answerTime, func() { say(false) })
}

// ping asks the process itself.
func (l *leading) ping(run state.Run, tell func(bool)) {
	to := l.n.w.node(run.Node())
	l.n.ask(to, to.running(), func() bool { return to.running() && to.member != nil && to.member.id == run.ID && !to.member.closed }, tell)
}

// ask brings an answer there and back, or false when its time is over.
func (n *node) ask(to *node, there bool, answer func() bool, tell func(bool)) {
	w, told := n.w, false
	say := func(yes bool) {
		if !told {
			told = true
			tell(yes)
		}
	}
	n.after(answerTime, func() { say(false) })
	if !there || !w.open(n.id, to.id) || w.net.lost > 0 && w.chance(w.net.lost) {
		return
	}
	w.after(w.delay(), func() {
		if !w.open(n.id, to.id) || !w.open(to.id, n.id) {
			return
		}
		yes := answer()
		w.after(w.delay(), n.bound(func() { say(yes) }))
	})
}

// listen is what gossip tells this leader: who was out of everybody's reach for a while, or is talked about falsely.
func (l *leading) listen() {
	for _, to := range l.n.w.nodes {
		dead := to != l.n && l.n.w.silent(to)
		if dead == l.gossip[to.name] {
			continue
		}
		l.gossip[to.name] = dead
		kind := detect.GossipAlive
		if dead {
			kind = detect.GossipDead
		}
		if r, ok := openRunOf(l.n.machine, to.name); ok {
			l.step(detect.Event{Kind: kind, Run: detect.RunID(r.ID)})
		}
	}
}

// renewal is what a run says of itself to whoever leads.
type renewal struct {
	run    state.RunID
	seq    uint64
	fences []expiry
}

// ack answers a renewal.
type ack struct {
	acknowledged, closed bool
	fences               []expiry
}

// renew acknowledges a renewal only after a proof of leadership that began after its receipt, and not while a closing of the
// run is proposed with its outcome open (rule 4).
func (l *leading) renew(r renewal, answer func(ack)) {
	at := l.n.clock()
	l.n.raft.verify(func(ok bool) {
		if !ok || l.over {
			return
		}
		answer(l.decide(r, at))
	})
}

func (l *leading) decide(r renewal, at time.Duration) ack {
	if !l.n.machine.IsOpen(r.run) {
		return ack{closed: true}
	}
	closing := l.closings[r.run] > 0 || l.det.Closing(detect.RunID(r.run))
	if closing && l.n.w.plan.Mutant != RenewedWhileClosing || l.n.raft.role != leads {
		return ack{}
	}
	fresh := r.seq > l.renewed[r.run]
	if fresh {
		l.renewed[r.run] = r.seq
		l.step(detect.Event{Kind: detect.Renewed, Run: detect.RunID(r.run)})
	}
	a := ack{acknowledged: true}
	for _, f := range r.fences {
		if rec, ok := l.n.machine.Recovery(f.component, f.dead); ok && rec.GetIndex() == f.index && string(rec.GetAppointee()) == string(r.run[:]) {
			a.fences = append(a.fences, f)
			if fresh {
				l.expiries[expiryOf(rec)] = at
			}
		}
	}
	return a
}

func expiryOf(r *wire.Recovery) expiry {
	dead, _ := state.RunIDOf(r.GetRun())
	return expiry{component: r.GetComponent(), dead: dead, index: r.GetIndex(), raised: r.GetState() == wire.RecoveryState_RECOVERY_RAISED}
}

// expire moves appointments that nobody keeps, and ends locks that are held too long.
func (l *leading) expire() {
	now := l.n.clock()
	late := now - l.looked - tick
	if l.looked > 0 && late > ttl/4 {
		for e := range l.expiries {
			l.expiries[e] += late
		}
	}
	l.looked = now
	held := map[expiry]bool{}
	over := func(e expiry, limit time.Duration) bool {
		held[e] = true
		since, ok := l.expiries[e]
		if !ok {
			since = now
			l.expiries[e] = now
		}
		if now-since > limit {
			l.expiries[e] = now
			return true
		}
		return false
	}
	var cmds []*wire.Command
	for _, r := range l.n.machine.Recoveries() {
		switch r.GetState() {
		case wire.RecoveryState_RECOVERY_APPOINTED, wire.RecoveryState_RECOVERY_RAISED:
			limit := fenceTTL + time.Duration(min(r.GetRounds(), 5))*time.Second
			if over(expiryOf(r), limit) {
				cmds = append(cmds, moveAppointment(refOf(r), false, l.term))
			}
		}
	}
	for _, lock := range l.n.machine.Locks() {
		if over(expiry{lock: lock.GetName(), token: lock.GetToken()}, lockLimit) {
			cmds = append(cmds, expireLock(lock.GetName(), lock.GetToken(), l.term))
		}
	}
	for e := range l.expiries {
		if !held[e] {
			delete(l.expiries, e)
		}
	}
	if len(cmds) > 0 {
		l.n.raft.propose(cmds, func([]*wire.Result) {})
	}
}

// submit takes commands of members. The answer is nil when the outcome is unknown.
func (l *leading) submit(c *wire.Command, answer func(*wire.Result)) {
	var closes []state.RunID
	if x := c.GetCloseRun(); x != nil {
		id, _ := state.RunIDOf(x.GetRun())
		closes = append(closes, id)
	}
	if o := c.GetOpenRun(); o != nil {
		if last, ok := openRunOf(l.n.machine, o.GetNode()); ok && string(last.ID[:]) != string(o.GetRun()) {
			closes = append(closes, last.ID)
		}
	}
	for _, id := range closes {
		l.closings[id]++
	}
	l.n.raft.propose([]*wire.Command{c}, func(results []*wire.Result) {
		for _, id := range closes {
			if l.closings[id]--; l.closings[id] <= 0 {
				delete(l.closings, id)
			}
		}
		if results == nil {
			answer(nil)
			return
		}
		answer(results[0])
	})
}

// obituary is the word of a run's own warden; the signature is taken for verified.
func (l *leading) obituary(id state.RunID) {
	l.step(detect.Event{Kind: detect.Obituary, Run: detect.RunID(id)})
}
