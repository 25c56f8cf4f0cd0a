package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"time"
)

// killing is when the recovery of one killed run came to its steps, as the nodes' logs date them. Steps that it did not need
// (an election, while the leader lives) are not in it.
type killing struct {
	killed   time.Time
	evidence string
	at       map[string]time.Time
}

// line is what the benchmark reads of a log line.
type line struct {
	Time                                    time.Time
	Msg, Run, Appointee, Recovers, Recovery string
	Evidence, What                          string
}

// steps of a death, in order. Each comes with the first line of any log that says so; node is whose log it is.
var steps = []struct {
	name, what string
	is         func(l line, run, node string) bool
}{
	{"ended", "its warden has the word of the kernel", func(l line, run, _ string) bool {
		return strings.HasPrefix(l.Msg, "warden: the node killed by") && l.Run == run
	}},
	{"announced", "its warden begins to tell the others", func(l line, run, _ string) bool {
		return l.Msg == "warden: announces" && l.Run == run && l.What == "died"
	}},
	{"stands", "a voter stands for election, where the leader was killed", func(l line, _, _ string) bool {
		return strings.HasPrefix(l.Msg, "gms: standing for election")
	}},
	{"leads", "the new leader's term is established", func(l line, _, _ string) bool { return l.Msg == "gms: leading" }},
	{"evidence", "the leader proposes to close its run", func(l line, run, _ string) bool {
		return l.Msg == "gms: closing run" && l.Run == run
	}},
	{"closed", "the view without it is committed, the recoverer appointed", func(l line, run, _ string) bool {
		return l.Msg == "gms: run closed" && l.Run == run
	}},
	{"delivered", "the recoverer begins", func(l line, run, _ string) bool {
		return l.Msg == "recovery delivered" && l.Run == run && l.Recovery == "backup"
	}},
	{"raised", "the recoverer has the fence on its backups", func(l line, run, node string) bool {
		return l.Msg == "gms: fence raised" && l.Run == run && l.Recovers == "backup" && l.Appointee == node
	}},
}

// read takes one line of a node's log.
func (d *killing) read(l line, run, node string) {
	for _, s := range steps {
		if before, seen := d.at[s.name]; s.is(l, run, node) && (!seen || l.Time.Before(before)) {
			d.at[s.name] = l.Time
		}
	}
	if l.Msg == "gms: run closed" && l.Run == run {
		d.evidence = l.Evidence
	}
}

// watchKilling waits until the fence on the backups of a killed run is raised, and reads its steps from what was logged since.
func (c *cluster) watchKilling(run string, killed time.Time, from map[string]int64) killing {
	c.t.Helper()
	for {
		select { // seldom: whoever reads the logs meanwhile takes the processors from those that recover
		case <-c.ctx.Done():
			c.t.Fatalf("waited in vain until the fence on %s is raised", run)
		case <-time.After(200 * time.Millisecond):
		}
		d := killing{killed: killed, at: map[string]time.Time{}}
		for _, name := range c.names {
			for _, l := range linesOf(c.proc(name).log, from[name]) {
				d.read(l, run, name)
			}
		}
		if _, raised := d.at["raised"]; raised {
			return d
		}
	}
}

// linesOf reads what a log got since it was that long.
func linesOf(path string, from int64) (list []line) {
	data, err := os.ReadFile(path)
	if err != nil || int64(len(data)) < from {
		return nil
	}
	scan := bufio.NewScanner(bytes.NewReader(data[from:]))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var l line
		if json.Unmarshal(scan.Bytes(), &l) == nil {
			list = append(list, l)
		}
	}
	return list
}
