package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/bench"
)

// BenchmarkKilledNode measures from kill -9 of a node process below its warden until the fence on its backups is raised, as
// their recoverer's own log dates it, in a group of five at rest: one kill per iteration.
//
//	go test -run none -bench KilledNode -benchtime 200x -timeout 60m ./cmd/internal/e2e
//
// BenchmarkKilledLeader is the same with whoever leads as the victim. Both print when the middle one of the deaths came to
// each of its steps.
func BenchmarkKilledNode(b *testing.B)   { benchmarkKilled(b, false) }
func BenchmarkKilledLeader(b *testing.B) { benchmarkKilled(b, true) }

func benchmarkKilled(b *testing.B, leaders bool) {
	c := newCluster(b, options{nodes: 5, watched: true, lasting: time.Hour, level: "info"})
	c.up()
	var deaths []killing
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
		run, marks, pid := c.runOf(leader, victim), c.logSizes(), c.nodeOf(victim)
		c.rest()
		killed := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		deaths = append(deaths, c.watchKilling(run, killed, marks))
	}
	fmt.Printf("%s: %s", b.Name(), table(deaths))
	bench.SpreadOf(delaysOf(deaths, "raised")).Report(b)
	b.ReportMetric(0, "ns/op") // says nothing: most of it is waiting for the killed to be back
}

// table shows how long after the kill each step of a death came.
func table(deaths []killing) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ms after the kill, %d deaths, %d by obituary\n", len(deaths), byObituary(deaths))
	for _, s := range steps {
		if list := delaysOf(deaths, s.name); len(list) > 0 {
			d := bench.SpreadOf(list)
			fmt.Fprintf(&b, "  %-10s p50 %6.1f  p99 %6.1f  worst %6.1f  %s\n", s.name, ms(d.P50), ms(d.P99), ms(d.Worst), s.what)
		}
	}
	return b.String()
}

func byObituary(deaths []killing) (n int) {
	for _, d := range deaths {
		if d.evidence == "obituary" {
			n++
		}
	}
	return n
}

// delaysOf lists when those deaths that have the step came to it.
func delaysOf(deaths []killing, step string) (list []time.Duration) {
	for _, d := range deaths {
		if at, ok := d.at[step]; ok {
			list = append(list, at.Sub(d.killed))
		}
	}
	return list
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

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

// restless is what the nodes of a group at rest use at most, all together, in share of one processor.
const restless = 0.25

// rest waits until what the nodes did to be ready is over, so that a death is measured and not the end of a start; for at most
// five seconds: other work than ours may be what keeps them busy.
func (c *cluster) rest() {
	c.t.Helper()
	const look = 200 * time.Millisecond
	var pids []int
	for _, name := range c.running() {
		pids = append(pids, c.processOf(name))
	}
	before := used(pids)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		select {
		case <-c.ctx.Done():
			c.t.Fatal("waited in vain until the nodes are at rest")
		case <-time.After(look):
		}
		now := used(pids)
		if float64(now-before) <= restless*float64(look) {
			return
		}
		before = now
	}
}

// processOf is a node's own process, whether or not a warden stands above it.
func (c *cluster) processOf(name string) int {
	if c.watched {
		return c.nodeOf(name)
	}
	return c.proc(name).cmd.Process.Pid
}

// used is the processor time that processes have had.
func used(pids []int) (d time.Duration) {
	for _, pid := range pids {
		if ticks := ticksOf(pid); ticks != nil {
			d += ticks[0] + ticks[1]
		}
	}
	return d
}

// usedWithChildren is the processor time that a process and those of its children that have ended have had.
func usedWithChildren(t testing.TB, pid int) (d time.Duration) {
	t.Helper()
	ticks := ticksOf(pid)
	if ticks == nil {
		t.Fatalf("process %d has ended", pid)
	}
	for _, some := range ticks {
		d += some
	}
	return d
}

// ticksOf is the processor time of a process, as user and in the system, and of its children that have ended; nil when it is
// not there.
func ticksOf(pid int) (list []time.Duration) {
	const tick = 10 * time.Millisecond
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, field := range f[11:15] {
		n, _ := strconv.Atoi(field)
		list = append(list, time.Duration(n)*tick)
	}
	return list
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
