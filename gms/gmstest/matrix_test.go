package gmstest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/gms"
)

// The failure matrix of DESIGN.md section 10, its rows 1 to 10, 21 and 22 as counted there: what becomes of a dead node's work,
// whoever leads. TestFailureMatrix plays each in every casting: one component and two, a victim that leads and one that follows,
// a recoverer that leads and one that follows; TestFailureMatrixIsWhole holds that no cell is missing. A subtest's name says which cell it is. Where it matters what a process is, a row is played with
// processes too, by daemons with nine components, which the selector spreads over those who live and have registered them:
//
//	row                          | with processes
//	-----------------------------+-----------------------------------------------------------------------------------
//	 1 node killed               | TestKillWhileCreating, TestKillWhileUploading, TestKillWhileRestoring,
//	                             | TestTasksKilledAtRandomMoments; a leader: TestKillTheLeader; below its warden:
//	                             | TestWardenStartsItsNodeAgain, TestObituaryClosesAtOnce
//	 2 recoverer killed          | TestKillTheRecoverer
//	 3 recoverer stops, hangs    | TestFault03RecovererStopsAsPlanned and TestRule13_HungActionLosesItsFence say what the action sees
//	 4 several die together      | TestFault02LeaderAndSecondDieTogether says what the others are told
//	 5 paused past its TTL       | TestPausedOwner, TestPausedRestorer, TestPausedOwnerPostgresLedger
//	 6 fast restart              | TestKillWhileUploading, TestWardenStartsItsNodeAgain
//	 7 cut off                   | TestCutOff, with sockets; TestLongPartitionHeals, TestOneWayCuts
//	 8 quorum lost               | TestQuorumLostAndRegained, TestFenceIsLostWithTheQuorumAndGoesOnAfterIt
//	 9 lies about the dead       | TestForgedObituaries, TestFault11FalseReportOfAWatchdog
//	10 not registered everywhere | TestFault08ChosenMemberLacksTheComponent
//	21 warden killed, orphaned,  | TestWardenIsKilledInEachRole, TestWardenIsKilled, TestAdoption; TestOrphan; TestSecondWarden
//	   second warden             |
//	22 all die                   | TestAllDieAndComeBack, TestRestartOfAll

// row is one line of the matrix.
type row struct {
	name   string
	nodes  int                                      // default 5; all of them vote
	late   bool                                     // components are registered while it is played
	config func(x *scene) func(string, *gms.Config) // may be nil
	play   func(x *scene)
}

var rows = []row{
	{name: "01 node killed", play: nodeKilled},
	{name: "02 recoverer killed, appointed", play: func(x *scene) { recovererKilled(x, beforeAcquire) }},
	{name: "02 recoverer killed, fence raised", play: func(x *scene) { recovererKilled(x, afterAcquire) }},
	{name: "02 recoverer killed, half done", play: func(x *scene) { recovererKilled(x, halfDone) }},
	{name: "03 recoverer stops as planned", play: recovererStops},
	{name: "03 recoverer hangs", play: recovererHangs},
	{name: "04 two die together", play: func(x *scene) { dieTogether(x, 2) }},
	{name: "04 three die together", nodes: 7, play: func(x *scene) { dieTogether(x, 3) }},
	{name: "05 paused and resumed", play: pausedAndResumed},
	{name: "06 fast restart", config: withoutRefused, play: fastRestart},
	{name: "07 cut off alone", play: func(x *scene) { cutOff(x, 1) }},
	{name: "07 cut off with another", play: func(x *scene) { cutOff(x, 2) }},
	{name: "07 two halves", play: halves},
	{name: "07 one-way cut", play: oneWayCut},
	{name: "08 quorum lost", play: quorumLost},
	{name: "09 lies about the dead", config: withWardens, play: lies},
	{name: "10 component registered on some", late: true, play: registeredOnSome},
	{name: "21 warden killed, then its node", config: withWardens, play: wardenKilled},
	{name: "21 warden killed, the next one adopts", config: withWardens, play: wardenReplaced},
	{name: "21 node orphaned", config: withWardens, play: nodeOrphaned},
	{name: "21 second warden", config: withWardens, play: secondWarden},
	{name: "22 all die", play: allDie},
}

