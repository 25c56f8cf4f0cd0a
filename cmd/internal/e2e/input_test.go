package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// said is what a program that ended said.
type said struct {
	code     int
	out, err string
}

// run runs a program to its end.
func run(t testing.TB, program string, args ...string) said {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return said{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
}

// complains checks the form of an error: the code, one line that says so, one hint, nothing else but the log.
func (s said) complains(t *testing.T, code int, words ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(s.err), "\n")
	if s.code != code || len(lines) < 2 || !strings.HasPrefix(lines[len(lines)-1], "hint: ") {
		t.Fatalf("exit code %d (want %d), stderr:\n%s", s.code, code, s.err)
	}
	for _, w := range words {
		if !strings.Contains(lines[len(lines)-2]+lines[len(lines)-1], w) {
			t.Errorf("%q is not in the error:\n%s", w, s.err)
		}
	}
}

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, extra string
		code        int
		words       []string
	}{
		{"unknown key", "raft: {voterz: 3}\n", 2, []string{"raft.voterz", "raft.voters"}},
		{"wrong DSN", "databases:\n- {name: shop, dsn: \"postgres://u:s3cr3t@[bad/shop\"}\n", 2, []string{"databases[0].dsn"}},
		{"storage path missing", "processors: []\n", 1, []string{"storages[0] a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, options{nodes: 1, extra: test.extra})
			if test.name == "storage path missing" {
				if err := os.Remove(filepath.Join(c.dir, "a")); err != nil {
					t.Fatal(err)
				}
			}
			s := run(t, daemon, "--config", c.file("n1"))
			if s.code != test.code || strings.Contains(s.err, "s3cr3t") {
				t.Fatalf("exit code %d, want %d: %s", s.code, test.code, s.err)
			}
			for _, w := range test.words {
				if !strings.Contains(s.err, w) {
					t.Errorf("%q is not in %q", w, s.err)
				}
			}
		})
	}
	t.Run("no configuration", func(t *testing.T) {
		run(t, daemon).complains(t, 2, "--config")
	})
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 1})
	l, err := net.Listen("tcp", "127.0.0.1"+portOf(c, "n1/cluster"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	run(t, daemon, "--config", c.file("n1")).complains(t, 1, "cluster port", "cluster.bind")
}

func portOf(c *cluster, name string) string { return fmt.Sprintf(":%d", c.ports[name]) }

// TestUnreachableSeed: the node keeps trying, says so, and answers on its socket meanwhile.
func TestUnreachableSeed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 3})
	c.start("n1")
	c.until("the node says that no seed answers", func() bool {
		data, err := os.ReadFile(c.proc("n1").log)
		return err == nil && bytes.Contains(data, []byte("no seed answers, trying on"))
	})
	var s api.Status
	c.until("the node's socket answers, which it opens while it joins", func() bool {
		answer, err := c.client("n1").Status(c.ctx)
		s = answer
		return err == nil
	})
	if s.State != "joining" || len(s.Problems) == 0 {
		t.Errorf("status %+v", s)
	}
	answer := run(t, command, "--socket", c.socket("n1"), "backup", "list")
	if answer.code != 1 || !strings.Contains(answer.err, "has not joined its group yet") {
		t.Errorf("backup list: %+v", answer)
	}
	c.start("n2", "n3")
	c.ready("n1")
}

