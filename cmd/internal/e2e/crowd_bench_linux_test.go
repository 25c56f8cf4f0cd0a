package e2e

import (
	"flag"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/bench"
)

var crowd = flag.Int("members", 7, "nodes of BenchmarkCrowd, each a process below its warden")

// BenchmarkCrowd kills one node after the other of a large group, whoever does not lead, and measures from the leader's word
// that it closes the dead run until the last of the others has applied the view without it, as their own logs date both: by
// the log those that follow it, on their streams those that are fed.
//
//	go test -run none -bench Crowd -benchtime 20x -timeout 60m ./cmd/internal/e2e -members 50
func BenchmarkCrowd(b *testing.B) {
	c := newCluster(b, options{nodes: *crowd, watched: true, lasting: time.Hour, level: "info"})
	c.up()
	var last []time.Duration
	for i := range b.N {
		c.steady()
		leader := c.view("n1").Leader
		victim := c.names[i%len(c.names)]
		if victim == leader {
			victim = c.names[(i+1)%len(c.names)]
		}
		run, marks, pid := c.runOf(leader, victim), c.logSizes(), c.nodeOf(victim)
		c.rest()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		last = append(last, c.goneFromAll(run, victim, marks))
	}
	bench.SpreadOf(last).Report(b)
	b.ReportMetric(0, "ns/op") // most of it is waiting for the killed to be back
}

// goneFromAll waits until all but the victim have applied the end of its run, and says how long after the evidence the last
// one did.
func (c *cluster) goneFromAll(run, victim string, from map[string]int64) time.Duration {
	c.t.Helper()
	for {
		select { // seldom: whoever reads the logs meanwhile takes the processors from those that are measured
		case <-c.ctx.Done():
			c.t.Fatalf("waited in vain until %s is gone from all views", run)
		case <-time.After(time.Second):
		}
		var evidence, last time.Time
		applied := 0
		for _, name := range c.names {
			for _, l := range linesOf(c.proc(name).log, from[name]) {
				switch {
				case l.Run != run:
				case l.Msg == "gms: closing run" && evidence.IsZero():
					evidence = l.Time
				case l.Msg == "gms: run closed" && name != victim:
					applied++
					if l.Time.After(last) {
						last = l.Time
					}
				}
			}
		}
		if applied >= len(c.names)-1 && !evidence.IsZero() {
			return last.Sub(evidence)
		}
	}
}
