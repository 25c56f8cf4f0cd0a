package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// moments does tasks of all kinds to one database, and something to each at a random moment.
type moments struct {
	*cluster
	random *rand.Rand
	dsn    string
	backup string // one that is whole
	n      int
}

func newMoments(t *testing.T, nodes int, lasting time.Duration) *moments {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &moments{random: rand.New(rand.NewPCG(seed, 3))}
	m.dsn = database(t, bulk("goods", 3), "CREATE INDEX ON goods (id)", "SELECT lo_from_bytea(0, decode(repeat('ab', 50000), 'hex')) FROM generate_series(1, 5)")
	m.cluster = newCluster(t, options{nodes: nodes, dsns: map[string]string{"shop": m.dsn}, lasting: lasting})
	m.up()
	m.backup = m.finishes("n1", m.cluster.backup("n1").ID).Backup
	return m
}

// begin plans the next task by a node: a backup, in one stream or more, a restore or a verification.
func (m *moments) begin(by string) (api.Task, error) {
	m.n++
	switch m.n % 4 {
	case 0:
		return m.client(by).CreateBackup(m.ctx, api.CreateBackup{Database: "shop"})
	case 1:
		return m.client(by).CreateBackup(m.ctx, api.CreateBackup{Database: "shop", Jobs: 3})
	case 2:
		target := fmt.Sprintf("%d moment", time.Now().UnixNano())
		m.targets = append(m.targets, target)
		return m.client(by).Restore(m.ctx, api.RestoreBackup{Backup: m.backup, Target: target})
	}
	return m.client(by).VerifyBackup(m.ctx, m.backup, api.VerifyBackup{})
}

// moment waits until a random one within limit, or until the task has ended.
func (m *moments) moment(by, task string, limit time.Duration) {
	over := time.Now().Add(time.Duration(m.random.Int64N(int64(limit))))
	m.until("a moment", func() bool {
		got, err := m.client(by).Task(m.ctx, task)
		return time.Now().After(over) || err == nil && got.Final
	})
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

// whole checks that a restore's target is there as a whole, or not at all.
func (m *moments) whole(task api.Task) {
	m.t.Helper()
	if task.Type != "restore" {
		return
	}
	exists := pg.Server(m.t).Text(m.t, "postgres", "SELECT count(*) FROM pg_database WHERE datname = $1", task.Target) == "1"
	if exists != (task.State == "completed") {
		m.t.Errorf("a restore is %s, and its target is there: %v", task.State, exists)
	}
	if exists {
		same(m.t, "restored at "+task.ID, print(m.t, m.dsn), print(m.t, pg.Server(m.t).DSN(task.Target)))
		pg.Server(m.t).Exec(m.t, "postgres", `DROP DATABASE "`+task.Target+`" WITH (FORCE)`)
	}
}

// nothingLeft checks what the tasks have left: databases, sessions, objects without a manifest, unfinished files.
func (m *moments) nothingLeft() {
	m.t.Helper()
	m.until("nothing is left", func() bool { return len(m.newDatabases()) == 0 })
	sessions := pg.Server(m.t).Text(m.t, nameIn(m.t, m.dsn), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'fencepost:%'")
	if sessions != "0" {
		m.t.Errorf("%s sessions are left", sessions)
	}
	for _, name := range []string{"a", "b"} {
		if s := m.storage(name); len(s.loose) > 0 {
			m.t.Errorf("loose in storage %s: %v", name, s.loose)
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
	m := newMoments(t, 1, 20*time.Minute)
	states := map[string]int{}
	for range rounds(4, 100) {
		task, err := m.begin("n1")
		if err != nil {
			t.Fatal(err)
		}
		m.moment("n1", task.ID, time.Second)
		m.noSecretInArguments()
		_, _ = m.client("n1").Cancel(m.ctx, task.ID) // it may have ended
		done := m.ended("n1", task.ID)
		states[done.Type+" "+done.State]++
		if done.State != "cancelled" && done.State != "completed" {
			t.Errorf("a cancelled task is %+v", done)
		}
		m.whole(done)
	}
	t.Logf("%v", states)
	m.nothingLeft()
	m.restored("n1", m.backup, m.dsn)
}

// TestKillsAtRandomMoments: whichever node dies whenever, each task ends, once, and nothing half is left.
func TestKillsAtRandomMoments(t *testing.T) {
	t.Parallel()
	m := newMoments(t, 3, 30*time.Minute)
	states := map[string]int{}
	for range rounds(1, 30) {
		by := m.names[m.random.IntN(len(m.names))]
		task, err := m.begin(by)
		if err != nil {
			t.Fatal(err)
		}
		m.moment(by, task.ID, 1500*time.Millisecond)
		m.noSecretInArguments()
		now, err := m.client(by).Task(m.ctx, task.ID)
		if err != nil {
			t.Fatal(err)
		}
		victim := now.Node
		if victim == "" {
			victim = by
		}
		m.kill(victim)
		left := m.survivor(victim)
		done := m.ended(left, task.ID)
		states[done.Type+" "+done.State]++
		if done.State != "completed" {
			t.Errorf("after the death of %s: %+v", victim, done)
		}
		m.recovered(left)
		m.whole(done)
		m.start(victim)
		m.ready(victim)
	}
	t.Logf("%v", states)
	m.nothingLeft()
	m.restored("n1", m.backup, m.dsn)
}
