package sim

import (
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// inject makes a fault happen, and its end.
func (w *world) inject(f Fault) {
	n, other := w.nodes[f.Node], w.nodes[f.Other]
	switch f.Kind {
	case Kill:
		w.killed(n, true, f.For)
	case HostDies:
		w.killed(n, false, f.For)
	case Pause:
		n.pause(f.For)
	case KillLead:
		if l := w.leader(); l != nil {
			w.killed(l, w.chance(2), f.For)
		}
	case StopLead:
		if l := w.leader(); l != nil {
			l.pause(f.For)
		}
	case Overrule:
		w.overrule(f.For, 50)
	case Wall:
		if l := w.leader(); l != nil && l != other {
			w.cuts(f, l, other)
			w.wall(other, l, f.For)
			w.inject(Fault{Kind: Depose})
		}
	case Depose:
		if l := w.leader(); l != nil {
			l.run(func() { l.raft.term++; l.raft.voted = 0; l.raft.yield() })
		}
	case Leave:
		n.run(func() {
			if n.member != nil {
				n.member.leave()
			}
		})
	case Maintain:
		n.run(func() {
			if n.member != nil && n.member.here() {
				n.member.maintain()
			}
		})
	case Move, Drop:
		w.operate(f.Kind)
	case Ledger:
		w.away(&w.ledger.remote, f.For)
	case Store:
		w.away(&w.store.remote, f.For)
	case Target:
		w.away(&w.target.remote, f.For)
	case Lossy:
		w.net.lost = f.Other + 3
		w.unwell(f.For)
		w.after(f.For, func() { w.net.lost = 0 })
	case Slow:
		w.net.slow = time.Second
		w.unwell(f.For)
		w.after(f.For, func() { w.net.slow = 0 })
	case Slander:
	default:
		w.cuts(f, n, other)
	}
}

func (w *world) killed(n *node, warden bool, d time.Duration) {
	n.kill(warden)
	n.hostUp = warden
	w.after(d, func() {
		n.hostUp = true
		n.start()
	})
}

func (w *world) away(r *remote, d time.Duration) {
	r.away = true
	w.after(d, func() { r.away = false })
}

// unwell: the whole network is in trouble.
func (w *world) unwell(d time.Duration) {
	for _, n := range w.nodes {
		n.wound = max(n.wound, w.now+d)
	}
}

func (w *world) cuts(f Fault, n, other *node) {
	var links [][2]int
	for _, to := range w.nodes {
		switch {
		case to == n:
		case f.Kind == Isolate:
			links = append(links, [2]int{n.id, to.id}, [2]int{to.id, n.id})
		case f.Kind == Deafen:
			links = append(links, [2]int{to.id, n.id})
		case f.Kind == Mute:
			links = append(links, [2]int{n.id, to.id})
		case (f.Kind == Link || f.Kind == Wall) && to == other:
			links = append(links, [2]int{n.id, to.id}, [2]int{to.id, n.id})
		}
	}
	for _, l := range links {
		w.net.cut[l]++
		for _, id := range l {
			w.nodes[id].wound = max(w.nodes[id].wound, w.now+f.For)
		}
	}
	w.after(f.For, func() {
		for _, l := range links {
			w.net.cut[l]--
		}
	})
}

// wall has somebody refuse one node in the name of another.
func (w *world) wall(from, to *node, d time.Duration) {
	way := [2]int{from.id, to.id}
	w.net.walls[way]++
	w.after(d, func() { w.net.walls[way]-- })
}

// operate is what a person does by the command.
func (w *world) operate(kind Kind) {
	l := w.leader()
	if l == nil || l.lead == nil {
		return
	}
	for _, r := range l.machine.Recoveries() {
		switch {
		case kind == Move && r.GetIndex() > 0 && len(r.GetAppointee()) > 0:
			l.raft.propose([]*wire.Command{moveAppointment(refOf(r), true, 0)}, func([]*wire.Result) {})
			return
		case kind == Drop && r.GetState() == wire.RecoveryState_RECOVERY_PARKED:
			l.raft.propose([]*wire.Command{drop(r)}, func([]*wire.Result) {})
			return
		}
	}
}

// overrule looks some times for a fence that is raised by another than who leads, cuts its holder off and moves it by force.
func (w *world) overrule(d time.Duration, looks int) {
	if l := w.leader(); l != nil && l.lead != nil {
		for _, r := range l.machine.Recoveries() {
			id, _ := state.RunIDOf(r.GetAppointee())
			holder, open := l.machine.Run(id)
			if r.GetState() != wire.RecoveryState_RECOVERY_RAISED || !open || holder.Node() == l.name {
				continue
			}
			w.cuts(Fault{Kind: Isolate, For: d}, w.node(holder.Node()), nil)
			l.raft.propose([]*wire.Command{moveAppointment(refOf(r), true, 0)}, func([]*wire.Result) {})
			return
		}
	}
	if looks > 0 {
		w.after(20*time.Millisecond, func() { w.overrule(d, looks-1) })
	}
}

// heal ends all faults; from here on everything must end by itself, but for what asks for a person.
func (w *world) heal() {
	w.calm = true
	clear(w.net.cut)
	for way := range w.net.walls {
		w.net.walls[way] = 0
	}
	w.net.lost, w.net.slow = 0, 0
	w.ledger.away, w.store.away, w.target.away = false, false, false
	for _, n := range w.nodes {
		n.hostUp = true
		n.start()
	}
	w.person()
}

// person looks now and then, and lets parked recoveries be tried again.
func (w *world) person() {
	if l := w.leader(); l != nil && l.lead != nil {
		for _, r := range l.machine.Recoveries() {
			if r.GetState() == wire.RecoveryState_RECOVERY_PARKED {
				l.raft.propose([]*wire.Command{retry(r)}, func([]*wire.Result) {})
			}
		}
	}
	w.after(2*time.Second, w.person)
}
