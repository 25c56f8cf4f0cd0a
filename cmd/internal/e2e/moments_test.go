package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// moments does tasks of all kinds to one database, and something to each at a random moment.
type moments struct {
	*cluster
	random  *rand.Rand
	dsn     string
	want    pgtest.Print             // of the database
	backup  string                   // one that is whole
	longest map[string]time.Duration // by kind of task: what it has taken undisturbed
	started time.Time                // the last one
	n       int
}

// Kinds of tasks that moments begins.
const (
	oneArchive = "a backup"
	inStreams  = "a backup in streams"
	newCopy    = "a restore into a new database"
	inItself   = "a restore in place"
	readBack   = "a verification"
	triedOut   = "a verification in a throw-away server"
)

var allKinds = []string{oneArchive, inStreams, newCopy, inItself, readBack, triedOut}

func newMoments(t *testing.T, o options) *moments {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &moments{random: rand.New(rand.NewPCG(seed, 3)), longest: map[string]time.Duration{}}
	m.dsn = database(t, bulk("goods", 3), "CREATE INDEX ON goods (id)", "SELECT lo_from_bytea(0, decode(repeat('ab', 50000), 'hex')) FROM generate_series(1, 5)")
	o.dsns, o.lab = map[string]string{"shop": m.dsn}, true
	m.cluster = newCluster(t, o)
	m.up()
	m.want = print(t, m.dsn)
	m.backup = m.finishes("n1", m.cluster.backup("n1").ID).Backup
	return m
}

// begin plans the next task of a kind by a node.
func (m *moments) begin(by, kind string) (task api.Task) {
	m.t.Helper()
	m.n++
	var err error
	m.started = time.Now()
	switch kind {
	case oneArchive:
		task, err = m.client(by).CreateBackup(m.ctx, api.CreateBackup{Database: "shop"})
	case inStreams:
		task, err = m.client(by).CreateBackup(m.ctx, api.CreateBackup{Database: "shop", Jobs: 3})
	case readBack:
		task, err = m.client(by).VerifyBackup(m.ctx, m.backup, api.VerifyBackup{})
	case triedOut:
		task, err = m.client(by).VerifyBackup(m.ctx, m.backup, api.VerifyBackup{Scratch: "lab"})
	default:
		target := fmt.Sprintf("%d moment", time.Now().UnixNano())
		m.targets = append(m.targets, target)
		if kind == inItself {
			pg.Server(m.t).Exec(m.t, "postgres", `CREATE DATABASE "`+target+`"`)
		}
		task, err = m.client(by).Restore(m.ctx, api.RestoreBackup{Backup: m.backup, Target: target, InPlace: kind == inItself})
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return task
}

// measure does a task of each kind undisturbed.
func (m *moments) measure(kinds []string) {
	m.t.Helper()
	for _, kind := range kinds {
		task := m.begin("n1", kind)
		done := m.finishes("n1", task.ID)
		m.longest[kind] = time.Since(m.started)
		m.whole(kind, done)
	}
	m.t.Logf("undisturbed: %v", m.longest)
}

// moment waits until a random one of a task's life, or until it has ended, and returns the task as it was then.
func (m *moments) moment(by, kind, id string) (now api.Task) {
	over := m.started.Add(time.Duration(m.random.Int64N(int64(m.longest[kind]))))
	m.until("a moment", func() bool {
		got, err := m.client(by).Task(m.ctx, id)
		now = got
		return err == nil && (got.Final || time.Now().After(over))
	})
	return now
}

// ended waits for the end of a task, whichever it is.
func (m *moments) ended(by, task string) (got api.Task) {
	m.until("task "+task+" has ended", func() bool {
		t, err := m.client(by).Task(m.ctx, task)
		got = t
		return err == nil && t.Final
	})
	return got
}

// whole checks that a restore's target is there as a whole, or not at all, and removes it.
func (m *moments) whole(kind string, task api.Task) {
	m.t.Helper()
	switch kind {
	case newCopy:
		if there := m.nothingHalf(kind, task); there != (task.State == "completed") {
			m.t.Errorf("a restore is %s, and its target is there: %v", task.State, there)
		}
	case inItself:
		if filled := m.nothingHalf(kind, task); filled != (task.State == "completed") {
			m.t.Errorf("a restore in place is %s, and its rows are there: %v", task.State, filled)
		}
	default:
		return
	}
	pg.Server(m.t).Exec(m.t, "postgres", `DROP DATABASE IF EXISTS "`+task.Target+`" WITH (FORCE)`)
}

// nothingHalf checks that a restore's target, at whatever moment, holds all of the backup, or nothing, and says which.
func (m *moments) nothingHalf(kind string, task api.Task) (there bool) {
	m.t.Helper()
	if pg.Server(m.t).Text(m.t, "postgres", "SELECT count(*) FROM pg_database WHERE datname = $1", task.Target) == "0" {
		return false
	}
	got := print(m.t, pg.Server(m.t).DSN(task.Target))
	if kind == newCopy {
		same(m.t, "restored by "+task.ID, m.want, got)
		return true
	}
	delete(got.Tables, "fencepost.attempt")
	if len(got.Tables) == 0 && len(got.Objects) == 0 {
		return false
	}
	for _, difference := range pgtest.Diff(pgtest.Print{Tables: m.want.Tables, Objects: m.want.Objects, Sequences: m.want.Sequences},
		pgtest.Print{Tables: got.Tables, Objects: got.Objects, Sequences: got.Sequences}) {
		m.t.Errorf("restored in place by %s: %s", task.ID, difference)
	}
	return true
}

// nothingLeft checks what the tasks have left: databases, sessions, objects without a manifest, unfinished files.
func (m *moments) nothingLeft() {
	m.t.Helper()
	m.until("nothing is left", func() bool { return len(m.newDatabases()) == 0 })
	if servers, _ := os.ReadDir(m.servers); len(servers) > 0 {
		m.t.Errorf("throw-away servers left: %v", servers)
	}
	sessions := pg.Server(m.t).Text(m.t, nameIn(m.t, m.dsn), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'fencepost:%'")
	if sessions != "0" {
		m.t.Errorf("%s sessions are left", sessions)
	}
	for _, name := range []string{"a", "b"} {
		if s := m.storage(name); len(s.loose) > 0 {
			m.t.Errorf("loose in storage %s: %v", name, s.loose)
		}
		if temp, _ := filepath.Glob(filepath.Join(m.dir, name, "_fencepost", "*", "put-*")); len(temp) > 0 {
			m.t.Errorf("unfinished files in storage %s: %v", name, temp)
		}
	}
}

// noSecretInArguments looks at the command lines of a node and all below it.
func (m *moments) noSecretInArguments() {
	for _, node := range m.running() {
		for _, pid := range descendants(m.proc(node).cmd.Process.Pid) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if strings.Contains(string(line), pg.Server(m.t).Password) {
				m.t.Errorf("the password is in the arguments of a child: %q", line)
			}
		}
	}
}

// TestCancelsAtRandomMoments: whatever is cancelled whenever, nothing half is left.
func TestCancelsAtRandomMoments(t *testing.T) {
	t.Parallel()
	m := newMoments(t, options{nodes: 1, lasting: 20 * time.Minute})
	m.measure(allKinds)
	states := map[string]int{}
	for i := range rounds(len(allKinds), 100) {
		kind := allKinds[i%len(allKinds)]
		task := m.begin("n1", kind)
		m.moment("n1", kind, task.ID)
		m.noSecretInArguments()
		_, _ = m.client("n1").Cancel(m.ctx, task.ID) // it may have ended
		done := m.ended("n1", task.ID)
		states[kind+" "+done.State]++
		if done.State != "cancelled" && done.State != "completed" {
			t.Errorf("a cancelled task is %+v", done)
		}
		m.whole(kind, done)
	}
	t.Logf("%v", states)
	m.nothingLeft()
	m.restored("n1", m.backup, m.dsn)
}

// death is a way for a node to die.
type death struct {
	name string
	kill func(m *moments, node string)
}

// deaths of a node that its warden watches. Of those after the first the node's children are left to the kernel and the warden.
var deaths = []death{
	{"the machine", func(m *moments, node string) { m.kill(node); m.start(node) }},
	{"the node", func(m *moments, node string) { m.killPid(m.nodeOf(node)) }},
	{"warden and node", func(m *moments, node string) {
		p, pid := m.proc(node), m.nodeOf(node)
		_ = p.cmd.Process.Kill()
		m.killPid(pid)
		<-p.done
		m.start(node)
	}},
}

func (m *moments) killPid(pid int) {
	if pid == 0 { // it is being started again
		return
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		m.t.Error(err)
	}
}

// childrenOf are the processes below a node, by what they were started as.
func (m *moments) childrenOf(node string) map[int]string {
	found := map[int]string{}
	for _, pid := range descendants(m.nodeOf(node)) {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); len(line) > 0 {
			found[pid] = string(line)
		}
	}
	return found
}

