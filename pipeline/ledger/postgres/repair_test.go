package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// sole is the group's word on which ledger it uses.
type sole struct{ id string }

func (s *sole) uses(_ context.Context, found string) (string, error) {
	s.id = cmp.Or(s.id, found)
	return s.id, nil
}

// A group uses one ledger: a database that holds another, or none, is refused, and left as it is.
func TestOneLedgerForAGroup(t *testing.T) {
	t.Parallel()
	s := &sole{}
	b := open(t, func(c *Config) { c.Uses = s.uses })
	if s.id == "" || s.id != b.led.expects().ledger {
		t.Fatalf("the group uses %q, the node %q", s.id, b.led.expects().ledger)
	}
	again := configOf(b.dsn)
	again.Uses = s.uses
	mustOpen(t, again)

	empty := configOf(pg.Server(t).Database(t))
	empty.Uses = s.uses
	other := open(t)
	wrong := configOf(other.dsn)
	wrong.Uses = s.uses
	for name, c := range map[string]Config{"no ledger": empty, "another ledger": wrong} {
		_, err := Open(t.Context(), c)
		var hint interface{ Hint() string }
		if !errors.Is(err, ErrFrozen) || !errors.Is(err, ledger.ErrUnavailable) || !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "other nodes have") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if made := pg.Server(t).Text(t, nameIn(t, empty.DSN), `SELECT count(*) FROM pg_namespace WHERE nspname = 'fencepost_ledger'`); made != "0" {
		t.Error("tables were made where the group's ledger is not")
	}
	if err := other.led.Stands(t.Context()); err != nil {
		t.Errorf("the other ledger, after it was looked at: %v", err)
	}
}

