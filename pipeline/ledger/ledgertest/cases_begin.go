package ledgertest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// kept plans, takes and completes a create task whose backup is "b"+id of the database shop.
func (b *bench) kept(id string) ledger.Backup {
	b.Helper()
	b.plan(id)
	g, row := b.take(id, "aa")
	b.must(b.write(g, row, ledger.Creating, ledger.BackupCreating), "begin "+id)
	b.must(b.write(g, row, ledger.Completed, ledger.BackupCompleted), "complete "+id)
	entry, err := b.led.Backup(b.ctx, "b"+id)
	b.must(err, "read b"+id)
	return entry
}

// task that is planned, claimed and taken by run.
func (b *bench) ready(t ledger.Task, run string) (ledger.Guard, ledger.Task) {
	b.Helper()
	t.MaxAttempts, t.OnFailure = 3, "rerun"
	b.must(b.led.Plan(b.ctx, t), "plan "+t.ID)
	return b.take(t.ID, run)
}

// deleting is the write that marks a backup.
func (b *bench) deleting(g ledger.Guard, row ledger.Task, entry ledger.Backup, confirm func([]ledger.Backup) error) error {
	row.State, entry.State = ledger.Deleting, ledger.BackupDeleting
	return b.led.Write(b.ctx, g, ledger.Change{Task: row, Backup: &entry, Confirm: confirm})
}

func (b *bench) wantState(id string, s ledger.BackupState) {
	b.Helper()
	if now, err := b.led.Backup(b.ctx, id); err != nil || now.State != s {
		b.Fatalf("backup %s: %+v, %v; want %s", id, now, err, s)
	}
}

func onlyOneInFlight(b *bench) {
	one := ledger.Task{Type: ledger.Create, Database: "shop", Flight: "create/shop"}
	one.ID, one.Backup = "t1", "bt1"
	g1, row1 := b.ready(one, "aa")
	one.ID, one.Backup = "t2", "bt2"
	g2, row2 := b.ready(one, "bb")
	one.ID, one.Backup, one.Database, one.Flight = "t3", "bt3", "other", "create/other"
	g3, row3 := b.ready(one, "cc")
	b.must(b.write(g1, row1, ledger.Creating), "begin t1")
	b.want(b.write(g2, row2, ledger.Creating, ledger.BackupCreating), ledger.ErrInFlight, "begin t2 beside it")
	if now := b.task("t2"); now.State != ledger.Planned {
		b.Fatalf("t2 was written: %+v", now)
	}
	if _, err := b.led.Backup(b.ctx, "bt2"); !errors.Is(err, ledger.ErrNotFound) {
		b.Fatalf("the entry of t2 was written: %v", err)
	}
	b.must(b.write(g3, row3, ledger.Creating), "begin t3 of another flight")
	b.must(b.write(g1, row1, ledger.Failed), "end t1")
	b.must(b.write(g2, row2, ledger.Creating), "begin t2 after it")
}

// flightsRace: many begin at once, one may.
func flightsRace(b *bench) {
	const n = 6
	var guards [n]ledger.Guard
	var rows [n]ledger.Task
	for i := range n {
		guards[i], rows[i] = b.ready(ledger.Task{ID: fmt.Sprintf("t%d", i), Type: ledger.Create, Database: "shop", Flight: "create/shop"}, "aa")
	}
	var wait sync.WaitGroup
	var errs [n]error
	for i := range n {
		wait.Go(func() { errs[i] = b.write(guards[i], rows[i], ledger.Creating) })
	}
	wait.Wait()
	began := 0
	for _, err := range errs {
		if err == nil {
			began++
		} else if !errors.Is(err, ledger.ErrInFlight) {
			b.Errorf("begin: %v", err)
		}
	}
	if began != 1 {
		b.Fatalf("%d began, want 1", began)
	}
}

