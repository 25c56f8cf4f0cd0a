package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// fill makes n tasks, one a second, each hundredth active, in ten databases and a rare one, and a backup for each tenth.
func (b *bench) fill(n int) {
	b.Helper()
	b.exec(fmt.Sprintf(`SET search_path = fencepost_ledger;
		INSERT INTO runs (run) VALUES ('old');
		INSERT INTO tasks (id, type, run_type, state, attempt, max_attempts, database, backup, node, run, token, created, updated, finished, detail, write)
		SELECT 'x' || lpad(i::text, 8, '0'), CASE WHEN i %% 50 = 0 THEN 'restore' ELSE 'create' END, 'user', CASE WHEN i %% 100 = 0 THEN 'uploading' ELSE 'completed' END,
			1, 3, CASE WHEN i %% 1000 = 0 THEN 'rare' ELSE 'db' || i %% 10 END, 'b' || i, 'n1', 'old', i, at, at, CASE WHEN i %% 100 = 0 THEN NULL ELSE at END,
			json_build_object('id', 'x', 'storages', json_build_array('one', 'two'), 'progress', json_build_object('read', i, 'stored', json_build_object('one', i))), 'w'
		FROM generate_series(1, %d) i, LATERAL (SELECT timestamptz '2020-01-01' + i * interval '1 second') x (at);
		INSERT INTO backups (id, database, state, token, created, completed, detail)
		SELECT 'b' || i, 'db' || i %% 10, 'completed', i, at, at, '{}' FROM generate_series(1, %d, 10) i, LATERAL (SELECT timestamptz '2020-01-01' + i * interval '1 second') x (at);
		INSERT INTO copies SELECT id, 0, 'one', 'present', 1, '' FROM backups;
		ANALYZE`, n, n))
}

// 100,000 tasks: a page takes what the page holds, whatever its place, because an index has it in order; so does each
// page of a whole listing.
func TestHundredThousandTasks(t *testing.T) {
	t.Parallel()
	const n = 100_000
	b := open(t)
	b.fill(n)
	for _, c := range []struct {
		name   string
		filter ledger.TaskFilter
		want   int
		index  string
	}{
		{"ten pages", ledger.TaskFilter{Limit: 10 * pageSize}, 10 * pageSize, "tasks_newest"},
		{"newest 50", ledger.TaskFilter{Limit: 50}, 50, "tasks_newest"},
		{"active", ledger.TaskFilter{Active: true}, n / 100, "tasks_active"},
		{"of a database", ledger.TaskFilter{Database: "db7", Limit: 50}, 50, "tasks_newest"},
		{"of a rare one", ledger.TaskFilter{Database: "rare", Limit: 50}, 50, "tasks_of_database"},
		{"restores", ledger.TaskFilter{Type: ledger.Restore, Limit: 50}, 50, "tasks_of_type"},
	} {
		begun := time.Now()
		list, err := b.led.Tasks(t.Context(), c.filter)
		if err != nil || len(list) != c.want {
			t.Fatalf("%s: %d tasks, %v", c.name, len(list), err)
		}
		t.Logf("%s: %d tasks in %v", c.name, len(list), time.Since(begun).Round(100*time.Microsecond))
		for i := 1; i < len(list); i++ {
			if list[i].Created.After(list[i-1].Created) {
				t.Fatalf("%s: not newest first at %d", c.name, i)
			}
		}
		middle := Place{Created: time.Date(2020, 1, 1, 12, 0, 0, 0, time.UTC), ID: "x00000500"}
		for _, from := range []Place{{}, middle} {
			sql, args := taskQuery(c.filter, from, pageSize)
			b.explains(c.name, sql, args, c.index)
		}
	}
	begun := time.Now()
	backups, err := b.led.Backups(t.Context(), ledger.BackupFilter{})
	if err != nil || len(backups) != n/10 || len(backups[0].Copies) != 1 {
		t.Fatalf("%d backups, %v", len(backups), err)
	}
	t.Logf("all backups: %d in %v", len(backups), time.Since(begun).Round(100*time.Microsecond))
	sql, args := backupQuery(ledger.BackupFilter{Limit: 50}, Place{}, pageSize)
	b.explains("backups", sql, args, "backups_newest")
}

var (
	sorts = regexp.MustCompile(`(?m)^\s*(->\s*)?(Incremental )?Sort`)
	whole = regexp.MustCompile(`Seq Scan on (tasks|backups)`)
)

// explains checks that a query reads what it wants by an index and in its order; the few rows of a bitmap may be sorted.
func (b *bench) explains(name, sql string, args []any, index string) {
	b.Helper()
	rows, err := b.led.pool.Query(b.Context(), "EXPLAIN "+sql, args...)
	if err != nil {
		b.Fatal(err)
	}
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			b.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	p := plan.String()
	few := strings.Contains(p, "Bitmap Index Scan on "+index)
	if !few && (!strings.Contains(p, "using "+index) || sorts.MatchString(p)) || whole.MatchString(p) {
		b.Errorf("%s: want %s, no sort and no whole table:\n%s", name, index, p)
	}
}