func TestFailureMatrix(t *testing.T) {
	for _, r := range rows {
		for _, c := range cases() {
			t.Run(fmt.Sprintf("%s/%s", r.name, c), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r.play(newScene(t, r, c))
				})
			})
		}
	}
}

// TestFailureMatrixIsWhole: each row of DESIGN.md that is played here has its number, and each casting is there.
func TestFailureMatrixIsWhole(t *testing.T) {
	played := map[string]bool{}
	for _, r := range rows {
		played[r.name[:2]] = true
	}
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 21, 22} {
		if !played[fmt.Sprintf("%02d", n)] {
			t.Errorf("row %d is not played", n)
		}
	}
	for components := 1; components <= 2; components++ {
		for _, victim := range []bool{false, true} {
			for _, recoverer := range []bool{false, true} {
				if want := (casting{components, victim, recoverer}); !slices.Contains(cases(), want) {
					t.Errorf("nothing is played with %v", want)
				}
			}
		}
	}
}

// casting says who plays what.
type casting struct {
	components     int
	victimLeads    bool
	recovererLeads bool
}

func (c casting) String() string {
	role := map[bool]string{true: "leader", false: "follower"}
	return fmt.Sprintf("%d components, victim %s, recoverer %s", c.components, role[c.victimLeads], role[c.recovererLeads])
}

// cases are all castings.
func cases() (list []casting) {
	for i := range 8 {
		list = append(list, casting{components: 1 + i&1, victimLeads: i&2 != 0, recovererLeads: i&4 != 0})
	}
	return list
}

// nodeKilled: whatever its work had come to, it is closed in moments, recovered by one, and each part is done once.
func nodeKilled(x *scene) {
	x.begin(0, 2, parts)
	x.kill(x.victim)
	x.finished()
	x.by(x.recoverer())
	limit := 100 // milliseconds
	if x.victimLeads {
		limit = 1500 // until another leads
	}
	if took := x.closedAfter(x.victim); took.Milliseconds() > int64(limit) {
		x.t.Errorf("closed after %v", took)
	}
}

// recovererKilled: the next candidate goes on at the index at which the recoverer was closed, with the rest only.
func recovererKilled(x *scene, at point) {
	x.begin(0)
	x.app.hold(at)
	x.kill(x.victim)
	x.held()
	first := x.recoverer()
	before := x.tokens()
	x.kill(first)
	x.finished()
	for _, r := range x.ended() {
		if r.Node != x.victim {
			continue
		}
		moved := slices.IndexFunc(r.Steps, func(s gms.Step) bool { return s.What == "handed over" && s.Node == first })
		if moved < 0 || moved+1 == len(r.Steps) || r.Steps[moved+1].What != "appointed" || r.Steps[moved+1].Position != r.Steps[moved].Position {
			x.t.Errorf("%s was not handed over at one index: %+v", r.Component, r.Steps)
		} else if p := x.closedAt(first); r.Steps[moved].Position != p {
			x.t.Errorf("%s was handed over at %d, its recoverer closed at %d", r.Component, r.Steps[moved].Position, p)
		}
		if r.Token <= before[r.Component] {
			x.t.Errorf("%s ended under token %d after %d", r.Component, r.Token, before[r.Component])
		}
	}
}

func recovererStops(x *scene) {
	x.begin(0)
	x.app.hold(afterAcquire)
	x.kill(x.victim)
	x.held()
	before := x.tokens()
	x.w.Stop(x.recoverer(), x.components...)
	x.finished()
	x.largerTokens(before)
}

