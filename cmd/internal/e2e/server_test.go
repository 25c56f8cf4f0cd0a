package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// lostServer is a server with two databases, of which the second takes its time to be restored, and a role that owns something.
type lostServer struct {
	role       string
	shop, slow string // DSNs
}

func newLostServer(t testing.TB) lostServer {
	t.Helper()
	srv, at := pg.Server(t), time.Now().UnixNano()
	l := lostServer{role: fmt.Sprintf("owner_%d", at)}
	srv.Exec(t, "postgres", "CREATE ROLE "+l.role+" LOGIN PASSWORD 'secret of the owner'")
	t.Cleanup(func() { srv.Exec(t, "postgres", "DROP ROLE "+l.role) }) // after its databases
	l.shop, l.slow = srv.NamedDatabase(t, fmt.Sprintf("a shop %d", at)), srv.NamedDatabase(t, fmt.Sprintf("b slow %d", at))
	for _, sql := range []string{bulk("goods", 2), "ALTER TABLE goods OWNER TO " + l.role, "SELECT lo_from_bytea(7, decode(repeat('ab', 1000), 'hex'))"} {
		srv.Exec(t, nameIn(t, l.shop), sql)
	}
	for _, sql := range []string{
		"CREATE FUNCTION public.slow(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM pg_sleep(3); RETURN i; END$$",
		"CREATE TABLE held AS SELECT 1 AS i", "CREATE INDEX ON held (public.slow(i))",
	} {
		srv.Exec(t, nameIn(t, l.slow), sql)
	}
	return l
}

// emptyMachine is a folder with the one program, and an environment that finds nothing but that and PostgreSQL's.
type emptyMachine struct {
	t       testing.TB
	ctx     context.Context
	dir     string
	program string
	env     []string
}

func newEmptyMachine(ctx context.Context, t testing.TB) emptyMachine {
	t.Helper()
	m := emptyMachine{t: t, ctx: ctx, dir: t.TempDir()}
	m.program = filepath.Join(m.dir, "fencepost")
	data, err := os.ReadFile(command)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.program, data, 0o700); err != nil {
		t.Fatal(err)
	}
	bin, err := pgtest.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	m.env = []string{"PATH=" + bin, "HOME=" + m.dir}
	return m
}

func (m emptyMachine) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.ctx, m.program, args...)
	cmd.Dir, cmd.Env = m.dir, m.env
	return cmd
}

func (m emptyMachine) says(args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("fencepost %s: %s%v", strings.Join(args, " "), out, err)
	}
	return string(out)
}

// serverFromKit restores a lost server with its roles into an empty one, by a kit and one storage, in three commands; and is
// killed in between.
func serverFromKit(t *testing.T, c *cluster, kit, phrase string, lost lostServer) {
	t.Helper()
	ctx := c.ctx
	m := newEmptyMachine(ctx, t)
	srv := pgtest.New(t, pgtest.Options{})
	shop, slow := nameIn(t, lost.shop), nameIn(t, lost.slow)
	if err := os.WriteFile(filepath.Join(m.dir, "new.dsn"), []byte(srv.DSN("postgres")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"shop.kit": kit, "phrase": phrase} {
		if err := os.Symlink(from, filepath.Join(m.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	restore := []string{"restore", "--server", "shop", "--to", "file:new.dsn", "--config", "here/restore.yaml"}
	plan, last := filepath.Join(m.dir, "restore-shop.json"), append(slices.Clone(restore), "--yes", "shop")
	oid := func() string {
		return srv.Text(t, "postgres", "SELECT oid::text FROM pg_database WHERE datname = $1", shop)
	}
	var first string
	page := rehearsal{c: c, words: map[string]string{"pg1": "shop"}, empty: &m}
	page.before = map[string]func(){"fencepost " + strings.Join(last, " "): func() { // it is killed once, and given again
		shown := m.says(append(restore, "--dry-run")...)
		for _, want := range []string{shop, slow, "role " + lost.role, "Without a password, since the backup has none", "Not looked at: storage b", "to do"} {
			if !strings.Contains(shown, want) {
				t.Errorf("the plan does not say %q:\n%s", want, shown)
			}
		}
		if _, err := os.Stat(plan); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a dry run has left a plan: %v", err)
		}
		killed := m.command(last...)
		if err := killed.Start(); err != nil {
			t.Fatal(err)
		}
		c.until("the second database is being filled", func() bool {
			names, err := srv.Databases(ctx)
			all := strings.Join(names, "\n") + "\n"
			return err == nil && strings.Contains(all, slow[:6]) && strings.Contains(all, "__fp_") && strings.Contains(all, shop+"\n")
		})
		if err := killed.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = killed.Wait()
		first = oid()
		forget(t, plan)
	}}
	page.follow("group-lost")
	if now := oid(); now != first {
		t.Errorf("database %s was made twice: first %s, then %s", shop, first, now)
	}
	same(t, "the shop of the lost server", print(t, lost.shop), print(t, srv.DSN(shop)))
	same(t, "the slow one", print(t, lost.slow), print(t, srv.DSN(slow)))
	if names, err := srv.Databases(ctx); err != nil || strings.Contains(strings.Join(names, "\n"), "__fp_") {
		t.Errorf("left on the server: %q, %v", names, err)
	}
	if third := m.says(last...); !strings.Contains(third, "All of the plan is done") {
		t.Errorf("a third command: %s", third)
	}
	if out := m.says("globals", "diff", "shop", "--to", "file:new.dsn", "--config", "here/restore.yaml"); !strings.Contains(out, "Roles and tablespaces of backup") || strings.Contains(out, "would be made") {
		t.Errorf("afterwards the server lacks roles: %s", out)
	}
	var compared struct{ Backup, To string }
	if err := json.Unmarshal([]byte(m.says("globals", "diff", "shop", "--to", "file:new.dsn", "--config", "here/restore.yaml", "-o", "json")), &compared); err != nil {
		t.Fatal(err)
	}
	replay(t, "../cli/testdata/e2e/globals.txt", map[string]string{"BACKUP": compared.Backup, "SERVER": compared.To}, func(args ...string) (string, error) {
		out, err := m.command(args...).Output()
		return string(out), err
	})
	other := m.command("restore", "--server", "shop", "--to", "file:new.dsn", "--config", "here/restore.yaml", "--plan", "other.json", "--yes", "shop")
	if out, err := other.CombinedOutput(); err == nil || !strings.Contains(string(out), "--skip-existing") || !strings.Contains(string(out), shop) {
		t.Errorf("over what is there: %s%v", out, err)
	}
}

// forget makes of a plan one whose command was killed after a database was swapped in, before that was noted.
func forget(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var p offline.ServerPlan
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Databases) != 2 || p.Databases[0].Done == nil || p.Databases[0].Prepared == nil || p.Databases[1].Done != nil || p.GlobalsDone == nil {
		t.Fatalf("the plan of the killed command: %s", text)
	}
	p.Databases[0].Done = nil
	if text, err = json.Marshal(p); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// backupOf asks for a backup of a database and waits for its end.
func (c *cluster) backupOf(by, database string) {
	c.t.Helper()
	task, err := c.client(by).CreateBackup(c.ctx, api.CreateBackup{Database: database})
	if err != nil {
		c.t.Fatal(err)
	}
	c.finishes(by, task.ID)
}
