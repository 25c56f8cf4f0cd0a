package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// kind is a kind of fault.
type kind int

const (
	killNode   kind = iota // the node process dies; its warden starts the next one
	killWarden             // the warden dies; its node goes on, and another warden comes
	killBoth               // warden and node die together; both come back after the fault's time
	killChild              // a pg_dump, psql or pg_restore of the node dies
	killGuest              // the host app dies, and comes back at once
	hostDies               // all processes of a host, at once
	allDie                 // the same on all hosts of nodes
	pauseNode              // the node process stands still, the warden does not
	pauseHost              // everything on a host stands still
	pauseGuest             // the host app stands still
	leave                  // a node is stopped in order, and comes back
	leaveLate              // one node is killed and another one, which may recover it, leaves
	isolate                // a host reaches nobody and is reached by nobody
	mute                   // what it says is lost
	deafen                 // what is said to it is lost
	halves                 // the hosts with small numbers and the others do not hear each other
	bridged                // the same, but one host hears and reaches all
	ring                   // each node reaches its two neighbours only
	leadAlone              // whoever leads is isolated
	unplug                 // the link of a host is down
	lose                   // a host loses a share of what reaches it
	hog                    // processes take all CPUs
	crashBase              // the PostgreSQL server of ledger and databases crashes, and recovers
	stallBase              // it stands still
	slowBase               // it gets its work done in a tenth of the time only
	hideBase               // a host does not reach it
	crashStore             // the S3 server dies, and comes back after the fault's time
	stallStore             // it stands still
	storeErrs              // it answers a share of the requests with an error, or not
	fillDisk               // the disk of the local storage is full
	slowDisk               // each write to a node's log takes up to half a second longer
	jumpClock              // a node's clock jumps by up to an hour, and back
	drainLead              // whoever leads is drained: it hands over; then it is undrained
	grow                   // another node joins, and leaves in order
	moveVote               // a voter leaves for good, so that another one is promoted, and comes back as a newcomer
	kinds
)

var kindNames = []string{
	"kill node", "kill warden", "kill warden and node", "kill child", "kill host app", "host dies", "all hosts die", "pause node", "pause host", "pause host app",
	"leave", "leave during recovery", "isolate", "mute", "deafen", "halves", "bridge", "ring", "leader alone", "link down", "loss", "cpu hogs",
	"postgres crashes", "postgres stalls", "postgres slow", "postgres out of reach", "s3 dies", "s3 stalls", "s3 errors", "disk full", "slow disk", "clock jumps",
	"leader drained", "another node joins", "voter leaves for good",
}

func (k kind) String() string { return kindNames[k] }

// weight is how often a kind is drawn, beside the others.
func (k kind) weight() int {
	switch k {
	case killNode, pauseNode, killBoth, isolate:
		return 4
	case hostDies, killGuest, pauseGuest, leadAlone, halves, lose:
		return 3
	case allDie, grow, hog, fillDisk:
		return 1
	}
	return 2
}

// network tells whether the kind needs namespaces.
func (k kind) network() bool { return k >= isolate && k <= lose || k == hideBase }

// fault happens at a time, to a node, for a while.
type fault struct {
	At, For time.Duration
	Kind    kind
	Node    int // from 0
	Other   int // never Node
	Share   int // from 50 to 499: of what is lost, in thousandths; see slow and jump
}

func (f fault) String() string {
	s := fmt.Sprintf("%7.1fs %s", f.At.Seconds(), f.Kind)
	switch f.Kind {
	case allDie, ring, leadAlone, hog, crashBase, stallBase, slowBase, crashStore, stallStore, fillDisk, drainLead, grow:
	case storeErrs:
		s += fmt.Sprintf(" %d.%d%%", f.Share/10, f.Share%10)
	case slowDisk:
		s += fmt.Sprintf(" n%d %v", f.Node+1, f.slow())
	case jumpClock:
		s += fmt.Sprintf(" n%d %v", f.Node+1, f.jump())
	case leaveLate:
		s += fmt.Sprintf(" n%d, n%d", f.Node+1, f.Other+1)
	case lose:
		s += fmt.Sprintf(" n%d %d.%d%%", f.Node+1, f.Share/10, f.Share%10)
	default:
		s += fmt.Sprintf(" n%d", f.Node+1)
	}
	return s + fmt.Sprintf(" for %.1fs", f.For.Seconds())
}

