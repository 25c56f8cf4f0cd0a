package gms

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// BenchmarkPlannedStop measures from the call of Stop on a member that still claims something until another has raised the
// fence on it, in a group of five on real sockets and disks, all in this process: one stop per iteration, of whoever does not
// lead. Nothing has to end before: what a host lets end first comes on top.
//
//	go test -run none -bench PlannedStop -benchtime 50x ./gms
func BenchmarkPlannedStop(b *testing.B) {
	tg := newLastingGroup(b, 5, time.Hour)
	tg.form()
	var took []time.Duration
	for i := range b.N {
		leader, others := tg.leaderAmong(tg.names...)
		took = append(took, tg.takeOver(others[i%len(others)], leader, fmt.Sprint("item ", i)))
	}
	slices.Sort(took)
	ms := func(at int) float64 { return took[at].Seconds() * 1000 }
	b.ReportMetric(ms(len(took)/2), "p50-ms")
	b.ReportMetric(ms(len(took)*99/100), "p99-ms")
	b.ReportMetric(ms(len(took)-1), "worst-ms")
	b.ReportMetric(0, "ns/op") // of the return too
}

// takeOver stops a member that claims an item, has it recovered, and starts it again. It says how long it took until the
// fence was raised; the recovery is seen at the witness.
func (tg *testGroup) takeOver(leaver, witness, item string) time.Duration {
	tg.t.Helper()
	node, seen := tg.nodes[leaver], tg.nodes[witness]
	_, run := node.Self()
	claim, err := node.Claim(tg.ctx, "work", item, 1)
	if err != nil {
		tg.t.Fatal(err)
	}
	stopped := make(chan struct{})
	began := time.Now()
	go func() { // takeOver waits for its end
		defer close(stopped)
		if err := node.Stop(tg.ctx, "work", "rest"); err != nil {
			tg.t.Errorf("stop %s: %v", leaver, err)
		}
		node.router.Stop()
	}()
	var r Recovery
	tg.await(seen, "an appointment", func() bool {
		for _, r = range recoveriesOf(seen) {
			if r.Run == run && r.Component == "work" && r.AppointeeNode != "" {
				return true
			}
		}
		return false
	})
	heir := tg.nodes[r.AppointeeNode]
	fence, err := heir.AcquireFence(tg.ctx, r.Appointment)
	if err != nil {
		tg.t.Fatal(err)
	}
	took := time.Since(began)
	if err := heir.EndFencedClaim(tg.ctx, r.Appointment, fence.Token, claim, signals.Free); err != nil {
		tg.t.Fatal(err)
	}
	if err := heir.ReleaseFence(tg.ctx, r.Appointment, fence.Token); err != nil {
		tg.t.Fatal(err)
	}
	<-stopped
	tg.start(leaver)
	tg.awaitStanding(leaver)
	tg.awaitWhole(leaver)
	return took
}