// dumpsOfAServer: many begin at once, of databases that share a server which allows two; two may, and another one when one
// of them has ended. Those of another server do not count.
func dumpsOfAServer(b *bench) {
	const n = 6
	var guards [n]ledger.Guard
	var rows [n]ledger.Task
	for i := range n {
		name := fmt.Sprintf("db%d", i)
		guards[i], rows[i] = b.ready(ledger.Task{ID: fmt.Sprintf("t%d", i), Type: ledger.Create, Database: name, Flight: "create/" + name, Server: "h:1", MaxDumps: 2}, "aa")
	}
	other, row := b.ready(ledger.Task{ID: "other", Type: ledger.Create, Database: "far", Flight: "create/far", Server: "h:2", MaxDumps: 1}, "bb")
	b.must(b.write(other, row, ledger.Creating), "begin at another server")
	var wait sync.WaitGroup
	var errs [n]error
	for i := range n {
		wait.Go(func() { errs[i] = b.write(guards[i], rows[i], ledger.Creating) })
	}
	wait.Wait()
	began, late := []int{}, []int{}
	for i, err := range errs {
		switch {
		case err == nil:
			began = append(began, i)
		case errors.Is(err, ledger.ErrInFlight):
			late = append(late, i)
		default:
			b.Errorf("begin: %v", err)
		}
	}
	if len(began) != 2 || len(late) != n-2 {
		b.Fatalf("%d began, want 2", len(began))
	}
	b.must(b.write(guards[began[0]], b.task(rows[began[0]].ID), ledger.Failed), "end one")
	b.must(b.write(guards[late[0]], rows[late[0]], ledger.Creating), "begin after it")
	b.want(b.write(guards[late[1]], rows[late[1]], ledger.Creating), ledger.ErrInFlight, "begin beside two")
}

func deletesAreChecked(b *bench) {
	entry := b.kept("t1")
	del := func(id string) (ledger.Guard, ledger.Task) {
		return b.ready(ledger.Task{ID: id, Type: ledger.Delete, Database: "shop", Backup: "bt1", Flight: "backup/bt1"}, "aa")
	}
	g, row := del("d1")
	b.want(b.deleting(g, row, entry, nil), ledger.ErrRefused, "delete the last good one")
	b.kept("t2")
	pin := func(on bool) func(ledger.Mark) ledger.Mark {
		return func(m ledger.Mark) ledger.Mark { m.Pinned, m.By = on, "ann"; return m }
	}
	after, err := b.led.EditBackup(b.ctx, "bt1", pin(true))
	if b.must(err, "pin"); !after.Mark.Pinned || after.Mark.By != "ann" {
		b.Fatalf("after pinning: %+v", after)
	}
	b.want(b.deleting(g, row, entry, nil), ledger.ErrRefused, "delete a pinned one")
	_, err = b.led.EditBackup(b.ctx, "bt1", pin(false))
	b.must(err, "unpin")
	b.must(b.led.Plan(b.ctx, ledger.Task{ID: "r1", Type: ledger.Restore, MaxAttempts: 1, Database: "elsewhere", Of: "shop", Backup: "bt1"}), "plan a restore")
	b.want(b.deleting(g, row, entry, nil), ledger.ErrRefused, "delete what is asked for")
	gr, rr := b.take("r1", "bb")
	b.must(b.write(gr, rr, ledger.Failed), "end the restore")
	mind := errors.New("retention keeps it")
	var asked []ledger.Backup
	b.want(b.deleting(g, row, entry, func(all []ledger.Backup) error { asked = all; return mind }), mind, "delete against Confirm")
	if len(asked) != 2 {
		b.Fatalf("Confirm was asked with %d entries, want 2", len(asked))
	}
	b.must(b.led.RequestCancel(b.ctx, "d1", "ann"), "undo it")
	b.want(b.deleting(g, row, entry, nil), ledger.ErrRefused, "delete what was undone")
	b.wantState("bt1", ledger.BackupCompleted)
	b.must(b.write(g, row, ledger.Cancelled), "end it")
	g, row = del("d2")
	b.must(b.deleting(g, row, entry, nil), "delete it")
	b.wantState("bt1", ledger.BackupDeleting)
	_, err = b.led.EditBackup(b.ctx, "bt1", pin(true))
	b.want(err, ledger.ErrFinal, "pin what is being deleted")
	gv, rv := b.ready(ledger.Task{ID: "v1", Type: ledger.Verify, Database: "shop", Backup: "bt1"}, "bb")
	b.want(b.write(gv, rv, ledger.Downloading), ledger.ErrRefused, "read what is being deleted")
}

