package detect

import "time"

// RunID names a run; 16 random bytes.
type RunID [16]byte

// Evidence says why a run may be closed. Only what the leader finds out by itself is here; the rest of the table
// (newer run, left, operator) are commands that carry their own evidence.
type Evidence int

// Evidence that the machine gives.
const (
	Refused Evidence = iota + 1 // the process is proven gone
	Lapsed                      // silent for too long
	Buried                      // its warden's obituary, and no answer to a ping sent after it
)

// Settings of a machine.
type Settings struct {
	TTL       time.Duration // lease of a run that did not say its own; > 0
	Tick      time.Duration // how often Tick events come; a tick later than TTL/4 counts as starvation
	Glance    time.Duration // how long after it met a run without a session a leader pings it; default TTL/30, at most 100 ms
	NoSession time.Duration // how long after its start a leader waits for a run's session before it probes; default TTL/3, at most 1 s
	Reprobe   time.Duration // pause between two probes of a run that stays without a session; default 1 s
	NoRefused bool          // evidence "refused" is switched off
}

func (s Settings) withDefaults() Settings {
	if s.NoSession == 0 {
		s.NoSession = min(s.TTL/3, time.Second)
	}
	if s.Glance == 0 {
		s.Glance = min(s.TTL/30, 100*time.Millisecond)
	}
	if s.Reprobe == 0 {
		s.Reprobe = time.Second
	}
	return s
}

// Kind is the kind of an event.
type Kind int

// Events. Each names the run it is about, but for Tick.
const (
	Opened       Kind = iota // the log opened the run (or the leader met it open at its start)
	Closed                   // the log closed it
	Renewed                  // a renewal was received and acknowledged
	StreamOpened             // a session stream of the run reached this leader
	StreamEnded              // a session stream ended; Goodbye when the run said so
	GossipAlive              // gossip holds the run alive
	GossipDead               // gossip holds the run dead
	Reported                 // somebody else (a watchdog) says that the run is dead, and it answered no ping
	Probed                   // answer to Probe; Yes: refused on all three ports
	Pinged                   // answer to Ping; Yes: the run answered
	VotersAsked              // answer to AskVoters; Yes: a majority saw the refusal
	CloseFailed              // a proposed closing did not commit
	Tick                     // time has passed
	Obituary                 // the run's own warden says that it died; the signature was verified
	Outlived                 // answer to PingDead; Yes: the run answered, so that the obituary is void
)

// Event is one thing the leader learned.
type Event struct {
	Kind         Kind
	Run          RunID
	Yes          bool // Probed, Pinged, VotersAsked
	Goodbye      bool // StreamEnded
	OwnInterface bool // Opened: the run may be proven dead by its host's refusal
	FormerLeader bool // Opened: the run led the group before this leader
	Suspected    bool // Opened: the log holds it suspected

	TTL time.Duration // Opened: the lease that the run reckons with; 0: Settings.TTL
}

// Act is what the leader is to do.
type Act int

// Actions.
const (
	Probe     Act = iota + 1 // probe the run's host; answer with Probed
	Ping                     // ping the run directly; answer with Pinged
	AskVoters                // ask all voters whether they see the refusal, too; answer with VotersAsked
	Suspect                  // commit Suspect
	Unsuspect                // commit Unsuspect
	PingDead                 // ping a run of which there is an obituary; answer with Outlived
	Glance                   // ping a run that has no session yet; answer with Pinged
	Close                    // commit CloseRun with Evidence; answer with CloseFailed, or Closed when it is applied
)

// Proposal is an action about one run.
type Proposal struct {
	Act      Act
	Run      RunID
	Evidence Evidence // Close
	Why      string   // Suspect, Close: for people
}

type run struct {
	ttl          time.Duration
	ownInterface bool
	formerLeader bool
	suspected    bool

	since      time.Duration // the last renewal, or the leader's start: what "lapsed" counts from
	brokeAt    time.Duration // end of the last stream, or the leader's start: renewals since then came by a detour
	streams    int           // session streams that reach this leader
	gossipDead bool
	broke      bool          // the last stream ended without goodbye, and none came since
	asking     Act           // the outstanding Probe, Ping or AskVoters; 0 for none
	nextProbe  time.Duration // not before
	glance     time.Duration // when to ping it, should it have no session by then; 0: done
	closing    bool
}

// Machine holds what a leader knows of the life of each open run. It is not safe for concurrent use.
type Machine struct {
	set      Settings
	started  time.Duration
	lastTick time.Duration
	runs     map[RunID]*run
	order    []RunID // order of opening, so that equal events give equal proposals
}

