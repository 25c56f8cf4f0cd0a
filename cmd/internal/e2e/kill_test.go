package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// slowly makes a backup of a few megabytes take some ten seconds.
const slowly = "backup: {rate_limit: 500KiB}\n"

// backup asks a node for a backup.
func (c *cluster) backup(by string) api.Task {
	c.t.Helper()
	task, err := c.client(by).CreateBackup(c.ctx, api.CreateBackup{Database: "shop"})
	if err != nil {
		c.t.Fatal(err)
	}
	return task
}

// reaches waits until the task is in a state, and somewhat into it; it returns the owner.
func (c *cluster) reaches(by, task, state string, into func(api.Task) bool) api.Task {
	c.t.Helper()
	var got api.Task
	c.until("task is "+state, func() bool {
		t, err := c.client(by).Task(c.ctx, task)
		if err != nil {
			return false
		}
		if t.Final && t.State != state {
			c.t.Fatalf("task ended: %+v", t)
		}
		got = t
		return t.State == state && (into == nil || into(t))
	})
	return got
}

// finishes waits for the end of a task, which must be completed.
func (c *cluster) finishes(by, task string) api.Task {
	c.t.Helper()
	return c.reaches(by, task, "completed", nil)
}

func sent(t api.Task) bool { return t.Progress.Stored["a"] > 300_000 }

// survivor is a running node other than those named.
func (c *cluster) survivor(not ...string) string {
	c.t.Helper()
	for _, n := range c.running() {
		if !strings.Contains(" "+strings.Join(not, " ")+" ", " "+n+" ") {
			return n
		}
	}
	c.t.Fatal("no survivor")
	return ""
}

// recovered waits until no fence is open.
func (c *cluster) recovered(by string) {
	c.t.Helper()
	c.until("every recovery has ended", func() bool {
		f, err := c.client(by).Fences(c.ctx)
		return err == nil && len(f) == 0
	})
}

// TestKillWhileUploading: the node that runs the backup dies in the middle of it and comes back at once; attempt 2
// completes elsewhere or there, once.
func TestKillWhileUploading(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 5), "SELECT lo_from_bytea(7, decode(repeat('ab', 100000), 'hex'))")
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, extra: slowly})
	c.up()
	task := c.backup("n1")
	owner := c.reaches("n1", task.ID, "uploading", sent).Node
	c.kill(owner)
	c.start(owner)
	by := c.survivor(owner)
	done := c.finishes(by, task.ID)
	if done.Attempt != 2 {
		t.Errorf("completed by attempt %d", done.Attempt)
	}
	c.recovered(by)
	b := c.oneBackup(by)
	if b.Token != done.Token {
		t.Errorf("the backup counts token %d, the task ended with %d", b.Token, done.Token)
	}
	c.restored(by, b.ID, dsn)
}

// restored restores a backup into a new database and compares it with what was backed up.
func (c *cluster) restored(by, backup, dsn string) {
	c.t.Helper()
	c.restoredAs(by, api.RestoreBackup{Backup: backup}, dsn)
}

// restoredAs is restored in a way of its own; the target is chosen here.
func (c *cluster) restoredAs(by string, how api.RestoreBackup, dsn string) {
	c.t.Helper()
	target := fmt.Sprintf("%d restored", time.Now().UnixNano())
	c.targets = append(c.targets, target)
	how.Target = target
	task, err := c.client(by).Restore(c.ctx, how)
	if err != nil {
		c.t.Fatal(err)
	}
	c.finishes(by, task.ID)
	same(c.t, "restored database", print(c.t, dsn), print(c.t, pg.Server(c.t).DSN(target)))
	c.noStrays()
}

// TestKillWhileCreating: pg_dump waits for a lock, nothing is stored yet.
func TestKillWhileCreating(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 1))
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}})
	c.up()
	unlock := pg.Server(t).Hold(t, nameIn(t, dsn), "LOCK TABLE goods IN ACCESS EXCLUSIVE MODE")
	task := c.backup("n2")
	owner := c.reaches("n2", task.ID, "creating", nil).Node
	c.until("pg_dump waits for the lock", func() bool { return waiting(t, dsn) })
	c.kill(owner)
	by := c.survivor(owner)
	c.until("another attempt began", func() bool {
		got, err := c.client(by).Task(c.ctx, task.ID)
		return err == nil && got.Attempt == 2
	})
	unlock()
	done := c.finishes(by, task.ID)
	if done.Node == owner || done.Attempt != 2 {
		t.Errorf("completed by %s, attempt %d", done.Node, done.Attempt)
	}
	c.oneBackup(by)
}