// TestUsedNameAndEmptiedHome: a second process under a used name, and a node whose home was emptied, are told so and end;
// the group does not notice.
func TestUsedNameAndEmptiedHome(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 3})
	c.up()
	view := c.view("n1")

	same := run(t, daemon, "--config", c.file("n2"))
	same.complains(t, 1, "home is in use")

	twin := newCluster(t, options{nodes: 3}) // other ports, homes and socket, the same names
	data, err := os.ReadFile(twin.file("n2"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, n := range []string{"n1", "n3"} {
		text = strings.ReplaceAll(text, portOf(twin, n+"/gossip"), portOf(c, n+"/gossip"))
	}
	for _, name := range []string{"n2.pem", "n2.key", "ca.pem", "gossip.key", "a", "b"} { // a copied certificate is no other one
		text = strings.ReplaceAll(text, filepath.Join(twin.dir, name)+",", filepath.Join(c.dir, name)+",")
		text = strings.ReplaceAll(text, filepath.Join(twin.dir, name)+"}", filepath.Join(c.dir, name)+"}")
	}
	if err := os.WriteFile(twin.file("n2"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, daemon, "--config", twin.file("n2")).complains(t, 1, "n2")

	c.kill("n3")
	if err := os.RemoveAll(filepath.Join(c.dir, "n3")); err != nil {
		t.Fatal(err)
	}
	c.until("the dead run is closed", func() bool { return len(c.view("n1").Members) == 2 })
	run(t, daemon, "--config", c.file("n3")).complains(t, 1, "another home", "node replace n3")
	if now := c.view("n1"); now.Version < view.Version {
		t.Errorf("view %d after %d", now.Version, view.Version)
	}
	for _, name := range []string{"n1", "n2"} {
		c.ready(name)
	}
}

func (c *cluster) view(by string) api.View {
	c.t.Helper()
	v, err := c.client(by).View(c.ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

// TestBadRequests: unknown things, an existing target, a foreign storage: one line, a hint, the right code, nothing done.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 1))
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn}})
	c.up()
	cli := func(args ...string) said {
		return run(t, command, append([]string{"--socket", c.socket("n1")}, args...)...)
	}
	cli("backup", "create", "nope").complains(t, 1, `unknown database "nope"`, "shop")
	cli("backup", "create", "shop", "--storage", "x").complains(t, 1, `unknown storage "x"`, "a, b")
	cli("restore", "nope", "--as", "other").complains(t, 1, `no backup nope`)
	cli("cancel", "nope").complains(t, 1, `no task "nope"`)
	if s := cli("backup", "create", "shop", "--wait"); s.code != 0 {
		t.Fatalf("backup: %+v", s)
	}
	b := c.oneBackup("n1")
	before := print(t, dsn)
	offline := func(args ...string) []string { return append(args, "--config", c.file("n1")) }
	for _, wrong := range []struct {
		code  int
		words []string
		args  []string
	}{
		{1, []string{"exists", "--replace replaces it"}, []string{"restore", b.ID, "--wait"}},
		{1, []string{`database "template1" belongs to the server`, "another name"}, []string{"restore", b.ID, "--as", "template1"}},
		{1, []string{"does not exist", "create it first"}, []string{"restore", b.ID, "--as", "never made", "--in-place"}},
		{2, []string{"--yes names other", "agrees"}, []string{"restore", "shop", "--yes", "other"}},
		{1, []string{"the backup holds nothing of that name", `table "nope" not found`, "without its schema"}, []string{"restore", b.ID, "--as", "part", "--table", "nope", "--wait"}},
		{2, []string{`format "tar" is not custom or plain`, "leave out"}, []string{"backup", "create", "shop", "--format", "tar"}},
		{2, []string{"exclude each other", "leave out"}, []string{"backup", "create", "shop", "--schema", "public", "--table", "goods"}},
		{2, []string{"no database was named", "databases"}, []string{"backup", "create", ""}},
		{1, []string{"filter nope matches nothing", "upper and lower case"}, []string{"backup", "create", "shop", "--schema", "nope", "--wait"}},
		{1, []string{`there is no backup "nope"`, "backup list"}, []string{"backup", "show", "nope"}},
		{1, []string{`there is no backup "nope"`, "list the backups"}, []string{"verify", "nope"}},
		{1, []string{`unknown scratch server "nope"`, "none is configured"}, []string{"verify", b.ID, "--scratch", "nope"}},
		{1, []string{"last good one", "another backup first"}, []string{"backup", "delete", b.ID, "--now"}},
		{1, []string{"nobody is about to delete", "not ended"}, []string{"backup", "undelete", b.ID}},
		{1, []string{`unknown storage "nope"`, "known: a, b"}, []string{"storage", "check", "nope"}},
		{1, []string{`unknown storage "nope"`, "known: a, b"}, []string{"catalog", "rebuild", "--storage", "nope"}},
		{1, []string{`unknown schedule "nope"`, "none is configured"}, []string{"schedule", "run", "nope"}},
		{2, []string{`database "shop" has no retention`, "add one"}, []string{"prune", "shop"}},
		{1, []string{`no storage named "nope"`, "it has: a, b"}, offline("storage", "test", "nope")},
		{1, []string{`no whole backup "nope" lies in storage a`, "list what lies there"}, offline("storage", "restore", "a", "nope", "--database", "shop")},
		{1, []string{"exists", "--replace replaces it"}, offline("storage", "restore", "a", b.ID, "--database", "shop")},
		{1, []string{`database "template1" belongs to the server`, "another name"}, offline("storage", "restore", "a", b.ID, "--database", "shop", "--as", "template1")},
		{1, []string{`no database named "nope"`, "name one of: shop"}, offline("storage", "restore", "a", b.ID, "--database", "nope")},
	} {
		t.Run(strings.Join(wrong.args[:min(2, len(wrong.args))], " "), func(t *testing.T) { cli(wrong.args...).complains(t, wrong.code, wrong.words...) })
	}
	same(t, "target after a refused restore", before, print(t, dsn))
	c.noStrays()
	gone := run(t, command, "--socket", filepath.Join(c.dir, "none.sock"), "members")
	gone.complains(t, 1, "none.sock")
}