// recovererHangs: it holds its session and gives no progress.
func recovererHangs(x *scene) {
	x.begin(0)
	x.app.hold(hanging)
	x.kill(x.victim)
	x.held()
	first, before := x.recoverer(), x.tokens()
	x.finished()
	x.largerTokens(before)
	if !x.w.Node(first).Standing() {
		x.t.Errorf("%s, which only hung, does not stand", first)
	}
	for _, e := range x.app.all() {
		if e.by == first && e.node != first {
			x.t.Errorf("the hung recoverer did %+v", e)
		}
	}
}

func dieTogether(x *scene, n int) {
	x.begin(0, 3)
	dead := []string{x.victim}
	if leader := x.w.Leader(); leader != x.victim {
		dead = append(dead, leader)
	}
	for _, name := range x.w.Others(dead...) {
		if len(dead) < n {
			dead = append(dead, name)
		}
	}
	x.beginOn(dead[len(dead)-1], 2)
	x.kill(dead...)
	x.finished()
	once(x.w, x.app.app, dead...)
}

// pausedAndResumed: what the victim does late is refused; it stands again, as another run, and nothing was done twice.
func pausedAndResumed(x *scene) {
	x.begin(0, 2)
	run := x.w.Node(x.victim).Run()
	x.w.Pause(x.victim)
	x.w.AwaitGone(x.victim)
	x.finished()
	x.w.Resume(x.victim)
	x.w.AwaitView(x.w.Names()...)
	if x.w.Node(x.victim).Run() == run {
		x.t.Error("it stands as the run that was closed")
	}
	x.refused(run)
	x.finished()
	if n := len(x.w.observer.closed(x.victim)); n != 1 {
		x.t.Errorf("%d runs of it were closed", n)
	}
}

// fastRestart: the new run closes the old one, and its component is fenced until the recovery by another has ended.
func fastRestart(x *scene) {
	x.begin(0)
	x.app.hold(afterAcquire)
	x.died(x.victim)
	x.w.Kill(x.victim)
	Advance(200 * millisecond)
	n := x.w.Start(x.victim)
	x.w.AwaitView(x.w.Names()...)
	x.held()
	for _, c := range x.components {
		if fenced, _, err := n.Group.IsFenced(x.t.Context(), c, x.victim); !fenced || err != nil {
			x.t.Errorf("%s of the new run: fenced %t, %v", c, fenced, err)
		}
	}
	if x.recoverer() == x.victim {
		x.t.Error("the new run recovers the old one")
	}
	x.app.letGo()
	x.finished()
	for _, c := range x.w.observer.closed(x.victim) {
		if evidences[c.Evidence] != "newer run" {
			x.t.Errorf("closed as %v", c.Evidence)
		}
	}
	if len(x.w.observer.closed(x.victim)) != 1 {
		x.t.Errorf("%d runs were closed", len(x.w.observer.closed(x.victim)))
	}
}

// cutOff: the minority recovers nobody and stops at its deadline, the majority goes on, the heal brings all together.
func cutOff(x *scene, n int) {
	x.begin(0, 2)
	minor := append([]string{x.victim}, x.w.Others(x.victim, x.w.Leader())[:n-1]...)
	run := x.w.Node(x.victim).Run()
	x.died(minor...)
	x.w.Partition(minor)
	x.w.Await("views of the majority alone", func() bool { return x.w.oneView(x.w.Others(minor...)) })
	for _, name := range minor {
		if x.w.Node(name).Standing() {
			x.t.Errorf("%s holds a lease in the minority when it is closed", name)
		}
	}
	x.finished()
	for _, e := range x.app.all() {
		if slices.Contains(minor, e.by) && e.recovery {
			x.t.Errorf("recovered in the minority: %+v", e)
		}
	}
	x.w.Heal()
	x.w.AwaitView(x.w.Names()...)
	x.refused(run)
	x.finished()
}