// Pages follow one another without a gap or a repetition, also among tasks of one moment.
func TestPages(t *testing.T) {
	t.Parallel()
	b := open(t)
	at := time.Date(2026, 1, 1, 0, 0, 0, 123456000, time.UTC)
	for i := range 7 {
		task := ledger.Task{ID: fmt.Sprintf("t%d", i), Type: ledger.Create, MaxAttempts: 1, Created: at}
		if err := b.led.Plan(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	var got string
	var from Place
	for {
		page, err := b.led.TasksAfter(t.Context(), ledger.TaskFilter{Limit: 3}, from)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range page {
			got += task.ID + " "
			from = Place{Created: task.Created, ID: task.ID}
		}
		if len(page) < 3 {
			break
		}
	}
	if got != "t6 t5 t4 t3 t2 t1 t0 " {
		t.Errorf("pages: %s", got)
	}
}

// Times are the server's, whatever clock the node has; what a row holds comes back as it was, odd bytes aside.
func TestRowsComeBack(t *testing.T) {
	t.Parallel()
	b := open(t)
	server := func() time.Time {
		at, err := time.Parse(time.RFC3339Nano, b.text(`SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	before := server()
	g, row := b.take("t1", "aa")
	row.Error, row.Hint = "a\x00b\xff", "ü"
	row.Progress = ledger.Progress{Read: 1 << 40, Estimate: 7, Stored: map[string]int64{"a \x00": 1}}
	row.Prepared.Database, row.StartBy = "shop__fp_1", time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)
	if err := b.write(g, row, ledger.Completed, ledger.BackupCompleted); err != nil {
		t.Fatal(err)
	}
	got := b.row("t1")
	if got.Error != "a\uFFFDb\uFFFD" || got.Hint != "ü" || got.Progress.Read != 1<<40 || got.Progress.Stored["a \x00"] != 1 ||
		got.Prepared != row.Prepared || !got.StartBy.Equal(row.StartBy) || len(got.Storages) != 2 {
		t.Errorf("row: %+v", got)
	}
	entry, err := b.led.Backup(t.Context(), "bt1")
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Time{"created": got.Created, "updated": got.Updated, "finished": got.Finished, "entry": entry.Created, "completed": entry.Completed} {
		if at.Before(before) || at.After(server()) || at.Location() != time.UTC {
			t.Errorf("%s is %v, not between %v and now", name, at, before)
		}
	}
	if len(entry.Copies) != 2 || entry.Copies[0] != (ledger.Copy{Storage: "one", State: "present", Bytes: 10}) || entry.Copies[1].Error != "away" {
		t.Errorf("copies: %+v", entry.Copies)
	}
	big := row
	big.Storages = []string{strings.Repeat("x", MaxDetail)}
	big.ID = "t2"
	b.plan("t2")
	g2, _ := b.group.Claim("backup", "t2", "aa")
	guard := ledger.Guard{Run: "aa", Component: "backup", Item: "t2", Token: g2}
	if _, err := b.led.Take(t.Context(), guard, "t2", "n"); err != nil {
		t.Fatal(err)
	}
	if err := b.led.Write(t.Context(), guard, ledger.Change{Task: big}); err == nil {
		t.Error("a row beyond the bound was stored")
	}
}

// Hints come by notification; with all notifications lost, by the poll; and after the listening session was ended.
func TestWatch(t *testing.T) {
	t.Parallel()
	hinted := func(hints <-chan struct{}) {
		t.Helper()
		select {
		case <-hints:
		case <-soon(t).Done():
			t.Fatal("no hint")
		}
	}
	b := open(t) // polls each minute
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hints := b.led.Watch(ctx)
	b.until("1", listening)
	drain(hints)
	begun := time.Now()
	b.plan("t1")
	hinted(hints)
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("a hint by notification after %v", took)
	}
	b.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
	hinted(hints)

	polled := mustOpen(t, func() Config { c := configOf(b.dsn); c.Poll = minPoll; return c }())
	hints = polled.Watch(ctx)
	for range 3 { // nobody changes anything
		hinted(hints)
	}
}

// A server whose network went away without a word: hints go on, calls end in time, and all is well when it is back.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.plan("t1")
	p := newProxy(t, b.dsn)
	cfg := configOf(p.dsn)
	cfg.Poll, cfg.Timeout = minPoll, 5*time.Second
	led := mustOpen(t, cfg)
	hints := led.Watch(t.Context())
	p.set(func() { p.silent = true })
	if _, err := led.Task(t.Context(), "t1"); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("read from a silent server: %v", err)
	}
	drain(hints)
	for range 3 {
		select {
		case <-hints:
		case <-soon(t).Done():
			t.Fatal("no hint while the server is silent")
		}
	}
	p.set(func() { // sessions that lost something in between break
		p.silent = false
		for c := range p.conns {
			_ = c.Close()
		}
	})
	for range 3 {
		if _, err := led.Task(soon(t), "t1"); err == nil {
			return
		}
	}
	t.Error("the server is back, and not read from")
}

func drain(hints <-chan struct{}) {
	for {
		select {
		case <-hints:
		default:
			return
		}
	}
}
