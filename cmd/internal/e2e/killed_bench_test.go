package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// BenchmarkKilledNode measures from kill -9 of a node process below its warden until the fence on its backups is raised, as
// their recoverer's own log dates it, in a group of five: one kill per iteration.
//
//	go test -run none -bench KilledNode -benchtime 50x ./cmd/internal/e2e
//
// BenchmarkKilledLeader is the same with whoever leads as the victim.
func BenchmarkKilledNode(b *testing.B)   { benchmarkKilled(b, false) }
func BenchmarkKilledLeader(b *testing.B) { benchmarkKilled(b, true) }

func benchmarkKilled(b *testing.B, leaders bool) {
	c := newCluster(b, options{nodes: 5, watched: true, lasting: time.Hour, level: "info"})
	c.up()
	var delays []time.Duration
	for i := range b.N {
		c.steady()
		leader := c.view("n1").Leader
		victim := leader
		if !leaders {
			at := i % len(c.names)
			for victim = c.names[at]; victim == leader; victim = c.names[at] {
				at = (at + 1) % len(c.names)
			}
		}
		run, marks := c.runOf(leader, victim), c.logSizes()
		killed := time.Now()
		if err := syscall.Kill(c.nodeOf(victim), syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		delays = append(delays, c.raisedAfter(run, marks).Sub(killed))
	}
	slices.Sort(delays)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(delays[len(delays)/2]), "median-ms")
	b.ReportMetric(ms(delays[len(delays)-1]), "worst-ms")
	b.ReportMetric(0, "ns/op") // says nothing: most of it is waiting for the killed to be back
}

// steady waits until every node is ready and nothing is being recovered. A warden that has seen too many deaths has given
// up: another one begins anew.
func (c *cluster) steady() {
	c.t.Helper()
	for _, name := range c.names {
		c.until(name+" is ready", func() bool {
			select {
			case <-c.proc(name).done:
				c.start(name)
			default:
			}
			s, err := c.client(name).Status(c.ctx)
			return err == nil && s.Ready && s.Lease == "held"
		})
	}
	c.recovered(c.names[0])
	c.until("all see all", func() bool {
		for _, name := range c.names {
			if v := c.view(name); len(v.Members) != len(c.names) || v.Leader != c.view(c.names[0]).Leader || v.Leader == "" {
				return false
			}
		}
		return true
	})
}

func (c *cluster) logSizes() map[string]int64 {
	sizes := map[string]int64{}
	for _, name := range c.names {
		if fi, err := os.Stat(c.proc(name).log); err == nil {
			sizes[name] = fi.Size()
		}
	}
	return sizes
}

// raisedAfter is when the fence on the backups of a run was raised, by the log of the node that raised it.
func (c *cluster) raisedAfter(run string, from map[string]int64) (at time.Time) {
	c.t.Helper()
	for {
		select { // seldom: whoever reads the logs meanwhile takes the processors from those that recover
		case <-c.ctx.Done():
			c.t.Fatalf("waited in vain until the fence on %s is raised", run)
		case <-time.After(200 * time.Millisecond):
		}
		for _, name := range c.names {
			if at = raisedIn(c.proc(name).log, from[name], run, name); !at.IsZero() {
				return at
			}
		}
	}
}

func raisedIn(path string, from int64, run, node string) time.Time {
	data, err := os.ReadFile(path)
	if err != nil || int64(len(data)) < from {
		return time.Time{}
	}
	lines := bufio.NewScanner(bytes.NewReader(data[from:]))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Time                          time.Time
			Msg, Run, Appointee, Recovers string
		}
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Msg == "gms: fence raised" && l.Run == run && l.Appointee == node && l.Recovers == "backup" {
			return l.Time
		}
	}
	return time.Time{}
}