// gone waits until none of these processes lives.
func (m *moments) gone(children map[int]string) {
	m.t.Helper()
	for pid, was := range children {
		m.until("a dead node's child is gone: "+strings.ReplaceAll(was, "\x00", " "), func() bool {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return string(line) != was
		})
	}
}

// manyKills kills whichever node works at tasks of some kinds, until so many met a task that had not ended; each task then ends
// well, once, and nothing half is left.
func manyKills(t *testing.T, kinds []string, deaths []death, times int) {
	t.Parallel()
	m := newMoments(t, options{nodes: 3, watched: true, lasting: 30 * time.Minute})
	m.measure(kinds)
	met := map[string]int{}
	for hits := 0; hits < times; {
		if m.n > 10*times+len(kinds) {
			t.Fatalf("of %d kills only %d met a task", m.n, hits)
		}
		kind, by := kinds[m.n%len(kinds)], m.names[m.random.IntN(len(m.names))]
		task := m.begin(by, kind)
		now := m.moment(by, kind, task.ID)
		m.noSecretInArguments()
		victim, way := now.Node, deaths[m.random.IntN(len(deaths))]
		if victim == "" {
			victim = by
		}
		children := m.childrenOf(victim)
		way.kill(m, victim)
		m.gone(children)
		m.nothingHalf(kind, task)
		left := m.survivor(victim)
		done := m.ended(left, task.ID)
		if done.State != "completed" {
			t.Errorf("after the death of %s, %s, in the middle of %s (%s): %+v", victim, way.name, kind, now.State, done)
		}
		if !now.Final {
			hits++
			met[fmt.Sprintf("%s, %s, by attempt %d", kind, now.State, done.Attempt)]++
		}
		m.recovered(left)
		m.whole(kind, done)
		m.ready(victim)
	}
	t.Logf("%v", met)
	m.nothingLeft()
	m.restored("n1", m.backup, m.dsn)
}

// TestKillsAtRandomMoments: whichever node dies whenever, with its machine, alone or with its warden: each task ends, once,
// and nothing half is left.
func TestKillsAtRandomMoments(t *testing.T) { manyKills(t, allKinds, deaths, rounds(2, 30)) }

// TestKillsOfVerifications: the same, for verifications alone.
func TestKillsOfVerifications(t *testing.T) {
	manyKills(t, []string{triedOut, readBack}, deaths, rounds(1, 30))
}
