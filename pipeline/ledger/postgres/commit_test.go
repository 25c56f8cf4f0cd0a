package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// through makes a second ledger on b's database, behind a proxy.
func (b *bench) through() (*Ledger, *proxy) {
	p := newProxy(b.T, b.dsn)
	cfg := configOf(p.dsn)
	cfg.MaxConns = 2
	led := mustOpen(b.T, cfg)
	b.until("2", listening) // from now on only calls send anything
	return led, p
}

// listening counts the ledgers that listen.
const listening = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`

const uploads = `SELECT count(*) FROM fencepost_ledger.task_states WHERE task = 't1' AND state = 'uploading'`

// The answer to COMMIT is lost, after the server has committed and (on a session that had not prepared its statements)
// before it got any of it: either way the write is made once, and its caller is told so.
func TestLostAnswerToCommit(t *testing.T) {
	t.Parallel()
	for _, warm := range []bool{false, true} {
		b := open(t)
		led, p := b.through()
		g, row := b.take("t1", "aa")
		if warm {
			if err := led.Write(t.Context(), g, ledger.Change{Task: func() ledger.Task { r := row; r.State = ledger.Creating; return r }()}); err != nil {
				t.Fatal(err)
			}
		}
		revision := b.text(`SELECT revision + 1 FROM fencepost_ledger.tasks`)
		armed := false
		led.hook = func(stage string) {
			if stage == "commit" && !armed {
				armed = true
				p.set(func() { p.lose = true })
			}
		}
		row.State = ledger.Uploading
		if err := led.Write(soon(t), g, ledger.Change{Task: row}); err != nil {
			t.Errorf("warm %v: %v", warm, err)
		}
		select {
		case <-p.lost:
		default:
			t.Error("no answer was lost")
		}
		if n, r := b.text(uploads), b.text(`SELECT revision FROM fencepost_ledger.tasks`); n != "1" || r != revision {
			t.Errorf("warm %v: written %s times, revision %s, want %s", warm, n, r, revision)
		}
	}
}

// lostAnd lets the answer to a write be lost, does then while the server is away for the writer, and returns what the
// writer is told in the end. committed says whether the lost write took effect.
func (b *bench) lostAnd(committed bool, g ledger.Guard, row ledger.Task, then func()) error {
	b.Helper()
	led, p := b.through()
	if committed { // the statements are prepared: the first answer is that to COMMIT
		warm := row
		warm.State = ledger.Creating
		if err := led.Write(b.Context(), g, ledger.Change{Task: warm}); err != nil {
			b.Fatal(err)
		}
	}
	armed := false
	led.hook = func(stage string) {
		if stage == "commit" && !armed {
			armed = true
			p.set(func() { p.lose, p.away = true, true })
		}
	}
	row.State = ledger.Uploading
	told := make(chan error, 1)
	go func() { told <- led.Write(soon(b.T), g, ledger.Change{Task: row}) }()
	<-p.lost
	then()
	p.set(func() { p.away = false })
	return <-told
}

// The run is shut out before the outcome of its last write is known: what was committed was written, what was not is
// fenced.
func TestLostAnswerThenShutOut(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{true, false} {
		b := open(t)
		g, row := b.take("t1", "aa")
		err := b.lostAnd(committed, g, row, func() {
			if err := b.led.ShutOut(soon(t), b.fence("aa", "bb")); err != nil {
				t.Fatal(err)
			}
		})
		if committed && (err != nil || b.text(uploads) != "1") {
			t.Errorf("a committed write is told as %v", err)
		}
		if !committed && (!errors.Is(err, ledger.ErrFenced) || b.text(uploads) != "0") {
			t.Errorf("a lost write is told as %v", err)
		}
	}
}

// A successor has written since: the history still tells that the lost write was made.
func TestLostAnswerThenTakenOver(t *testing.T) {
	t.Parallel()
	b := open(t)
	g, row := b.take("t1", "aa")
	err := b.lostAnd(true, g, row, func() {
		f := b.fence("aa", "bb")
		if err := b.led.ShutOut(soon(t), f); err != nil {
			t.Fatal(err)
		}
		token, err := b.group.Adopt("backup", "t1", "bb")
		if err != nil {
			t.Fatal(err)
		}
		heir := ledger.Guard{Run: "bb", Component: "backup", Item: "t1", Token: token, Fence: &f}
		if _, err := b.led.Take(soon(t), heir, "t1", "node-bb"); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Errorf("a committed write is told as %v", err)
	}
}

// Another write of the same claim came between: nobody can tell, so the caller is told to read.
func TestLostAnswerThenWrittenOver(t *testing.T) {
	t.Parallel()
	b := open(t)
	g, row := b.take("t1", "aa")
	err := b.lostAnd(false, g, row, func() {
		if err := b.write(g, row, ledger.Processing); err != nil {
			t.Fatal(err)
		}
	})
	if !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("told %v", err)
	}
	if row := b.row("t1"); row.State != ledger.Processing {
		t.Errorf("the later write is lost: %+v", row)
	}
}

// The server ends all sessions, as it does when it is restarted: calls go on, nothing is lost, nothing is done twice.
func TestEndedSessions(t *testing.T) {
	t.Parallel()
	b := open(t)
	g, row := b.take("t1", "aa")
	for i := range 5 {
		b.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		row.Progress.Read = int64(i)
		if err := b.write(g, row, ledger.Uploading, ledger.BackupCreating); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	if row := b.row("t1"); row.Progress.Read != 4 || row.Attempt != 1 {
		t.Errorf("row: %+v", row)
	}
}

// A server that is away for longer than a call may take: ErrUnavailable, from every call, and all is well when it is back.
func TestServerAway(t *testing.T) {
	t.Parallel()
	b := open(t)
	p := newProxy(t, b.dsn)
	cfg := configOf(p.dsn)
	cfg.Timeout = 5 * time.Second // of a shut-out, which tries on; opening takes some of it too
	led := mustOpen(t, cfg)
	g, row := b.take("t1", "aa")
	row.State = ledger.Creating
	p.set(func() {
		p.away = true
		for c := range p.conns {
			_ = c.Close()
		}
	})
	ctx := t.Context()
	calls := map[string]error{
		"plan":   led.Plan(ctx, ledger.Task{ID: "t2", MaxAttempts: 1}),
		"write":  led.Write(ctx, g, ledger.Change{Task: row}),
		"cancel": led.RequestCancel(ctx, "t1", "ann"),
		"shut":   led.ShutOut(ctx, ledger.Fence{Component: "c", Node: "n", Run: "zz", Token: 1}),
	}
	_, calls["take"] = led.Take(ctx, g, "t1", "n1")
	_, calls["task"] = led.Task(ctx, "t1")
	_, calls["tasks"] = led.Tasks(ctx, ledger.TaskFilter{})
	_, calls["backup"] = led.Backup(ctx, "t1")
	_, calls["backups"] = led.Backups(ctx, ledger.BackupFilter{})
	_, calls["open"] = Open(ctx, cfg)
	for name, err := range calls {
		if !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ErrSetup) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.set(func() { p.away = false })
	if err := led.Write(soon(t), g, ledger.Change{Task: row}); err != nil {
		t.Errorf("write when it is back: %v", err)
	}
}
