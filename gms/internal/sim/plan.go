package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Mutant is a rule that is taken out of the simulated world, to see that its absence is noticed.
type Mutant int

// Mutants; the zero value takes nothing out.
const (
	Sound               Mutant = iota
	UnprovedLeader             // renewals are acknowledged without a proof of leadership (rule 4)
	RenewedWhileClosing        // and while a closing is proposed (rule 4)
	DetourCountsAnew           // a renewal that is sent again through another member counts from then (rule 5)
	LeaseForgotten             // a run acts after its lease has run out on its own clock
	LeaseNotAwaited            // exclusion by lease waits for nobody (rule 22)
	NoShutOut                  // a recoverer looks before it has shut out its predecessors (rule 23)
	UnlockedShutOut            // the shut-out waits for no transaction under way (rule 24)
	GuardUnread                // writes do not read the guard rows (rule 23)
	TokensUnchecked            // writes do not compare the row's token (rule 25)
	NoTombstone                // a dead attempt's manifest is not made void (rule 26)
	RowAfterWrite              // a restore takes the attempt's row after the guarded write (rule 31)
	HoldersLetIn               // writes do not read the guard row of their fence (rule 23)
	RowNotTaken                // a restore commits without the attempt's row (rule 31)
	CommitAtEnd                // a restore commits at the end of its input, whatever ended it
)

var mutants = []string{
	"sound", "unproved leader", "renewed while closing", "detour counts anew", "lease forgotten", "lease not awaited", "no shut-out", "unlocked shut-out",
	"guard unread", "tokens unchecked", "no tombstone", "row after write", "earlier holders let in", "row not taken", "commit at the end of input",
}

// String names the mutant.
func (m Mutant) String() string { return mutants[m] }

// Kind is a kind of fault.
type Kind int

// Kinds of fault.
const (
	Kill     Kind = iota // the process dies; its host goes on
	HostDies             // the host is gone without a word
	Pause                // the process stands still, and goes on
	KillLead             // whoever leads dies
	StopLead             // whoever leads stands still
	Isolate              // the node reaches nobody
	Deafen               // the node is heard, and hears nothing
	Mute                 // the node hears, and is not heard
	Link                 // two nodes do not reach each other
	Lossy                // the network loses one message in Other+3
	Slow                 // some messages take up to a second
	Ledger               // the ledger is away
	Store                // the storage is away
	Target               // the target is away
	Slander              // gossip says that the node is dead
	Leave                // the node leaves as planned
	Depose               // whoever leads loses its office
	Move                 // an operator moves an appointment by force
	Drop                 // an operator drops a parked recovery
	Maintain             // a run raises a maintenance fence
	Overrule             // whoever holds a fence is cut off, and an operator gives it to another by force; likewise
	Wall                 // whoever leads loses its office, and a firewall refuses the other in its name; only in scenes of its own
)

const kinds = int(Overrule) // of faults that are drawn at any time

var kindNames = []string{
	"kill", "host dies", "pause", "kill leader", "stop leader", "isolate", "deafen", "mute", "link", "lossy", "slow", "ledger", "store", "target",
	"slander", "leave", "depose", "move", "drop", "maintain", "overrule", "wall",
}

// Fault happens at a time, to nodes, for a while.
type Fault struct {
	At          time.Duration
	Kind        Kind
	Node, Other int
	For         time.Duration
}

// String describes the fault in one line.
func (f Fault) String() string {
	return fmt.Sprintf("%8v %s n%d n%d for %v", f.At.Round(time.Millisecond), kindNames[f.Kind], f.Node+1, f.Other+1, f.For.Round(time.Millisecond))
}

// Plan is all that a history depends on.
type Plan struct {
	Seed   uint64
	Nodes  int // 3 or 5
	Faults []Fault
	Until  time.Duration // when the last fault is over
	Mutant Mutant
}