// slow is by how much a write is slower: below what a node takes for a stalled disk.
func (f fault) slow() time.Duration { return time.Duration(f.Share) * time.Millisecond }

// jump is by how much a clock is off, either way.
func (f fault) jump() time.Duration {
	by := time.Duration(f.Share-275) * 16 * time.Second
	return by.Round(time.Second)
}

// plan is all that is drawn from a seed.
type plan struct {
	Seed     uint64
	Nodes    int
	Postgres bool // the ledger is in a database; else in the group
	Voters   int
	Faults   []fault
	Until    time.Duration // when all faults are over
	Bare     bool          // nodes have no storages, databases and schedules
}

func (p plan) String() string {
	var b strings.Builder
	ledger := "embedded"
	if p.Postgres {
		ledger = "postgres"
	}
	fmt.Fprintf(&b, "seed %d: %d nodes, %d voters, ledger %s, %d faults in %v\n", p.Seed, p.Nodes, p.Voters, ledger, len(p.Faults), p.Until)
	for _, f := range p.Faults {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

// calm is how long nothing is done to the group, so that it forms and work begins.
const calm = 5 * time.Second

// draw makes the plan of a seed. Faults come every 1 to 9 s and last up to 20 s, so that they often overlap; from time to
// time the group has half a minute of rest, in which it must get work done.
func draw(seed uint64, until time.Duration) plan {
	rng := rand.New(rand.NewPCG(seed, 10))
	p := plan{Seed: seed, Nodes: 5, Postgres: seed%2 == 0, Voters: 3 + 2*rng.IntN(2), Until: until}
	var bag []kind
	for k := range kinds {
		bag = append(bag, slices.Repeat([]kind{k}, k.weight())...)
	}
	between := func(from, to time.Duration) time.Duration { return from + time.Duration(rng.Int64N(int64(to-from))) }
	at := calm
	for {
		f := fault{At: at, Kind: bag[rng.IntN(len(bag))], Node: rng.IntN(p.Nodes), Share: 50 + rng.IntN(450)}
		f.Other = (f.Node + 1 + rng.IntN(p.Nodes-1)) % p.Nodes
		switch rng.IntN(3) {
		case 0:
			f.For = between(200*time.Millisecond, 2*time.Second) // fast: back before anybody's lease is over
		case 1:
			f.For = between(2*time.Second, 8*time.Second)
		default:
			f.For = between(8*time.Second, 20*time.Second)
		}
		if f.For = f.For.Round(100 * time.Millisecond); f.At+f.For > until {
			return p
		}
		p.Faults = append(p.Faults, f)
		at += between(time.Second, 9*time.Second).Round(100 * time.Millisecond)
		if rng.IntN(12) == 0 {
			at += 30 * time.Second
		}
	}
}

// The same seed draws the same plan, another one another; every kind is drawn sooner or later, and no fault outlives the plan.
func TestAPlanIsItsSeeds(t *testing.T) {
	t.Parallel()
	met := map[kind]bool{}
	for seed := range uint64(20) {
		p := draw(seed, 10*time.Minute)
		if p.String() != draw(seed, 10*time.Minute).String() || p.String() == draw(seed+1, 10*time.Minute).String() {
			t.Errorf("seed %d: the plan is not its own", seed)
		}
		for _, f := range p.Faults {
			met[f.Kind] = true
			if f.At < calm || f.At+f.For > p.Until || f.Node == f.Other || f.Other >= p.Nodes || !strings.Contains(p.String(), f.String()) {
				t.Errorf("seed %d: %v", seed, f)
			}
		}
	}
	for k := range kinds {
		if !met[k] {
			t.Errorf("%v is never drawn", k)
		}
	}
}