// waiting tells whether a session of the database waits for a lock.
func waiting(t *testing.T, dsn string) bool {
	t.Helper()
	return pg.Server(t).Text(t, nameIn(t, dsn), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") != "0"
}

// TestKillWhileRestoring: the target stays as it was until the second attempt swaps the whole in.
func TestKillWhileRestoring(t *testing.T) {
	t.Parallel()
	dsn := database(t, append([]string{bulk("goods", 1)}, slowCheck...)...)
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	b := c.oneBackup("n1")
	want := print(t, dsn)
	execute(t, dsn, "DELETE FROM goods WHERE id % 2 = 0")
	before := print(t, dsn)

	task, err := c.client("n1").Restore(c.ctx, api.RestoreBackup{Backup: b.ID, Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	owner := c.reaches("n1", task.ID, "restoring", nil).Node
	c.until("rows are being restored", func() bool { return len(c.newDatabases()) > 0 })
	c.kill(owner)
	same(t, "target right after the kill", before, print(t, dsn))
	by := c.survivor(owner)
	done := c.finishes(by, task.ID)
	if done.Attempt != 2 {
		t.Errorf("completed by attempt %d", done.Attempt)
	}
	same(t, "target after the second attempt", want, print(t, dsn))
	c.noStrays()
}

// TestKillTheLeader: whoever leads dies while another node backs up; the backup goes on as attempt 1. Then a backup that
// the leader itself runs.
func TestKillTheLeader(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 5))
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, extra: slowly})
	c.up()
	task := c.backup("n1")
	owner := c.reaches("n1", task.ID, "uploading", sent).Node
	leader := c.leader(c.names[0])
	c.kill(leader)
	by := c.survivor(owner, leader)
	done := c.finishes(by, task.ID)
	want := 1
	if owner == leader {
		want = 2
	}
	if done.Attempt != want {
		t.Errorf("leader %s, owner %s: completed by attempt %d", leader, owner, done.Attempt)
	}
	c.recovered(by)
	c.oneBackup(by)
}

func (c *cluster) leader(by string) (leader string) {
	c.t.Helper()
	c.until("a leader is known", func() bool {
		v, err := c.client(by).View(c.ctx)
		leader = v.Leader
		return err == nil && leader != ""
	})
	return leader
}

// TestKillTheRecoverer: the recoverer dies after it raised the fence; the next one has a larger token and does the work.
// It is held up where it raises the storage's highest number, by a lock that the test holds.
func TestKillTheRecoverer(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 5))
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, extra: slowly})
	c.up()
	c.forgetHighs()
	task := c.backup("n1")
	owner := c.reaches("n1", task.ID, "uploading", sent).Node
	release := c.lockStorage("a") // who recovers must write to a's owner object first
	c.kill(owner)
	c.start(owner)
	by := c.survivor(owner)
	first := c.raised(by, owner, 0)
	c.standing(owner)
	c.kill(first.Holder)
	by = c.survivor(first.Holder)
	second := c.raised(by, owner, first.Token)
	if second.Holder == first.Holder || second.Token <= first.Token || second.Run != first.Run {
		t.Errorf("fence %+v after %+v", second, first)
	}
	release()
	done := c.finishes(by, task.ID)
	if done.Attempt != 2 {
		t.Errorf("completed by attempt %d", done.Attempt)
	}
	c.recovered(by)
	c.oneBackup(by)
}