// TestFailingDumps: a wrong password, a dropped database and a killed pg_dump never give a completed backup; the task says
// why in one sentence, and no secret is in it.
func TestFailingDumps(t *testing.T) {
	t.Parallel()
	good := database(t, bulk("goods", 5))
	gone := pg.Server(t).DSN("no_such_database")
	wrong := pg.Server(t).DSNFor("postgres", "wr0ng-passw0rd", "postgres")
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": good, "gone": gone, "wrong": wrong}, extra: "backup: {rate_limit: 500KiB, max_attempts: 1}\n"})
	c.up()
	ends := func(database string, during func(api.Task)) api.Task {
		task, err := c.client("n1").CreateBackup(c.ctx, api.CreateBackup{Database: database})
		if err != nil {
			t.Fatal(err)
		}
		if during != nil {
			during(c.reaches("n1", task.ID, "uploading", sent))
		}
		c.until("the task has ended", func() bool {
			task, err = c.client("n1").Task(c.ctx, task.ID)
			return err == nil && task.Final
		})
		if task.State != "failed" || task.Error == "" || strings.Contains(task.Error, "\n") || strings.Contains(task.Error, "wr0ng") {
			t.Errorf("%s: %+v", database, task)
		}
		return task
	}
	ends("gone", nil)
	ends("wrong", nil)
	ends("shop", func(api.Task) {
		for _, pid := range descendants(c.proc("n1").cmd.Process.Pid) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	})
	list, err := c.client("n1").Backups(c.ctx, api.BackupFilter{})
	if err != nil || len(list) != 0 {
		t.Errorf("backups %+v, %v", list, err)
	}
	for _, name := range []string{"a", "b"} {
		if s := c.storage(name); len(s.whole)+len(s.loose) != 0 {
			t.Errorf("storage %s holds %+v", name, s)
		}
	}
}

// TestCancel: a cancel from another node ends the task at once, the dump's child and its session are gone, nothing is left.
func TestCancel(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 5))
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, extra: slowly})
	c.up()
	task := c.backup("n1")
	owner := c.reaches("n1", task.ID, "uploading", sent).Node
	by := c.survivor(owner)
	asked := time.Now()
	if _, err := c.client(by).Cancel(c.ctx, task.ID); err != nil {
		t.Fatal(err)
	}
	c.until("the task is cancelled", func() bool {
		got, err := c.client(by).Task(c.ctx, task.ID)
		return err == nil && got.State == "cancelled"
	})
	t.Logf("cancelled from another node after %v", time.Since(asked).Round(time.Millisecond))
	if left := descendants(c.proc(owner).cmd.Process.Pid); len(left) != 0 {
		t.Errorf("children left: %v", left)
	}
	for _, name := range []string{"a", "b"} {
		if s := c.storage(name); len(s.whole)+len(s.loose) != 0 {
			t.Errorf("storage %s holds %+v", name, s)
		}
	}
}