// halves: one of five dies when the other four are cut in two halves, and there is no majority. Nobody is recovered, all stop at
// their deadlines, and after the heal all come together.
func halves(x *scene) {
	x.begin(0, 2)
	run := x.w.Node(x.victim).Run()
	others := x.w.Others(x.victim, x.w.Leader())
	x.beginOn(others[1], 1)
	x.w.Partition([]string{x.victim, others[0]})
	x.kill(others[1])
	x.w.Await("the end of all leases", func() bool {
		return !slices.ContainsFunc(x.w.Living(), func(n *Node) bool { return n.Standing() })
	})
	Advance(minute)
	for _, n := range x.w.Living() {
		x.cannot(n)
	}
	if n := len(x.w.observer.closings); n > 0 {
		x.t.Errorf("%d runs were closed by a half", n)
	}
	x.w.Heal()
	x.w.AwaitView(x.w.Others(others[1])...)
	if x.w.Node(x.victim).Run() != run {
		x.refused(run)
	}
	x.kill(x.victim) // which may have lived on, with its work
	x.w.AwaitGone(x.victim)
	x.finished()
}

// oneWayCut: whatever the group makes of a node that hears and is not heard, nothing is done twice, and all converge.
func oneWayCut(x *scene) {
	x.begin(0, 2)
	x.w.CutOneWay(x.victim)
	Advance(30 * second)
	x.w.Heal()
	x.w.AwaitView(x.w.Names()...)
	for _, c := range x.w.observer.closings {
		if c.Node != x.victim {
			x.t.Errorf("%s was closed too, as %v", c.Node, c.Evidence)
		}
	}
	x.kill(x.victim) // which may have lived on, with its work
	x.w.AwaitGone(x.victim)
	x.finished()
}

// quorumLost: nothing is granted and nobody is recovered; leases run out; with the quorum all returns.
func quorumLost(x *scene) {
	x.begin(0)
	dead := append([]string{x.victim}, x.w.Others(x.victim)[:2]...)
	x.kill(dead...)
	living := x.w.Living()
	x.w.Await("the end of all leases", func() bool {
		return !slices.ContainsFunc(living, func(n *Node) bool { return n.Standing() })
	})
	Advance(minute)
	for _, n := range living {
		x.cannot(n)
	}
	if n := len(x.w.observer.closings); n > 0 {
		x.t.Errorf("%d runs were closed without a quorum", n)
	}
	for _, name := range dead {
		x.w.Start(name)
	}
	x.w.AwaitView(x.w.Names()...)
	x.finished()
	once(x.w, x.app.app, append(dead, x.closedOthers(dead)...)...)
}

// registeredOnSome: it goes to the one that has it; when nobody has, it waits, and nothing is lost.
func registeredOnSome(x *scene) {
	x.registers(x.victim)
	x.begin(1)
	leader := x.w.Leader()
	if x.victimLeads { // who leads after it is known only when it has stopped
		x.w.Pause(x.victim)
		x.w.Await("another leader", func() bool { leader = x.w.Leader(); return leader != "" && leader != x.victim })
	}
	second := leader
	if !x.recovererLeads {
		second = x.w.Others(x.victim, leader)[0]
	}
	x.registers(second)
	x.kill(x.victim)
	x.finished()
	x.by(second)
	x.beginOn(second, 2)
	x.kill(second)
	x.w.Await("recoveries that wait", func() bool {
		list, _ := x.w.Living()[0].Group.Recoveries()
		return len(list) == len(x.components) && !slices.ContainsFunc(list, func(r gms.Recovery) bool { return r.State != "waiting" })
	})
	Advance(minute)
	third := x.w.Others()[0]
	x.registers(third)
	x.finished()
	x.by(second, third)
}

// allDie: with a recovery raised and its work half done, everybody dies; after the restart it goes on.
func allDie(x *scene) {
	x.begin(0)
	x.app.hold(halfDone)
	x.kill(x.victim)
	x.held()
	x.kill(x.w.Others()...)
	Advance(minute)
	for _, name := range x.w.Names() {
		x.w.Start(name)
	}
	x.w.AwaitView(x.w.Names()...)
	x.finished()
	for _, name := range x.w.Names() {
		if n := len(x.w.observer.closed(name)); n != 1 {
			x.t.Errorf("%d runs of %s were closed", n, name)
		}
	}
}