// New makes the machine of a leader whose term is established at now.
func New(s Settings, now time.Duration) *Machine {
	return &Machine{set: s.withDefaults(), started: now, lastTick: now, runs: make(map[RunID]*run)}
}

// Closing tells whether a closing of the run is proposed with the outcome open: its renewals wait (PROTOCOL.md 4).
func (m *Machine) Closing(id RunID) bool {
	r, ok := m.runs[id]
	return ok && r.closing
}

// Step takes one event and returns what is to be done now.
func (m *Machine) Step(now time.Duration, e Event) []Proposal {
	if e.Kind == Tick {
		return m.tick(now)
	}
	if e.Kind == Opened {
		m.open(now, e)
		return nil
	}
	r, ok := m.runs[e.Run]
	if !ok {
		return nil
	}
	if e.Kind == Closed {
		m.forget(e.Run)
		return nil
	}
	return m.about(now, r, e)
}

func (m *Machine) open(now time.Duration, e Event) {
	if _, ok := m.runs[e.Run]; ok {
		return
	}
	ttl := e.TTL
	if ttl == 0 {
		ttl = m.set.TTL
	}
	m.runs[e.Run] = &run{
		ttl:          ttl,
		ownInterface: e.OwnInterface, formerLeader: e.FormerLeader, suspected: e.Suspected,
		since: now, brokeAt: now, nextProbe: now + m.set.NoSession, glance: now + m.set.Glance,
	}
	m.order = append(m.order, e.Run)
}

func (m *Machine) forget(id RunID) {
	delete(m.runs, id)
	for i, o := range m.order {
		if o == id {
			m.order = append(m.order[:i:i], m.order[i+1:]...)
			return
		}
	}
}

func (m *Machine) about(now time.Duration, r *run, e Event) []Proposal {
	switch e.Kind {
	case Renewed:
		r.since = max(r.since, now)
		return m.trust(r, e.Run)
	case StreamOpened:
		r.streams++
		r.broke = false
		return nil
	case StreamEnded:
		return m.streamEnded(now, r, e)
	case GossipAlive:
		r.gossipDead = false
		return m.trust(r, e.Run)
	case GossipDead:
		r.gossipDead = true
		return m.hint(now, r, e.Run, "gossip holds it dead")
	case Reported:
		return m.hint(now, r, e.Run, "reported dead by a watchdog")
	case Probed, VotersAsked:
		return m.refusal(now, r, e)
	case Pinged:
		return m.pinged(now, r, e)
	case Obituary:
		if !r.closing {
			return []Proposal{{Act: PingDead, Run: e.Run}}
		}
	case Outlived:
		return m.outlived(r, e)
	case CloseFailed:
		r.closing = false
	}
	return nil
}

// outlived takes the answer to the ping that was sent after an obituary (PROTOCOL.md 3). The end of a stream may come
// later than the obituary: what counts is that the run does not answer.
func (m *Machine) outlived(r *run, e Event) []Proposal {
	if e.Yes {
		return m.suspect(r, e.Run, "its warden says that it died, yet it answers")
	}
	if r.closing {
		return nil
	}
	r.closing = true
	return []Proposal{{Act: Close, Run: e.Run, Evidence: Buried, Why: "its warden saw it die and it answers no ping"}}
}

func (m *Machine) streamEnded(now time.Duration, r *run, e Event) []Proposal {
	if r.streams > 0 {
		r.streams--
	}
	if r.streams > 0 || e.Goodbye {
		return nil
	}
	r.broke, r.brokeAt = true, now
	return m.hint(now, r, e.Run, "its session stream broke")
}

// hint follows a suspicion: a probe where one can prove something, and the suspicion itself where not.
func (m *Machine) hint(now time.Duration, r *run, id RunID, why string) []Proposal {
	if r.closing {
		return nil
	}
	if r.streams > 0 {
		return m.suspect(r, id, why)
	}
	if ps := m.probe(now, r, id); ps != nil {
		return ps
	}
	if r.asking != 0 {
		return nil
	}
	return m.suspect(r, id, why)
}

func (m *Machine) probe(now time.Duration, r *run, id RunID) []Proposal {
	if !m.provable(r) || r.closing || r.asking != 0 {
		return nil
	}
	r.asking = Probe
	if r.formerLeader && m.needsVoters(r) { // they have probed it already
		r.asking = AskVoters
	}
	r.nextProbe = now + m.set.Reprobe
	return []Proposal{{Act: r.asking, Run: id}}
}

