package gmstest

import (
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// observer sees every entry that any member applies, at the moment at which it does, and judges the invariants of
// PROTOCOL.md: 1, 2, 3, 4, 14, 17 and the second half of 13. What it finds fails the test.
type observer struct {
	w     *World
	fail  func(text string)
	lease func(owner *Node, r state.Run) // judges a lease, on a goroutine of its own

	mu       sync.Mutex
	resting  bool
	news     chan struct{} // closed and replaced at each entry
	entries  map[place][32]byte
	followed map[*Node]*follower
	runs     map[state.RunID]*Node // by whom it was opened
	closings []closing
	releases map[recovered]int
	trouble  map[*Node]time.Time     // when the node's last pause has ended; zero time while it lasts
	cut      map[[2]string]time.Time // by IP: when the last cut of this link has ended; zero time while it lasts
	leaders  map[*Node]time.Time     // when each last applied an entry first
}

// follower is one replica's way through the log.
type follower struct {
	index uint64
	view  uint64
}

// closing is one run's end as the log has it.
type closing struct {
	Node     string
	Run      string
	Evidence wire.Evidence
	At       time.Time
}

// place is an index of one group's log; a world may have several groups.
type place struct {
	cluster string
	index   uint64
}

// recovered names the recovery of a component of a run.
type recovered struct{ Component, Run string }

func newObserver(w *World) *observer {
	o := &observer{
		w: w, news: make(chan struct{}), entries: map[place][32]byte{}, followed: map[*Node]*follower{},
		runs: map[state.RunID]*Node{}, releases: map[recovered]int{}, trouble: map[*Node]time.Time{}, cut: map[[2]string]time.Time{}, leaders: map[*Node]time.Time{},
	}
	o.fail = func(text string) { w.t.Error(text) }
	o.lease = o.judgeLease
	return o
}

// moved is closed when some member applies the next entry.
func (o *observer) moved() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.news
}

// rest ends the judging, for the end of the test.
func (o *observer) rest() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.resting = true
}

func (o *observer) broken(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	o.w.tape.note("!!", text)
	o.fail(text)
}

// applied is called by every replica for every entry, under the replica's lock.
func (o *observer) applied(n *Node, index uint64, m *state.Machine, changes []state.Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.resting {
		return
	}
	close(o.news)
	o.news = make(chan struct{})
	o.follow(n, index, m, changes == nil)
	hash := m.Hash()
	at := place{string(m.ClusterID()), index}
	known, seen := o.entries[at]
	switch {
	case seen && known != hash:
		o.broken("invariant 1: %s has another state at index %d than the first that applied it", n.Name, index)
	case !seen:
		o.entries[at] = hash
		o.judge(m)
		o.leaders[n] = time.Now()
		o.take(n, changes)
	}
}

// follow holds that a replica goes forward only. A process that starts reads its log from the beginning.
func (o *observer) follow(n *Node, index uint64, m *state.Machine, snapshot bool) {
	f := o.followed[n]
	if f == nil {
		f = &follower{}
		o.followed[n] = f
	}
	view := m.View().Version
	if index < f.index || index == f.index && !snapshot && index > 0 || view < f.view {
		o.broken("invariant 1: %s went from index %d, view %d to index %d, view %d", n.Name, f.index, f.view, index, view)
	}
	f.index, f.view = index, view
}

// judge looks at one state.
func (o *observer) judge(m *state.Machine) {
	raised := map[[2]string]bool{}
	for _, r := range m.Recoveries() {
		if !m.IsFenced(r.GetComponent(), r.GetNode()) {
			o.broken("invariant 17: %s of %s is not fenced during its recovery", r.GetComponent(), r.GetNode())
		}
		if r.GetState() == wire.RecoveryState_RECOVERY_APPOINTED || r.GetState() == wire.RecoveryState_RECOVERY_RAISED {
			o.judgeAppointment(m, r)
		}
		if r.GetState() == wire.RecoveryState_RECOVERY_RAISED {
			k := [2]string{r.GetComponent(), r.GetNode()}
			if raised[k] {
				o.broken("invariant 2: two fences on %s of %s", k[0], k[1])
			}
			raised[k] = true
		}
	}
	for _, c := range m.Claims(state.ClaimFilter{}) {
		o.judgeClaim(m, c)
	}
}

func (o *observer) judgeAppointment(m *state.Machine, r *wire.Recovery) {
	id, _ := state.RunIDOf(r.GetAppointee())
	run, known := m.Run(id)
	switch {
	case !known || !run.IsOpen():
		o.broken("invariant 2: the appointee of %s of %s is not open", r.GetComponent(), r.GetNode())
	case run.Open.GetRole() != wire.Role_ROLE_CORE || !run.Registered(r.GetComponent()):
		o.broken("invariant 2: %s is appointed to %s and cannot recover it", run.Node(), r.GetComponent())
	}
	for _, t := range r.GetTried() {
		if string(t) == string(r.GetAppointee()) {
			o.broken("invariant 2: %s is appointed to %s of %s again", run.Node(), r.GetComponent(), r.GetNode())
		}
	}
}