// String lists the plan, one fault a line.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d nodes, faults until %v, %v\n", p.Seed, p.Nodes, p.Until, p.Mutant)
	for _, f := range p.Faults {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

// Draw makes the plan of a seed: three or five nodes, half a minute to a minute and a half of faults, few or many.
func Draw(seed uint64) Plan {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := Plan{Seed: seed, Nodes: 3 + 2*rng.IntN(2), Until: time.Duration(30+rng.IntN(60)) * time.Second}
	for range 3 + rng.IntN(40) {
		p.Faults = append(p.Faults, Fault{
			At:   2*time.Second + time.Duration(rng.Int64N(int64(p.Until-12*time.Second))),
			Kind: Kind(rng.IntN(kinds)), Node: rng.IntN(p.Nodes), Other: rng.IntN(p.Nodes),
			For: time.Duration(1<<rng.IntN(14)) * time.Millisecond,
		})
	}
	if rng.IntN(3) == 0 {
		p.Faults = append(p.Faults, hesitation(rng, p)...)
	}
	switch rng.IntN(8) {
	case 0:
		p.Faults = append(p.Faults, walls(rng, p)...)
	case 1:
		p.Faults = append(p.Faults, overruled(rng, p)...)
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	return p
}

// hesitation is a node that all take for dead and that goes on just when its lease is over, some times, on a slow network:
// closings and renewals cross each other.
func hesitation(rng *rand.Rand, p Plan) []Fault {
	node, at := rng.IntN(p.Nodes), 5*time.Second
	list := []Fault{{At: at, Kind: Slow, For: p.Until - 10*time.Second}}
	for ; at < p.Until-12*time.Second; at += 3 * time.Second {
		d := ttl - ttl/3 + time.Duration(rng.Int64N(int64(ttl)))
		list = append(list, Fault{At: at, Kind: Slander, Node: node, For: d + time.Second}, Fault{At: at, Kind: Pause, Node: node, For: d})
	}
	return list
}

// walls are firewalls that refuse a node in the name of whoever led a moment ago: a leader takes its predecessor, which all
// others reach, for dead.
func walls(rng *rand.Rand, p Plan) (list []Fault) {
	for at := 5 * time.Second; at < p.Until-12*time.Second; at += 4 * time.Second {
		list = append(list, Fault{At: at, Kind: Wall, Other: rng.IntN(p.Nodes), For: 3 * time.Second})
	}
	return list
}

// overruled are recoverers that are taken for hung, and are not: they reach the ledger, and do not hear that they are
// recoverers no more.
func overruled(rng *rand.Rand, p Plan) (list []Fault) {
	for at := 5 * time.Second; at < p.Until-15*time.Second; at += 4 * time.Second {
		list = append(list, Fault{At: at, Kind: Kill, Node: rng.IntN(p.Nodes), For: 2 * time.Second}, Fault{At: at, Kind: Overrule, For: 2 * time.Second})
	}
	return list
}

// slandered tells whether gossip is wrong about a node.
func (p Plan) slandered(node int, now time.Duration) bool {
	return slices.ContainsFunc(p.Faults, func(f Fault) bool {
		return f.Kind == Slander && f.Node == node && now >= f.At && now < f.At+f.For
	})
}

// Report counts what happened in a history.
type Report struct {
	Steps, Entries, Runs, Closed, Recoveries, Completed, Commits int
	Hash                                                         [32]byte // of the state at the end
}

// Add sums up.
func (r *Report) Add(o Report) {
	r.Steps += o.Steps
	r.Entries += o.Entries
	r.Runs += o.Runs
	r.Closed += o.Closed
	r.Recoveries += o.Recoveries
	r.Completed += o.Completed
	r.Commits += o.Commits
}

// Play plays the history of a plan. The error is the first broken invariant.
func Play(p Plan) (Report, error) {
	w := &world{plan: p, rng: rand.New(rand.NewPCG(p.Seed, 2)), net: network{cut: map[[2]int]int{}, walls: map[[2]int]int{}}}
	w.ledger, w.store, w.target, w.items = newLedger(w), newStore(w), newTarget(w), &items{w: w}
	w.check = newChecker(w)
	for i := range p.Nodes {
		n := &node{w: w, id: i, name: fmt.Sprintf("n%d", i+1), rate: 0.99 + 0.02*w.rng.Float64(), hostUp: true}
		n.raft = newRaft(n)
		w.nodes = append(w.nodes, n)
	}
	for _, n := range w.nodes {
		w.after(w.between(0, 300*time.Millisecond), n.start)
	}
	w.items.tick()
	w.store.sweep()
	for _, f := range p.Faults {
		w.after(f.At, func() { w.inject(f) })
	}
	w.after(p.Until, w.heal)
	w.play()
	w.report.Steps = w.steps
	return w.report, w.broken
}

// Shrink leaves out faults, one after the other, that the history does not need to break something.
func Shrink(p Plan) Plan {
	for i := 0; i < len(p.Faults); {
		less := p
		less.Faults = slices.Delete(slices.Clone(p.Faults), i, i+1)
		if _, err := Play(less); err != nil {
			p = less
			continue
		}
		i++
	}
	return p
}
