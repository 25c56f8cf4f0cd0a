package gmstest

import (
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// take notes whom runs belong to, and asks why they are closed. n has applied the entry first: it leads.
func (o *observer) take(n *Node, m *state.Machine, changes []state.Change) {
	for _, c := range changes {
		switch c := c.(type) {
		case state.RunOpened:
			if s := o.w.sites[c.Run.Node()]; s != nil {
				o.runs[c.Run.ID] = s.node
			}
		case state.RunClosed:
			o.closings = append(o.closings, closing{Node: c.Run.Node(), Run: c.Run.ID.String(), Evidence: c.Run.Evidence, At: time.Now()})
			o.judgeClosing(n, c.Run, time.UnixMilli(m.Time()))
		case state.NodeForgotten:
			o.forgotten[c.Node] = c.Burnt
		case state.RecoveryEnded:
			id, _ := state.RunIDOf(c.Recovery.GetRun())
			k := recovered{c.Recovery.GetComponent(), id.String()}
			if o.releases[k]++; o.releases[k] > 1 {
				o.broken("the recovery of %s of run %s has ended %d times", k.Component, k.Run, o.releases[k])
			}
		}
	}
}

// judgeClosing asks whether a closing that was proposed at that time had a reason then: its commit may come much later, under
// another leader that found it in its log.
func (o *observer) judgeClosing(leader *Node, r state.Run, proposed time.Time) {
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
		if life == running && !o.wasApart(leader, owner, proposed) {
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
// use with "lapsed whatever gossip says".
const apartFor = 10 * time.Second

// wasApart tells whether something kept the node from the leader at about that time, or from one shortly before, whose
// closing the present one may have found in its log and committed.
func (o *observer) wasApart(leader, n *Node, at time.Time) bool {
	for l, led := range o.leaders {
		if (l == leader || at.Sub(led) < apartFor) && o.wereApart(l, n, at) {
			return true
		}
	}
	return false
}

func (o *observer) wereApart(leader, n *Node, at time.Time) bool {
	recent := func(end time.Time, known bool) bool { return known && (end.IsZero() || at.Sub(end) < apartFor) }
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