// twoDeletesRace (PROTOCOL.md 30): two good backups, two deletes at once, each of which sees the other's as the one left.
func twoDeletesRace(b *bench) {
	for round := range 5 {
		db := fmt.Sprintf("shop%d", round)
		var deletes [2]func() error
		for i := range deletes {
			id := fmt.Sprintf("x%d-%d", round, i)
			g, row := b.ready(ledger.Task{ID: id, Type: ledger.Create, Database: db, Backup: "b" + id}, "aa")
			b.must(b.write(g, row, ledger.Creating, ledger.BackupCreating), "begin")
			b.must(b.write(g, row, ledger.Completed, ledger.BackupCompleted), "complete")
			entry, err := b.led.Backup(b.ctx, "b"+id)
			b.must(err, "read")
			gd, rd := b.ready(ledger.Task{ID: "d" + id, Type: ledger.Delete, Database: db, Backup: "b" + id}, "aa")
			deletes[i] = func() error { return b.deleting(gd, rd, entry, nil) }
		}
		var wait sync.WaitGroup
		var errs [2]error
		for i, del := range deletes {
			wait.Go(func() { errs[i] = del() })
		}
		wait.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			b.Fatalf("round %d: %v and %v: want exactly one", round, errs[0], errs[1])
		}
	}
}

// editsKeepAndAreKept: what people say survives what workers write, and the other way round.
func editsKeepAndAreKept(b *bench) {
	entry := b.kept("t1")
	_, err := b.led.EditBackup(b.ctx, "bt1", func(m ledger.Mark) ledger.Mark { m.Note = "before the move"; return m })
	b.must(err, "note")
	g, row := b.ready(ledger.Task{ID: "v1", Type: ledger.Verify, Database: "shop", Backup: "bt1"}, "aa")
	b.must(b.write(g, row, ledger.Downloading), "begin to verify")
	entry.Verified, entry.Mark = b.task("v1").Updated, ledger.Mark{Pinned: true}
	row.State = ledger.Completed
	b.must(b.led.Write(b.ctx, g, ledger.Change{Task: row, Backup: &entry}), "verified")
	now, err := b.led.Backup(b.ctx, "bt1")
	if b.must(err, "read"); now.Mark != (ledger.Mark{Note: "before the move"}) || now.Verified.IsZero() {
		b.Fatalf("entry: %+v", now)
	}
	_, err = b.led.EditBackup(b.ctx, "none", func(m ledger.Mark) ledger.Mark { return m })
	b.want(err, ledger.ErrNotFound, "edit what is not there")
}

// pages: a listing in pages is the listing.
func pages(b *bench) {
	for i := range 7 {
		t := ledger.Task{ID: fmt.Sprintf("t%d", i), Type: ledger.Create, RunType: ledger.User, MaxAttempts: 1, Database: "shop"}
		if i%3 == 0 {
			t.RunType = ledger.Internal
		}
		b.must(b.led.Plan(b.ctx, t), "plan")
	}
	for _, f := range []ledger.TaskFilter{{}, {RunType: ledger.Internal}, {RunType: ledger.User, Type: ledger.Create}} {
		whole, err := b.led.Tasks(b.ctx, f)
		b.must(err, "list")
		var got []string
		for f.Limit = 2; ; {
			page, err := b.led.Tasks(b.ctx, f)
			b.must(err, "page")
			for _, t := range page {
				got = append(got, t.ID)
				f.After = ledger.Place{Created: t.Created, ID: t.ID}
			}
			if len(page) < f.Limit {
				break
			}
		}
		if len(got) != len(whole) {
			b.Fatalf("pages %q of %d tasks", got, len(whole))
		}
		for i, t := range whole {
			if got[i] != t.ID {
				b.Fatalf("pages %q, the list has %s at %d", got, t.ID, i)
			}
		}
	}
}
