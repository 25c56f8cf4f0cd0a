package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/pgtest"
)

var pg pgtest.Shared

// mainEnv has this test's program be the example.
const mainEnv = "FENCEPOST_EXAMPLE_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(pg.Around(m).Run())
}

// queue is a database with jobs, and what each change of a job was.
type queue struct {
	t        *testing.T
	database string
	env      []string
}

func newQueue(t *testing.T, jobs int) *queue {
	t.Helper()
	server := pg.Server(t)
	dsn, err := url.Parse(server.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	bin, err := pgtest.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{t: t, database: strings.TrimPrefix(dsn.Path, "/")}
	q.env = append(os.Environ(), mainEnv+"=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "PGHOST=127.0.0.1",
		fmt.Sprintf("PGPORT=%d", server.Port), "PGUSER="+pgtest.Superuser, "PGPASSWORD="+server.Password, "PGDATABASE="+q.database)
	if out, err := q.command(t.Context(), "-init", fmt.Sprint(jobs)).CombinedOutput(); err != nil {
		t.Fatalf("make the table: %v: %s", err, out)
	}
	server.Exec(t, q.database, `
		CREATE TABLE changes (n bigint GENERATED ALWAYS AS IDENTITY, id text, done int, node text, token bigint);
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO changes (id, done, node, token) VALUES (new.id, new.done, new.node, new.token); RETURN new; END $$;
		CREATE TRIGGER note AFTER UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION note();`)
	return q
}

func (q *queue) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = q.env
	return cmd
}

func (q *queue) ask(sql string) string {
	q.t.Helper()
	return pg.Server(q.t).Text(q.t, q.database, sql)
}

// await asks until the answer is good.
func (q *queue) await(what, sql string, good func(answer string) bool) string {
	q.t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for limit := time.After(2 * time.Minute); ; {
		if answer := q.ask(sql); good(answer) {
			return answer
		}
		select {
		case <-again.C:
		case <-limit:
			q.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// process is one running example.
type process struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	log bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) said(words ...string) (lines int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(p.log.String()) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			lines++
		}
	}
	return lines
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Three processes work off a queue. One is killed with a job in its hands; another does the rest of it, under a larger token,
// and every step of every job is done once.
func TestOneDiesAnotherTakesOver(t *testing.T) {
	q := newQueue(t, 4)
	names := []string{"n1", "n2", "n3"}
	var gossip []string
	for range names {
		gossip = append(gossip, freeAddress(t))
	}
	nodes := map[string]*process{}
	for i, name := range names {
		p := &process{cmd: q.command(context.Background(), "-node", name, "-home", filepath.Join(t.TempDir(), name),
			"-gossip", gossip[i], "-cluster", freeAddress(t), "-seeds", strings.Join(gossip, ","), "-bootstrap", strings.Join(names, ","))}
		p.cmd.Stderr = p
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		nodes[name] = p
		t.Cleanup(func() {
			if p.cmd.ProcessState == nil {
				_ = p.cmd.Process.Kill()
				_ = p.cmd.Wait()
			}
			if t.Failed() {
				t.Logf("%s:\n%s", name, p.log.String())
			}
		})
	}

	busy := q.await("a node in the middle of a job", `SELECT coalesce((SELECT node || ' ' || id FROM jobs WHERE done BETWEEN 2 AND 12 LIMIT 1), '')`,
		func(answer string) bool { return answer != "" })
	victim, job, _ := strings.Cut(busy, " ")
	if err := nodes[victim].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = nodes[victim].cmd.Wait()
	q.await("all jobs done", `SELECT count(*)::text FROM jobs WHERE done < steps`, func(answer string) bool { return answer == "0" })

	for name, p := range nodes {
		if name == victim {
			continue
		}
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%s has ended with %v", name, err)
		}
	}
	recovered := 0
	for _, p := range nodes {
		recovered += p.said("job recovered", "of="+victim, "job="+job+" ")
	}
	if recovered != 1 {
		t.Errorf("the job of %s was recovered %d times", victim, recovered)
	}
	for _, c := range []struct{ what, sql, want string }{
		{"steps, each of one", `SELECT count(*)::text FROM (SELECT done - lag(done, 1, 0) OVER (PARTITION BY id ORDER BY n) AS by FROM changes) x WHERE by = 1`, "80"},
		{"changes of another size", `SELECT count(*)::text FROM (SELECT done - lag(done, 1, 0) OVER (PARTITION BY id ORDER BY n) AS by FROM changes) x WHERE by NOT IN (0, 1)`, "0"},
		{"smaller tokens after larger ones", `SELECT count(*)::text FROM changes a, changes b WHERE a.id = b.id AND a.n < b.n AND a.token > b.token`, "0"},
		// Who took the job when it was finished already, from a list that it had read before, has changed a row as well, and no step.
		{"others that finished the dead one's job", `SELECT count(*)::text FROM (SELECT id, done, node, done - lag(done, 1, 0) OVER (PARTITION BY id ORDER BY n) AS by FROM changes) x
			WHERE id = '` + job + `' AND done = 20 AND by = 1 AND node <> '` + victim + `'`, "1"},
	} {
		if got := q.ask(c.sql); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// What a process may write is decided by the table: a smaller token than the row's meets no row.
func TestShutOut(t *testing.T) {
	q := newQueue(t, 1)
	for _, pair := range q.env {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "PG") || name == "PATH" {
			t.Setenv(name, value)
		}
	}
	ctx, jobs := t.Context(), table{}
	if left, err := jobs.take(ctx, "job-1", 7, "it's n1"); left != 20 || err != nil {
		t.Fatalf("took it with %d left, %v", left, err)
	}
	if left, err := jobs.step(ctx, "job-1", 7); left != 19 || err != nil {
		t.Fatalf("a step leaves %d, %v", left, err)
	}
	if err := jobs.shutOut(ctx, "job-1", 8); err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.step(ctx, "job-1", 7); !errors.Is(err, errShutOut) {
		t.Errorf("a late step: %v", err)
	}
	if _, err := jobs.take(ctx, "job-1", 8, "n2"); !errors.Is(err, errShutOut) {
		t.Errorf("taken under the token that shut out: %v", err)
	}
	if left, err := jobs.take(ctx, "job-1", 9, "n2"); left != 19 || err != nil {
		t.Errorf("taken by the next one with %d left, %v", left, err)
	}
	if ids, err := jobs.open(ctx); len(ids) != 1 || err != nil {
		t.Errorf("open: %v, %v", ids, err)
	}
}