func (o *observer) judgeClaim(m *state.Machine, c *wire.ClaimState) {
	id, _ := state.RunIDOf(c.GetRun())
	switch {
	case c.GetQuarantined():
	case c.GetOrphan():
		if _, open := m.Recovery(c.GetComponent(), id); !open {
			o.broken("invariant 3: nobody recovers the orphan %s of %s", c.GetItem(), c.GetComponent())
		}
	case !m.IsOpen(id):
		o.broken("invariant 4: %s of %s is held by a closed run", c.GetItem(), c.GetComponent())
	}
}

// take notes whom runs belong to, and asks why they are closed. n has applied the entry first: it leads.
func (o *observer) take(n *Node, changes []state.Change) {
	for _, c := range changes {
		switch c := c.(type) {
		case state.RunOpened:
			if s := o.w.sites[c.Run.Node()]; s != nil {
				o.runs[c.Run.ID] = s.node
			}
		case state.RunClosed:
			o.closings = append(o.closings, closing{Node: c.Run.Node(), Run: c.Run.ID.String(), Evidence: c.Run.Evidence, At: time.Now()})
			o.judgeClosing(n, c.Run)
		case state.RecoveryEnded:
			id, _ := state.RunIDOf(c.Recovery.GetRun())
			k := recovered{c.Recovery.GetComponent(), id.String()}
			if o.releases[k]++; o.releases[k] > 1 {
				o.broken("the recovery of %s of run %s has ended %d times", k.Component, k.Run, o.releases[k])
			}
		}
	}
}

func (o *observer) judgeClosing(leader *Node, r state.Run) {
	owner := o.runs[r.ID]
	if owner == nil {
		return
	}
	life := owner.lifeNow()
	switch r.Evidence {
	case wire.Evidence_EVIDENCE_REFUSED:
		if life == running || life == paused {
			o.broken("the living run of %s was closed as refused: %s", owner.Name, r.Detail)
		}
	case wire.Evidence_EVIDENCE_LAPSED:
		if life == running && !o.wasApart(leader, owner) {
			o.broken("invariant 14: the run of %s was closed as lapsed by %s, to which its link was whole: %s", owner.Name, leader.Name, r.Detail)
		}
		if life == running || life == paused {
			go o.lease(owner, r) // not here: the owner may be applying this very entry
		}
	}
}

// judgeLease holds that no closing as lapsed commits while an acknowledged lease holds. It runs at the moment of the
// commit: time does not pass before.
func (o *observer) judgeLease(owner *Node, r state.Run) {
	st, _ := owner.Group.Standing()
	if _, run := owner.Group.Self(); run == r.ID.String() && (st == gms.Held || st == gms.Suspect) {
		o.broken("invariant 13: the run of %s was closed as lapsed while it held its lease", owner.Name)
	}
}

// apartFor is how long after its end a pause or a cut still explains that a run had lapsed: more than the longest TTL in
// use with "lapsed whatever gossip says", whose commit was under way.
const apartFor = 10 * time.Second

// wasApart tells whether something lately kept the node from the leader, or from one shortly before, whose closing the
// present one may have found in its log and committed.
func (o *observer) wasApart(leader, n *Node) bool {
	for l, at := range o.leaders {
		if (l == leader || time.Since(at) < apartFor) && o.wereApart(l, n) {
			return true
		}
	}
	return false
}

func (o *observer) wereApart(leader, n *Node) bool {
	recent := func(end time.Time, known bool) bool { return known && (end.IsZero() || time.Since(end) < apartFor) }
	for _, x := range []*Node{leader, n} {
		if end, known := o.trouble[x]; recent(end, known) {
			return true
		}
	}
	for _, pair := range [][2]string{{leader.site.ip, n.site.ip}, {n.site.ip, leader.site.ip}} {
		if end, known := o.cut[pair]; recent(end, known) {
			return true
		}
	}
	return false
}

// troubled notes that a node is paused, or not any more.
func (o *observer) troubled(n *Node, now bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trouble[n] = time.Time{}
	if !now {
		o.trouble[n] = time.Now()
	}
}

// relinked notes which links are cut now.
func (o *observer) relinked() {
	o.w.net.mu.Lock()
	cut := map[[2]string]bool{}
	for pair, l := range o.w.net.links {
		cut[pair] = l.Cut
	}
	o.w.net.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	for pair, end := range o.cut {
		if end.IsZero() && !cut[pair] {
			o.cut[pair] = time.Now()
		}
	}
	for pair, is := range cut {
		if is {
			o.cut[pair] = time.Time{}
		}
	}
}

// closed lists the closings of a node's runs so far.
func (o *observer) closed(nodes ...string) []closing {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []closing
	for _, c := range o.closings {
		for _, n := range nodes {
			if n == c.Node {
				list = append(list, c)
			}
		}
	}
	return list
}

// releasedOf tells how often the recovery of a component of a run has ended.
func (o *observer) releasedOf(component, run string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.releases[recovered{component, run}]
}
