package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/ledger"
	ledgerdb "github.com/fencepost/fencepost/pipeline/ledger/postgres"
	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/signals"
)

// keeping is a node whose ledger is a database named tasks, on the server of its database shop.
func keeping(t *testing.T) (*pgtest.Server, configs.Config) {
	t.Helper()
	pg := pgtest.New(t, pgtest.Options{})
	pg.NamedDatabase(t, "shop")
	pg.Exec(t, "shop", `CREATE TABLE goods AS SELECT generate_series(1, 100) AS id`)
	pg.NamedDatabase(t, "tasks")
	c := config(t)
	c.Ledger.DSN = configs.NewDSN(pg.DSN("tasks"))
	c.Databases[0].DSN = configs.NewDSN(pg.DSN("shop"))
	return pg, c
}

// ends waits until a task has ended, and returns its state.
func ends(t *testing.T, a *App, id string) string {
	t.Helper()
	limit := time.After(2 * time.Minute)
	for {
		task, err := jobs{a}.Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if task.Final {
			return task.State
		}
		select {
		case <-a.group.Cache().Changed():
		case <-time.After(50 * time.Millisecond): // a ledger in a database does not show in the log
		case <-limit:
			t.Fatalf("%+v", task)
		}
	}
}

// backs makes a backup of shop, whole, and returns its id.
func backs(t *testing.T, a *App) string {
	t.Helper()
	task, err := jobs{a}.CreateBackup(t.Context(), api.CreateBackup{Database: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if got := ends(t, a, task.ID); got != api.Completed {
		t.Fatalf("the backup is %s", got)
	}
	return task.Backup
}

// stored is what lies in the storages of a node.
func stored(t *testing.T, c configs.Config) (all string) {
	t.Helper()
	for _, s := range c.Storages {
		all += tree(t, s.Path)
	}
	return all
}

// objects are the names and sizes of what lies in the storages of a node, what the group notes there for itself aside: a node
// that works goes on with that.
func objects(t *testing.T, c configs.Config) string {
	t.Helper()
	var all strings.Builder
	for _, s := range c.Storages {
		err := filepath.WalkDir(s.Path, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == storage.Reserved {
				return fs.SkipDir
			}
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				fmt.Fprintln(&all, path, info.Size(), info.ModTime())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// swapDatabase puts a copy of a database in its place; nobody is connected to either.
func swapDatabase(t *testing.T, pg *pgtest.Server, name, by string) {
	t.Helper()
	pg.Exec(t, "postgres", `DROP DATABASE "`+name+`" WITH (FORCE)`)
	pg.Exec(t, "postgres", `ALTER DATABASE "`+by+`" RENAME TO "`+name+`"`)
}

// shownPlan is a plan in one line.
func shownPlan(p api.LedgerPlan) string {
	var out []string
	for _, b := range p.Backups {
		out = append(out, fmt.Sprintf("%s %s→%s", b.ID, b.Was, b.Is))
	}
	for _, x := range p.Tasks {
		out = append(out, fmt.Sprintf("%s %s→%s", x.Type, x.Was, x.Is))
	}
	return strings.Join(out, ", ")
}

// TestLedgerOfLastNight: the ledger is put back to a copy of last night, in which a restore and a delete are asked for that were
// carried out since, and a backup is missing. Everything is frozen; reconciled, it says what the storages hold, nothing is
// restored or deleted again, and work goes on.
func TestLedgerOfLastNight(t *testing.T) {
	t.Parallel()
	pg, c := keeping(t)
	a, stop := start(t, c)
	ready(t, a)
	first, second := backs(t, a), backs(t, a)
	pause := func(on bool) {
		t.Helper()
		for _, name := range []string{"restore", "delete"} {
			if _, err := (jobs{a}).PauseComponent(t.Context(), name, on); err != nil {
				t.Fatal(err)
			}
		}
	}
	pause(true)
	restore, err := jobs{a}.Restore(t.Context(), api.RestoreBackup{Backup: second, Target: "copy"})
	if err != nil {
		t.Fatal(err)
	}
	remove, err := jobs{a}.DeleteBackup(t.Context(), first, api.DeleteBackup{Now: true})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	pg.Exec(t, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'tasks'`) // what has not quite gone
	pg.Exec(t, "postgres", `CREATE DATABASE night TEMPLATE tasks`)

	a, stop = start(t, c)
	ready(t, a)
	pause(false)
	for _, id := range []string{restore.ID, remove.ID} {
		if got := ends(t, a, id); got != api.Completed {
			t.Fatalf("task %s is %s", id, got)
		}
	}
	third := backs(t, a)
	stop()
	pg.Exec(t, "postgres", `DROP DATABASE copy WITH (FORCE)`) // a restore that is repeated makes it again
	swapDatabase(t, pg, "tasks", "night")
	before := objects(t, c)

	a, stop = start(t, c)
	waits(t, a, "older copy")
	plan, err := ledgers{a}.PlanLedger(t.Context(), api.LedgerReconcile)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{fmt.Sprintf("%s completed→gone", first): true, fmt.Sprintf("%s →completed", third): true, "restore planned→interrupted": true, "delete planned→completed": true}
	for _, part := range strings.Split(shownPlan(plan), ", ") {
		if !want[part] {
			t.Errorf("it would change %s", part)
		}
		delete(want, part)
	}
	if len(want) > 0 || plan.Done || !plan.Ledger.Frozen || len(plan.Away) > 0 {
		t.Errorf("left %v, %+v", want, plan)
	}
	for _, do := range []string{api.LedgerAdopt, api.LedgerInit} {
		var refused *api.Error
		if _, err := (ledgers{a}).DecideLedger(t.Context(), do); !errors.As(err, &refused) || refused.Code != api.CodeConflict {
			t.Errorf("%s: %v", do, err)
		}
	}
	waits(t, a, "older copy") // nothing was done yet
	done, err := ledgers{a}.DecideLedger(t.Context(), api.LedgerReconcile)
	if err != nil || !done.Done || done.Ledger.Frozen || shownPlan(done) != shownPlan(plan) {
		t.Fatalf("%+v, %v", done, err)
	}
	ready(t, a)
	for id, want := range map[string]string{restore.ID: "interrupted", remove.ID: api.Completed} {
		if got := ends(t, a, id); got != want {
			t.Errorf("task %s is %s, want %s", id, got, want)
		}
	}
	for id, want := range map[string]ledger.BackupState{first: ledger.BackupGone, second: ledger.BackupCompleted, third: ledger.BackupCompleted} {
		if b, err := a.work.ledger.Backup(t.Context(), id); err != nil || b.State != want || want == ledger.BackupCompleted && len(b.Copies) != 2 {
			t.Errorf("backup %s: %+v, %v", id, b, err)
		}
	}
	if after := objects(t, c); after != before {
		t.Errorf("the storages held\n%sand hold\n%s", before, after)
	}
	if n := pg.Text(t, "postgres", `SELECT count(*) FROM pg_database WHERE datname LIKE 'copy%'`); n != "0" {
		t.Error("the restore was repeated")
	}
	backs(t, a)
	var refused *api.Error
	if _, err := (ledgers{a}).PlanLedger(t.Context(), api.LedgerReconcile); !errors.As(err, &refused) || refused.Code != api.CodeConflict {
		t.Errorf("reconcile a ledger that is in use: %v", err)
	}
	stop()
}

// TestAllHomesLost: every home is gone, the ledger in its database is kept. A new group with the old one's configuration, which
// is what a clone for staging is too, changes no byte of storages and ledger; once a person has said that they are its own,
// it begins above all numbers, knows all backups, and does what was still to do.
func TestAllHomesLost(t *testing.T) {
	t.Parallel()
	lostHomes(t, false)
}

// TestAllHomesLostInTheMiddle: a backup had begun, too; nobody holds it, and it is taken up after a minute.
func TestAllHomesLostInTheMiddle(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 to run it")
	}
	t.Parallel()
	lostHomes(t, true)
}

// begins has a task begin under a claim of this node's run, and leaves it there.
func begins(t *testing.T, a *App, task api.Task) {
	t.Helper()
	claim, err := a.group.Claim(t.Context(), "backup", task.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, run := a.group.Self()
	guard := ledger.Guard{Run: run, Component: "backup", Item: task.ID, Token: claim.Token}
	row, err := a.work.ledger.Take(t.Context(), guard, task.ID, "n1")
	if err != nil {
		t.Fatal(err)
	}
	row.State = ledger.Creating
	entry := ledger.Backup{ID: task.Backup, Database: "shop", State: ledger.BackupCreating, Token: claim.Token}
	if err := a.work.ledger.Write(t.Context(), guard, ledger.Change{Task: row, Backup: &entry}); err != nil {
		t.Fatal(err)
	}
}

func lostHomes(t *testing.T, begun bool) {
	pg, c := keeping(t)
	a, stop := start(t, c)
	ready(t, a)
	kept := backs(t, a)
	if _, err := (jobs{a}).PauseComponent(t.Context(), "backup", true); err != nil {
		t.Fatal(err)
	}
	waiting, err := jobs{a}.CreateBackup(t.Context(), api.CreateBackup{Database: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if begun {
		begins(t, a, waiting)
	}
	last, err := a.group.Numbers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := os.RemoveAll(c.Home); err != nil {
		t.Fatal(err)
	}

	const picture = `SELECT (SELECT string_agg(t::text, ' ' ORDER BY id) FROM fencepost_ledger.tasks t) || (SELECT l::text || xmin FROM fencepost_ledger.lineage l)`
	before, was := stored(t, c), pg.Text(t, "tasks", picture)
	a, stop = start(t, c)
	select {
	case <-a.Done():
	case <-time.After(time.Minute):
		t.Fatal("it works with another group's storages")
	}
	if err := a.Err(); !errors.Is(err, storage.ErrForeign) {
		t.Fatal(err)
	}
	cluster := a.group.ClusterID()
	stop()
	if stored(t, c) != before {
		t.Error("another group's storages were changed")
	}
	for _, s := range c.Storages {
		shelf, closer, err := offline.OpenStorage(s, offline.Accounts{}, false, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		_, err = storage.Adopt(t.Context(), shelf, storage.Adoption{Cluster: cluster, TakeOver: true})
		if err := errors.Join(err, closer()); err != nil {
			t.Fatal(err)
		}
	}

	a, stop = start(t, c)
	defer stop()
	waits(t, a, "belongs to group")
	if is := pg.Text(t, "tasks", picture); is != was {
		t.Errorf("another group's ledger was %s, is %s", was, is)
	}
	var refused *api.Error
	if _, err := (ledgers{a}).DecideLedger(t.Context(), api.LedgerReconcile); !errors.As(err, &refused) || refused.Code != api.CodeConflict {
		t.Errorf("reconcile another group's: %v", err)
	}
	plan, err := ledgers{a}.PlanLedger(t.Context(), api.LedgerAdopt)
	if is := pg.Text(t, "tasks", picture); is != was {
		t.Errorf("another group's ledger was %s, is %s after it was looked at", was, is)
	}
	if err != nil || len(plan.Backups)+len(plan.Tasks) > 0 || plan.Ledger.Owner == cluster {
		t.Fatalf("%+v, %v", plan, err)
	}
	if _, err := (ledgers{a}).DecideLedger(t.Context(), api.LedgerAdopt); err != nil {
		t.Fatal(err)
	}
	ready(t, a)
	if b, err := a.work.ledger.Backup(t.Context(), kept); err != nil || b.State != ledger.BackupCompleted {
		t.Errorf("the backup that was there: %+v, %v", b, err)
	}
	if got := ends(t, a, waiting.ID); got != api.Completed {
		t.Errorf("what was still to do is %s", got)
	}
	task, err := a.work.ledger.Task(t.Context(), waiting.ID)
	if err != nil || task.Token <= last.High() {
		t.Errorf("token %d, the old group had come to %d: %v", task.Token, last.High(), err)
	}
}

// TestTwoLedgers: a node whose file names another database than the group uses, or none, is not ready and says why; with the
// right one it is again. A ledger that is lost for good is begun anew with what the storages hold.
func TestTwoLedgers(t *testing.T) {
	t.Parallel()
	pg, c := keeping(t)
	pg.NamedDatabase(t, "other")
	a, stop := start(t, c)
	ready(t, a)
	kept := backs(t, a)
	stop()
	other := c
	other.Ledger.DSN = configs.NewDSN(pg.DSN("other"))
	none := c
	none.Ledger.DSN = configs.DSN{}
	for _, x := range []struct {
		c   configs.Config
		why string
	}{{other, "the group uses another one"}, {none, "names none"}} {
		a, stop := start(t, x.c)
		waits(t, a, x.why)
		if reasons := a.unready(t.Context()); len(reasons) == 0 {
			t.Errorf("%s: it says that it is ready", x.why)
		}
		stop()
	}
	if n := pg.Text(t, "other", `SELECT count(*) FROM pg_namespace WHERE nspname = 'fencepost_ledger'`); n != "0" {
		t.Error("a second ledger was made")
	}
	pg.Exec(t, "postgres", `DROP DATABASE tasks WITH (FORCE)`)
	a, _ = start(t, other)
	waits(t, a, "the group uses another one")
	plan, err := ledgers{a}.DecideLedger(t.Context(), api.LedgerInit)
	if err != nil || shownPlan(plan) != kept+" →completed" || !plan.Done {
		t.Fatalf("%+v, %v", plan, err)
	}
	ready(t, a)
	backs(t, a)
}

// TestLedgerMoves: out of the group's own state into a database, a copy of that, and back; all tasks and backups come along,
// nobody works with what was left, and nodes say what their files lack.
func TestLedgerMoves(t *testing.T) {
	t.Parallel()
	pg, c := keeping(t)
	pg.NamedDatabase(t, "second")
	own, there := c, c
	own.Ledger.DSN = configs.DSN{}
	to := func(name string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "dsn")
		if err := os.WriteFile(file, []byte(pg.DSN(name)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + file
	}
	a, stop := start(t, own)
	ready(t, a)
	kept := backs(t, a)
	if err := a.work.ledger.Plan(t.Context(), ledger.Task{ID: "t1", Type: "by hand", MaxAttempts: 1}); err != nil {
		t.Fatal(err)
	}
	secret, err := url.Parse(pg.DSN("tasks"))
	if err != nil {
		t.Fatal(err)
	}
	word, _ := secret.User.Password()
	if _, err := (ledgers{a}).MoveLedger(t.Context(), pg.DSN("tasks")); err == nil || word == "" || strings.Contains(err.Error(), word) {
		t.Errorf("a connection with a password in it: %v", err)
	}
	moved, err := ledgers{a}.MoveLedger(t.Context(), to("tasks"))
	if err != nil || moved.Tasks != 2 || moved.Backups != 1 || !moved.InUse || moved.ID == "" {
		t.Fatalf("%+v, %v", moved, err)
	}
	if err := a.work.ledger.Plan(t.Context(), ledger.Task{ID: "t2", MaxAttempts: 1}); !errors.Is(err, components.ErrLedgerElsewhere) {
		t.Errorf("plan in what was left: %v", err)
	}
	if is, err := (ledgers{a}).Ledger(t.Context()); err != nil || is.Kind != api.LedgerPostgres || is.ID != moved.ID || !strings.Contains(is.Problem, "names none") {
		t.Errorf("%+v, %v", is, err)
	}
	stop()

	a, stop = start(t, there)
	ready(t, a)
	holds := func() {
		t.Helper()
		if b, err := a.work.ledger.Backup(t.Context(), kept); err != nil || b.State != ledger.BackupCompleted || len(b.Copies) != 2 {
			t.Errorf("backup: %+v, %v", b, err)
		}
		if x, err := a.work.ledger.Task(t.Context(), "t1"); err != nil || x.State != ledger.Planned {
			t.Errorf("task: %+v, %v", x, err)
		}
	}
	holds()
	if a.keepsEntries() {
		t.Error("what the ledger held before is still in the group's own state")
	}
	copied, err := ledgers{a}.CopyLedger(t.Context(), to("second"))
	if err != nil || copied.InUse || copied.Tasks != 2 {
		t.Errorf("%+v, %v", copied, err)
	}
	var refused *api.Error
	if _, err := (ledgers{a}).CopyLedger(t.Context(), to("second")); !errors.As(err, &refused) || refused.Code != api.CodeConflict {
		t.Errorf("copied twice: %v", err)
	}
	claim, err := a.group.Claim(t.Context(), "by hand", "t1", 1)
	if err != nil {
		t.Fatal(err)
	}
	_, run := a.group.Self()
	guard := ledger.Guard{Run: run, Component: "by hand", Item: "t1", Token: claim.Token}
	before, err := a.work.ledger.Take(t.Context(), guard, "t1", "n1")
	if err != nil {
		t.Fatal(err)
	}
	before.State, before.Attempt = ledger.Downloading, 1
	if err := a.work.ledger.Write(t.Context(), guard, ledger.Change{Task: before}); err != nil {
		t.Fatal(err)
	}
	if _, err := (ledgers{a}).MoveLedger(t.Context(), components.LedgerEmbedded); !errors.As(err, &refused) || refused.Code != api.CodeBusy {
		t.Errorf("moved while a task runs: %v", err)
	}
	before.State, before.Attempt = ledger.Planned, 0
	if err := a.work.ledger.Write(t.Context(), guard, ledger.Change{Task: before}); err != nil {
		t.Errorf("the ledger is not in use any more: %v", err)
	}
	if err := a.group.EndClaim(t.Context(), claim, signals.Abandon); err != nil {
		t.Fatal(err)
	}
	if _, err := (ledgers{a}).MoveLedger(t.Context(), components.LedgerEmbedded); err != nil {
		t.Fatal(err)
	}
	if err := a.work.ledger.Plan(t.Context(), ledger.Task{ID: "t2", MaxAttempts: 1}); !errors.Is(err, ledgerdb.ErrFrozen) {
		t.Errorf("plan in what was left: %v", err)
	}
	stop()
	a, _ = start(t, own)
	ready(t, a)
	holds()
	backs(t, a)
}
