package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

var shared Shared

// TestMain runs the tests, or plays the process that is killed while it holds a server (see TestKilledHolder).
func TestMain(m *testing.M) {
	if os.Getenv("PGTEST_HOLD") == "" {
		goleak.VerifyTestMain(shared.Around(m))
		return
	}
	s, err := Start(context.Background(), "", Options{})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println(s.Dir)
	select {}
}

func TestStartNeedsEmptyDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Fatalf("started in a directory that is not empty: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "mine")); err != nil {
		t.Fatalf("what was there is gone: %v", err)
	}
}

func TestPasswordIsAskedFor(t *testing.T) {
	s := New(t, Options{Password: `p@ss:w/o\rd %+&'"$ ü`})
	for _, c := range []struct {
		password string
		good     bool
	}{{s.Password, true}, {"wrong", false}} {
		conn, err := pgx.Connect(t.Context(), s.DSNFor(Superuser, c.password, "postgres"))
		if (err == nil) != c.good {
			t.Errorf("connect with password %q: %v", c.password, err)
		}
		if conn != nil {
			_ = conn.Close(t.Context())
		}
	}
}

func TestStopLeavesNothing(t *testing.T) {
	s := New(t, Options{})
	if len(processesIn(t, s.Dir)) == 0 {
		t.Fatal("found no process of a running server: this test cannot see")
	}
	conn, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	id := segment(t, s)
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if left := processesIn(t, s.Dir); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory left: %v", err)
	}
	if segmentExists(id) {
		t.Errorf("shared memory %s left", id)
	}
}

// A process that is killed cannot clean up: its server must not outlive it all the same.
func TestKilledHolder(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Log("no /proc on this system: the shell's work is not visible")
		return
	}
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), "PGTEST_HOLD=1")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	dir := strings.TrimSpace(line)
	if err != nil || !filepath.IsAbs(dir) {
		t.Fatalf("the holder said %q: %v", line, err)
	}
	if len(processesIn(t, dir)) == 0 {
		t.Fatal("found no process of the server")
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = holder.Wait()
	await(t, "the server to be gone", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist) && len(processesIn(t, dir)) == 0
	})
}

func TestSampleIsDeterministicAndOfItsSize(t *testing.T) {
	srv := shared.Server(t)
	const size = 8 << 20
	var prints []Print
	for range 2 {
		dsn := srv.Database(t)
		if err := Sample(t.Context(), dsn, size); err != nil {
			t.Fatal(err)
		}
		f, err := Fingerprint(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		prints = append(prints, f)
		if n := dumpSize(t, dsn); n < size || n > size*12/10 {
			t.Errorf("a sample of %d bytes gives a dump of %d", size, n)
		}
	}
	if d := Diff(prints[0], prints[1]); len(d) > 0 {
		t.Errorf("two samples differ: %s", strings.Join(d, "\n"))
	}
	f := prints[0]
	if f.Tables["public.Aufträge und Größen"].Rows == 0 || len(f.Objects) < 2 || f.Sequences["public.invoice_number"] != "424242 t" {
		t.Errorf("the sample lacks something: %v", f)
	}
}

func TestFingerprintSeesEachChange(t *testing.T) {
	srv := shared.Server(t)
	for _, c := range []struct{ sql, want string }{
		{`UPDATE pictures SET body = '\x00' WHERE id = 1`, "table public.pictures differs"},
		{`DELETE FROM events WHERE what = 'event 7'`, "table public.events_2025 differs"},
		{`SELECT lo_put(50001, 5, 'x')`, "large object 50001 differs"},
		{`SELECT lo_unlink(50002)`, "large object 50002 is missing"},
		{`SELECT nextval('invoice_number')`, "sequence public.invoice_number differs"},
		{`DROP INDEX "by größe"`, "is missing"},
		{`CREATE TABLE extra ()`, "table public.extra is new"},
		{`GRANT SELECT ON pictures TO PUBLIC`, "schema object"},
		{`ALTER TABLE customers ALTER name SET DEFAULT 'x'`, "schema object column public customers name"},
	} {
		t.Run(c.sql, func(t *testing.T) {
			dsn := srv.NamedDatabase(t, "changes")
			if err := Sample(t.Context(), dsn, 0); err != nil {
				t.Fatal(err)
			}
			before, err := Fingerprint(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			srv.Exec(t, "changes", c.sql)
			after, err := Fingerprint(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			if d := strings.Join(Diff(before, after), "\n"); !strings.Contains(d, c.want) {
				t.Errorf("want %q, got %q", c.want, d)
			}
		})
	}
}

func TestDiffOfEqualsIsEmpty(t *testing.T) {
	a := Print{Tables: map[string]Table{"t": {Rows: 1, Sum: "2"}}, Objects: map[uint32]string{1: "x"}, Schema: []string{"s"}}
	if d := cmp.Diff([]string(nil), Diff(a, a)); d != "" {
		t.Error(d)
	}
}

func dumpSize(t testing.TB, dsn string) int64 {
	t.Helper()
	bin, err := BinDir()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "pg_dump"), "-Fc", "-Z0", "-d", dsn)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, out)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	return n
}

// processesIn lists processes that have dir on their command line or as working directory.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range entries {
		line, _ := os.ReadFile(p + "/cmdline")
		cwd, _ := os.Readlink(p + "/cwd")
		if strings.Contains(string(line), dir) || strings.HasPrefix(cwd, dir) {
			found = append(found, p+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// segment returns the id of the server's System V segment, as the server's lock file says it (line 7: key and id).
func segment(t *testing.T, s *Server) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.Dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 7 || len(strings.Fields(lines[6])) != 2 {
		t.Fatalf("no segment in %q", b)
	}
	return strings.Fields(lines[6])[1]
}

// segmentExists says whether a segment is on this machine; false where the system does not show them.
func segmentExists(id string) bool {
	b, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == id {
			return true
		}
	}
	return false
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	limit := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-limit:
			t.Fatalf("waited too long for %s", what)
		case <-tick.C:
		}
	}
}

func TestHold(t *testing.T) {
	srv := shared.Server(t)
	srv.NamedDatabase(t, "held")
	srv.Exec(t, "held", "CREATE TABLE rows (i int)")
	held := func() string {
		return srv.Text(t, "held", "SELECT count(*) FROM pg_locks WHERE relation = 'rows'::regclass AND mode = 'AccessExclusiveLock'")
	}
	release := srv.Hold(t, "held", "LOCK TABLE rows; INSERT INTO rows VALUES (1)")
	if n := held(); n != "1" {
		t.Errorf("%s locks are held, want 1", n)
	}
	release()
	release()
	srv.Exec(t, "held", "LOCK TABLE rows; INSERT INTO rows VALUES (2)") // waits until the session is gone
	if got := srv.Text(t, "held", "SELECT string_agg(i::text, ',') FROM rows"); got != "2" {
		t.Errorf("rows %s: the held transaction was not rolled back", got)
	}
}
