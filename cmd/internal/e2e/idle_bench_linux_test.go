package e2e

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/bench"
)

// BenchmarkIdle looks for as many seconds as it has iterations at a group of five nodes that do nothing. Each is a warden and
// the node below it: core-% is what the busiest pair had of one processor, and peak-MB the most memory that any pair ever had,
// their start included.
//
//	go test -run none -bench Idle -benchtime 60x ./cmd/internal/e2e
func BenchmarkIdle(b *testing.B) {
	c := newCluster(b, options{nodes: 5, watched: true, lasting: time.Hour, level: "info"})
	c.up()
	c.steady()
	c.rest()
	pairs := map[string][]int{}
	before := map[string]time.Duration{}
	for _, name := range c.names {
		pairs[name] = []int{c.proc(name).cmd.Process.Pid, c.nodeOf(name)}
		before[name] = used(pairs[name])
	}
	began := time.Now()
	select {
	case <-c.ctx.Done():
		b.Fatal("the time is over")
	case <-time.After(time.Duration(b.N) * time.Second):
	}
	took := time.Since(began)
	busiest, most := time.Duration(0), int64(0)
	for name, pair := range pairs {
		busiest, most = max(busiest, used(pair)-before[name]), max(most, peak(b, pair[0])+peak(b, pair[1]))
	}
	b.ReportMetric(100*busiest.Seconds()/took.Seconds(), "core-%")
	b.ReportMetric(float64(most)/(1<<20), "peak-MB")
	b.ReportMetric(0, "ns/op") // is a second
}

// BenchmarkStart measures from the start of a node's process until it says that it is ready, in a group of which three others
// run, and which knows it: once per iteration.
//
//	go test -run none -bench Start -benchtime 20x ./cmd/internal/e2e
func BenchmarkStart(b *testing.B) {
	c := newCluster(b, options{nodes: 4, watched: true, lasting: time.Hour, level: "info"})
	c.up()
	var took []time.Duration
	for range b.N {
		c.steady()
		c.halt("n4")
		c.rest()
		began := time.Now()
		c.start("n4")
		c.ready("n4")
		took = append(took, time.Since(began))
	}
	bench.SpreadOf(took).Report(b)
	b.ReportMetric(0, "ns/op") // of the stop too
}
