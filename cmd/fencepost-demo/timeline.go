package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// kill is what was done to whom.
type kill struct {
	at        time.Time
	node, run string
	leader    bool // the node led the group
	killed    []process
	task      string
	attempt   int    // of the task, which died
	token     uint64 // of that attempt
	restarted time.Time
	pid       int // of the new process
}

// row is one line of the time line.
type row struct {
	at   time.Time
	node string // where it was seen
	text string
}

// component is the recovery component whose story is told.
const component = "backup"

// scene is one thing that must have happened: the first entry that is so.
type scene struct {
	name     string
	is       func(entry) bool
	tell     func(entry) string
	optional bool
}

// timeline finds scenes in the logs. What is missing is told in the error; the rows are whole without it.
func timeline(log []entry, scenes []scene) (rows []row, err error) {
	slices.SortStableFunc(log, func(a, b entry) int { return a.Time.Compare(b.Time) })
	var missing []string
	for _, s := range scenes {
		i := slices.IndexFunc(log, s.is)
		if i >= 0 {
			rows = append(rows, row{log[i].Time, log[i].by, s.tell(log[i])})
		} else if !s.optional {
			missing = append(missing, s.name)
		}
	}
	if len(missing) > 0 {
		err = fmt.Errorf("the nodes' logs do not tell of: %s", strings.Join(missing, ", "))
	}
	return rows, err
}

// recoveryScenes are those of the death of a run and the recovery of its backups.
func recoveryScenes(k kill, log []entry) []scene {
	dead := func(msg string) func(entry) bool {
		return func(e entry) bool {
			return e.Msg == msg && e.Run == k.run && (e.Recovers == "" || e.Recovers == component)
		}
	}
	proven := closedBy(log, k, "refused")
	return []scene{
		{name: "an election", optional: !k.leader || !proven, is: func(e entry) bool {
			return k.leader && e.Msg == "gms: standing for election, the leader is proven dead"
		}, tell: func(entry) string { return "stands for election: the leader is proven dead" }},
		{name: "the notice of the death", optional: !proven && !closedBy(log, k, "lapsed"), is: dead("gms: closing run"),
			tell: func(e entry) string { return "death noticed: " + e.Why }},
		{name: "a view without the run", is: dead("gms: run closed"), tell: func(e entry) string {
			return fmt.Sprintf("view %d without %s, evidence: %s; seen by %s", e.Position, k.node, e.Evidence, seenBy(log, dead("gms: run closed"), k))
		}},
		{name: "an appointment", is: dead("gms: appointed"), tell: func(e entry) string {
			return fmt.Sprintf("%s is appointed to recover the work of %s", e.Appointee, k.node)
		}},
		{name: "a raised fence", is: dead("gms: fence raised"), tell: func(e entry) string {
			return fmt.Sprintf("fence raised by %s, token %d", e.Appointee, e.Token)
		}},
		{name: "a lowered fence", is: dead("gms: recovery ended"), tell: func(entry) string { return "fence lowered" }},
	}
}

// backupScenes are those of the task that ran there, and of the node's return.
func backupScenes(k kill) []scene {
	ofTask := func(msg string) func(entry) bool {
		return func(e entry) bool { return e.Msg == msg && e.Task == k.task }
	}
	return []scene{
		{name: "an adopted orphan", is: func(e entry) bool {
			return e.Msg == "components: claim adopted" && e.Component == component && e.Item == k.task
		}, tell: func(e entry) string {
			return fmt.Sprintf("orphan adopted: task %s, token %d", e.Item, e.Token)
		}},
		{name: "a settled task", is: ofTask("task settled"), tell: func(e entry) string {
			return fmt.Sprintf("attempt %d reverted: the task was %s and is %s again", k.attempt, e.Was, e.Is)
		}},
		{name: "another attempt", is: func(e entry) bool {
			return ofTask("attempt begins")(e) && e.Attempt == k.attempt+1
		}, tell: func(e entry) string { return fmt.Sprintf("attempt %d begins", e.Attempt) }},
		{name: "the new run of " + k.node, is: func(e entry) bool {
			return e.Msg == "gms: run opened" && e.Node == k.node && e.Run != k.run
		}, tell: func(entry) string { return k.node + " is back in the view, as a new run" }},
		{name: k.node + " at the fence", is: func(e entry) bool { return e.Msg == "app: ready" && e.by == k.node },
			tell: func(e entry) string { return fmt.Sprintf("ready, having waited %s at the fence", e.Waited) }},
		{name: "the completion", is: ofTask("task completed"), tell: func(entry) string {
			return fmt.Sprintf("attempt %d completed", k.attempt+1)
		}},
	}
}

func closedBy(log []entry, k kill, evidence string) bool {
	return slices.ContainsFunc(log, func(e entry) bool {
		return e.Msg == "gms: run closed" && e.Run == k.run && e.Evidence == evidence
	})
}

// seenBy is "n1 +3.1 ms, n3 +3.4 ms": when each member that lived on applied it.
func seenBy(log []entry, is func(entry) bool, k kill) string {
	var parts []string
	for _, e := range log {
		if is(e) && e.by != k.node {
			parts = append(parts, fmt.Sprintf("%s +%.1f", e.by, float64(e.Time.Sub(k.at).Microseconds())/1000))
		}
	}
	return strings.Join(parts, ", ") + " ms"
}

// tell prints the time line of the kill in the middle of the backup.
func (d *demo) tell(k kill) error {
	log, err := readLogs(d.nodes, k.at)
	if err != nil {
		return err
	}
	rows, missing := timeline(log, append(recoveryScenes(k, log), backupScenes(k)...))
	tombs, err := d.tombs(k)
	if err != nil {
		return err
	}
	rows = append(rows, tombs...)
	rows = append(rows, row{k.restarted, k.node, fmt.Sprintf("started again, process %d", k.pid)})
	d.out.line("\nAfter the kill, by the nodes' own logs\n")
	d.show(k, rows)
	return missing
}

// show prints rows in the order of their times, the kill first.
func (d *demo) show(k kill, rows []row) {
	slices.SortStableFunc(rows, func(a, b row) int { return a.at.Compare(b.at) })
	for _, r := range slices.Concat([]row{{k.at, k.node, killedText(k)}}, rows) {
		d.out.line("  %s  %-4s %s", since(r.at.Sub(k.at)), r.node, r.text)
	}
}

func killedText(k kill) string {
	what := "kill -9 of " + k.node
	if k.leader {
		what += ", the leader"
	}
	var parts []string
	for _, p := range k.killed {
		parts = append(parts, fmt.Sprintf("%s %d", p.name, p.pid))
	}
	return what + ": " + strings.Join(parts, ", ")
}