// needsVoters tells that no stream of the run to this leader has broken: to be refused is no proof by itself then, since it may
// have lived all the time behind a firewall that keeps it from this leader alone. A majority must have seen the refusal.
func (m *Machine) needsVoters(r *run) bool { return !r.broke && mutant != "quorum" }

// provable tells whether the run's host can prove its death.
func (m *Machine) provable(r *run) bool { return !m.set.NoRefused && r.ownInterface }

// refusal takes the answer of a probe, or of the voters. A proof needs that no session came back meanwhile, and that
// the run does not answer a ping sent from now on (PROTOCOL.md 3).
func (m *Machine) refusal(now time.Duration, r *run, e Event) []Proposal {
	r.asking = 0
	r.nextProbe = now + m.set.Reprobe
	if r.streams > 0 || r.closing {
		return nil
	}
	if !e.Yes {
		return m.suspect(r, e.Run, "no session, and its host does not prove its death")
	}
	if e.Kind == Probed && m.needsVoters(r) {
		r.asking = AskVoters
		return []Proposal{{Act: AskVoters, Run: e.Run}}
	}
	r.asking = Ping
	return []Proposal{{Act: Ping, Run: e.Run}}
}

// glanced takes the answer to a ping of a run that has not come to this leader: one that died beside the last leader need not
// be waited for. Who answers is on its way, and nothing is said of it.
func (m *Machine) glanced(now time.Duration, r *run, e Event) []Proposal {
	r.asking = 0
	if r.streams > 0 || e.Yes && !r.broke && !r.gossipDead {
		return nil
	}
	return m.probe(now, r, e.Run)
}

func (m *Machine) pinged(now time.Duration, r *run, e Event) []Proposal {
	if r.asking == Glance {
		return m.glanced(now, r, e)
	}
	if r.asking != Ping {
		return nil
	}
	r.asking = 0
	r.nextProbe = now + m.set.Reprobe
	if e.Yes || r.streams > 0 || r.closing {
		return nil
	}
	if m.renewsByDetour(now, r) {
		return m.suspect(r, e.Run, "its host refuses this leader, yet it renews through another member")
	}
	r.closing = true
	return []Proposal{{Act: Close, Run: e.Run, Evidence: Refused, Why: "its host refuses all three ports and it answers no ping"}}
}

// renewsByDetour tells that the run has been heard of since its stream to this leader ended: what refuses then is the way
// to it, a firewall in between.
func (m *Machine) renewsByDetour(now time.Duration, r *run) bool {
	return r.since > r.brokeAt && now-r.since <= r.ttl
}

// tick looks at what only time shows. Starvation moves every run's count on by as much as the tick came late.
func (m *Machine) tick(now time.Duration) []Proposal {
	late := now - m.lastTick - m.set.Tick
	m.lastTick = now
	for _, r := range m.runs {
		if late > r.ttl/4 {
			r.since += late
		}
	}
	var ps []Proposal
	for _, id := range m.order {
		ps = append(ps, m.tickRun(now, m.runs[id], id)...)
	}
	return ps
}

func (m *Machine) tickRun(now time.Duration, r *run, id RunID) []Proposal {
	if r.closing {
		return nil
	}
	silent := now - r.since
	if silent > 3*r.ttl || silent > r.ttl && r.gossipDead {
		r.closing = true
		return []Proposal{{Act: Close, Run: id, Evidence: Lapsed, Why: "no renewal for " + silent.Round(time.Millisecond).String()}}
	}
	var ps []Proposal
	if silent > r.ttl/2 {
		ps = m.suspect(r, id, "its renewal is late")
	}
	if r.glance > 0 && now >= r.glance {
		r.glance = 0
		if r.streams == 0 && r.asking == 0 && m.provable(r) {
			r.asking = Glance
			return append(ps, Proposal{Act: Glance, Run: id})
		}
	}
	if r.streams == 0 && now >= r.nextProbe {
		ps = append(ps, m.probe(now, r, id)...)
	}
	return ps
}

func (m *Machine) suspect(r *run, id RunID, why string) []Proposal {
	if r.suspected {
		return nil
	}
	r.suspected = true
	return []Proposal{{Act: Suspect, Run: id, Why: why}}
}

// trust withdraws a suspicion once nothing supports it any more.
func (m *Machine) trust(r *run, id RunID) []Proposal {
	if r.gossipDead || r.streams == 0 {
		return nil
	}
	r.broke = false
	if !r.suspected {
		return nil
	}
	r.suspected = false
	return []Proposal{{Act: Unsuspect, Run: id}}
}