// forgetHighs has no node remember that it has raised the storages' highest number, until its next claim: that of the
// components which clean up would come at any moment.
func (c *cluster) forgetHighs() {
	c.t.Helper()
	for _, component := range []string{"sweep", "tidy"} {
		if _, err := c.client("n1").PauseComponent(c.ctx, component, true); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, name := range c.names {
		c.kill(name)
		c.start(name)
		c.ready(name)
	}
	c.recovered("n1")
}

// standing waits until a node that is held back at the fence holds its lease.
func (c *cluster) standing(name string) {
	c.t.Helper()
	c.until(name+" holds its lease", func() bool {
		s, err := c.client(name).Status(c.ctx)
		return err == nil && s.Lease == "held"
	})
}

// raised waits for a raised fence on the backups of a node with a token above after.
func (c *cluster) raised(by, node string, after uint64) (fence api.Fence) {
	c.t.Helper()
	c.until("the fence is raised", func() bool {
		list, err := c.client(by).Fences(c.ctx)
		if err != nil {
			return false
		}
		for _, f := range list {
			if f.Component == "backup" && f.Node == node && f.State == api.FenceRaised && f.Token > after {
				fence = f
				return true
			}
		}
		return false
	})
	return fence
}

// lockStorage takes the lock under which a local storage replaces objects.
func (c *cluster) lockStorage(name string) (release func()) {
	c.t.Helper()
	f, err := os.OpenFile(filepath.Join(c.dir, name, "_fencepost", "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		c.t.Fatal(err)
	}
	return func() { _ = f.Close() }
}

// TestPausedOwner: the owner is stopped for longer than its lease, its successor finishes, then it goes on: it writes
// nothing, its manifest is refused by the tombstone, and it opens a new run.
func TestPausedOwner(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 5))
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, extra: slowly})
	c.up()
	task := c.backup("n1")
	first := c.reaches("n1", task.ID, "uploading", sent)
	by := c.survivor(first.Node)
	c.stop(first.Node)
	done := c.finishes(by, task.ID)
	if done.Attempt != 2 || done.Token <= first.Token {
		t.Errorf("completed by attempt %d, token %d after %d", done.Attempt, done.Token, first.Token)
	}
	c.resume(first.Node)
	c.until("the resumed node stands as a new run", func() bool {
		s, err := c.client(first.Node).Status(c.ctx)
		return err == nil && s.Lease == "held" && s.Run != first.Run
	})
	c.recovered(by)
	// What it finished between going on and looking at the clock is an object at most, of an attempt that is void: the
	// next sweep removes it, or a person does.
	for _, name := range []string{"a", "b"} {
		if out, err := c.fencepost(by, "storage", "check", name, "--fix"); err != nil {
			t.Logf("storage check --fix %s: %s%v", name, out, err) // what it found is looked at below
		}
	}
	c.oneBackup(by)
	if got, err := c.client(by).Task(c.ctx, task.ID); err != nil || got.State != "completed" || got.Token != done.Token {
		t.Errorf("task after the late owner came back: %+v, %v", got, err)
	}
	c.until("the others know that the new run is ready", func() bool {
		v, err := c.client(by).View(c.ctx)
		return err == nil && len(v.Members) == 3 && !slices.ContainsFunc(v.Members, func(m api.Member) bool { return !m.Ready })
	})
}

// TestPausedRestorer: the same for a restore. The late swap fails; rows that users wrote meanwhile stay.
func TestPausedRestorer(t *testing.T) {
	t.Parallel()
	dsn := database(t, append([]string{bulk("goods", 1)}, slowCheck...)...)
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	b := c.oneBackup("n1")
	task, err := c.client("n1").Restore(c.ctx, api.RestoreBackup{Backup: b.ID, Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	first := c.reaches("n1", task.ID, "restoring", nil)
	by := c.survivor(first.Node)
	c.until("rows are being restored", func() bool { return len(c.newDatabases()) > 0 })
	c.stop(first.Node)
	done := c.finishes(by, task.ID)
	if done.Attempt != 2 {
		t.Errorf("completed by attempt %d", done.Attempt)
	}
	execute(t, dsn, "CREATE TABLE written_meanwhile AS SELECT 42 AS answer")
	want := print(t, dsn)
	c.resume(first.Node)
	c.until("the resumed node stands as a new run", func() bool {
		s, err := c.client(first.Node).Status(c.ctx)
		return err == nil && s.Ready && s.Lease == "held" && s.Run != first.Run
	})
	same(t, "target after the late owner came back", want, print(t, dsn))
	c.recovered(by)
	c.noStrays()
}