// A group that is not the ledger's own (staging, with a copy of production's settings) changes no byte of it, not even when it
// knows a newer version of the tables.
func TestForeignLedgerIsLeftAlone(t *testing.T) {
	t.Parallel()
	dsn := pg.Server(t).Database(t)
	migratedTo(t, dsn, 1)
	name := nameIn(t, dsn)
	pg.Server(t).Exec(t, name, `INSERT INTO fencepost_ledger.lineage (ledger, cluster, generation, mark, state) VALUES ('L', 'production', 1, 9, 'open')`)
	const picture = `SELECT (SELECT max(version_id) FROM fencepost_ledger.schema_version) || ' ' || xmin || ' ' || state || ' ' ||
		(SELECT count(*) FROM pg_class WHERE relnamespace = 'fencepost_ledger'::regnamespace) FROM fencepost_ledger.lineage`
	before := pg.Server(t).Text(t, name, picture)
	c := configOf(dsn)
	c.Cluster, c.Mark = "staging", func(context.Context) (uint64, error) { return 5000, nil }
	if _, err := Open(t.Context(), c); !errors.Is(err, ErrForeign) {
		t.Fatal(err)
	}
	if _, err := Found(t.Context(), c, ledger.Contents{}, ""); !errors.Is(err, ErrOccupied) {
		t.Errorf("made anew: %v", err)
	}
	r, err := OpenRepair(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := errors.Join(r.Compare(t.Context()), r.Freeze(t.Context(), "by staging")); err != nil {
		t.Error(err)
	}
	if after := pg.Server(t).Text(t, name, picture); after != before {
		t.Errorf("was %s, is %s", before, after)
	}
}

// A server that comes back without the last results is noticed by a node that has not seen them itself, too: the group has.
func TestLossIsNoticedByAnyNode(t *testing.T) {
	t.Parallel()
	var mark uint64
	heard := func(c *Config) { c.Mark = func(context.Context) (uint64, error) { return mark, nil } }
	b := open(t, heard)
	g, row := b.take("t1", "aa") // by the node that dies with the server
	if err := b.write(g, row, ledger.Completed, ledger.BackupCompleted); err != nil {
		t.Fatal(err)
	}
	other := configOf(b.dsn)
	heard(&other)
	led := mustOpen(t, other) // knows the ledger's own mark, and loses it below
	led.mu.Lock()
	led.expected.mark = 0
	led.mu.Unlock()
	mark = g.Token
	b.exec(`UPDATE fencepost_ledger.lineage SET mark = 0`)
	b.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err := led.Plan(t.Context(), ledger.Task{ID: "t2", MaxAttempts: 1}); !errors.Is(err, ErrFrozen) || !strings.Contains(err.Error(), "older copy") {
		t.Errorf("plan: %v", err)
	}
}

// Sessions that go on see it too: tables that were put back below them.
func TestLossIsNoticedInOneSession(t *testing.T) {
	t.Parallel()
	b := open(t)
	g, row := b.take("t1", "aa")
	later, laterRow := b.take("t2", "aa")
	if err := b.write(g, row, ledger.Failed); err != nil {
		t.Fatal(err)
	}
	b.exec(`UPDATE fencepost_ledger.lineage SET mark = 0`)
	if err := b.write(later, laterRow, ledger.Failed); !errors.Is(err, ErrFrozen) {
		t.Errorf("write: %v", err)
	}
	if state := b.text(`SELECT state FROM fencepost_ledger.lineage`); state != "frozen" {
		t.Errorf("it is %s for the other nodes", state)
	}
}

// What a person has decided is carried out whole, opens the ledger, and is refused when something came between.
func TestAmend(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.plan("t1")
	b.plan("t2")
	old := ledger.Backup{ID: "old", Database: "shop", State: ledger.BackupCompleted, Token: 5, Completed: time.Unix(7, 0).UTC(),
		Copies: []ledger.Copy{{Storage: "one", State: ledger.CopyPresent}}}
	if err := b.led.ImportBackup(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	c := configOf(b.dsn)
	c.Mark = func(context.Context) (uint64, error) { return 2000, nil }
	look := func() *Repair {
		t.Helper()
		r, err := OpenRepair(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r
	}
	r, late := look(), look()
	if err := r.Compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if in, made := r.Lineage(); !made || !in.Frozen || !strings.Contains(in.Reason, "older copy") {
		t.Fatalf("lineage %+v", in)
	}
	if err := b.led.Plan(t.Context(), ledger.Task{ID: "t3", MaxAttempts: 1}); !errors.Is(err, ErrFrozen) {
		t.Errorf("plan while it is frozen: %v", err)
	}
	if err := b.led.RequestCancel(t.Context(), "t1", "ann"); !errors.Is(err, ErrFrozen) {
		t.Errorf("cancel while it is frozen: %v", err)
	}
	entries, active, err := r.Holding(t.Context())
	if err != nil || len(entries) != 1 || len(active) != 2 {
		t.Fatalf("holds %+v, %+v, %v", entries, active, err)
	}
	gone, fresh, ended := entries[0], old, b.row("t1")
	gone.State, gone.Gone = ledger.BackupGone, time.Now()
	fresh.ID, fresh.Token = "fresh", 1500
	fresh.Created, fresh.Completed = time.Now(), time.Now()
	ended.State, ended.Error = ledger.Interrupted, "in doubt"
	if err := r.Amend(t.Context(), Amendment{Backups: []ledger.Backup{gone, fresh}, Tasks: []ledger.Task{ended}}); err != nil {
		t.Fatal(err)
	}
	in, _ := r.Lineage()
	if in.Frozen || in.Mark != 2000 || in.Generation != 2 || in.Reason != "" {
		t.Errorf("lineage %+v", in)
	}
	if err := late.Amend(t.Context(), Amendment{}); !errors.Is(err, ErrChanged) {
		t.Errorf("a second decision on what was seen before: %v", err)
	}
	if got := b.row("t1"); got.State != ledger.Interrupted || got.Error != "in doubt" || got.Finished.IsZero() {
		t.Errorf("t1: %+v", got)
	}
	if err := r.Amend(t.Context(), Amendment{Backups: []ledger.Backup{old}, Tasks: []ledger.Task{ended}}); !errors.Is(err, ErrChanged) {
		t.Errorf("a task that has ended, ended again: %v", err)
	}
	for id, want := range map[string]ledger.BackupState{"old": ledger.BackupGone, "fresh": ledger.BackupCompleted} {
		if got, err := b.led.Backup(t.Context(), id); err != nil || got.State != want || got.Token == 0 {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	if err := b.led.Plan(t.Context(), ledger.Task{ID: "t3", MaxAttempts: 1}); err != nil {
		t.Errorf("plan afterwards: %v", err)
	}
}

// A ledger is made with all that another one holds, and holds the same.
func TestFoundHoldsTheSame(t *testing.T) {
	t.Parallel()
	b := open(t)
	g, row := b.take("t1", "aa")
	if err := b.led.AppendLog(t.Context(), g, []ledger.LogLine{{At: time.Unix(9, 0).UTC(), Text: "begun"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.led.NoteError(t.Context(), g, "half a file"); err != nil {
		t.Fatal(err)
	}
	if err := b.write(g, row, ledger.Uploading, ledger.BackupCreating); err != nil {
		t.Fatal(err)
	}
	done, doneRow := b.take("t2", "bb")
	if err := b.write(done, doneRow, ledger.Completed, ledger.BackupCompleted); err != nil {
		t.Fatal(err)
	}
	if err := b.led.RequestCancel(t.Context(), "t1", "ann"); err != nil {
		t.Fatal(err)
	}
	items := NewItems(b.led, func() string { return "aa" })
	_, err := items.Put(t.Context(), component.Item{ID: "i1", Type: "file", Events: []component.Event{{Type: "made", Start: time.Unix(5, 0), Success: true}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	first := contentsOf(t, configOf(b.dsn))
	if len(first.Tasks) != 2 || len(first.Backups) != 2 || len(first.Logs) != 1 || len(first.Errors) != 1 || len(first.Items) != 1 || len(first.Steps["t1"]) < 3 || first.Highest() != done.Token {
		t.Fatalf("%+v", first)
	}
	c := configOf(pg.Server(t).Database(t))
	in, err := Found(t.Context(), c, first, "a copy")
	if err != nil || !in.Frozen || in.Reason != "a copy" || in.Mark != done.Token || in.Cluster != c.Cluster {
		t.Fatalf("%+v, %v", in, err)
	}
	if _, err := Open(t.Context(), c); !errors.Is(err, ErrFrozen) {
		t.Errorf("a copy is opened: %v", err)
	}
	if _, err := Found(t.Context(), c, first, ""); !errors.Is(err, ErrOccupied) {
		t.Errorf("made twice: %v", err)
	}
	if diff := gocmp.Diff(shownContents(first), shownContents(contentsOf(t, c))); diff != "" {
		t.Errorf("(-was +is)\n%s", diff)
	}
	if err := amended(t, c, Amendment{}); err != nil {
		t.Fatal(err)
	}
	led := mustOpen(t, c)
	next := row
	next.State = ledger.Failed
	if err := led.Write(t.Context(), g, ledger.Change{Task: next}); err != nil {
		t.Errorf("its owner goes on in the copy: %v", err)
	}
	if it, err := NewItems(led, nil).Query(t.Context(), component.Query{Component: "c", Triggers: []component.Trigger{{Past: []string{"made"}}}, At: time.Now()}); err != nil || len(it) != 1 {
		t.Errorf("items that were made: %+v, %v", it, err)
	}
}

func contentsOf(t *testing.T, c Config) ledger.Contents {
	t.Helper()
	r, err := OpenRepair(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := r.Contents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// shownContents are contents in a form that is the same for the same.
func shownContents(c ledger.Contents) []string {
	var out []string
	add := func(kind string, v any) {
		text, err := json.Marshal(v)
		out = append(out, fmt.Sprint(kind, " ", string(text), err))
	}
	for _, t := range c.Tasks {
		add("task", t)
	}
	for _, b := range c.Backups {
		add("backup", b)
	}
	for id, l := range c.Logs {
		add("log of "+id, l)
	}
	for id, steps := range c.Steps {
		add("history of "+id, steps)
	}
	for _, e := range c.Errors {
		e.Seq = 0
		add("error", e)
	}
	for _, raw := range c.Items {
		var k component.Kept
		if err := json.Unmarshal(raw, &k); err != nil {
			out = append(out, err.Error())
		}
		add("item", k)
	}
	slices.Sort(out)
	return out
}
