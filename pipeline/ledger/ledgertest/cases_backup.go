package ledgertest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

func completedOnce(b *bench) {
	b.plan("t1")
	g, row := b.take("t1", "aa")
	b.must(b.write(g, row, ledger.Creating, ledger.BackupCreating), "begin")
	b.must(b.write(g, row, ledger.Completed, ledger.BackupCompleted), "complete")
	first, err := b.led.Backup(b.ctx, "bt1")
	b.must(err, "read backup")
	if first.State != ledger.BackupCompleted || first.Token != g.Token || first.Completed.IsZero() || first.Created.IsZero() {
		b.Fatalf("completed entry: %+v", first)
	}
	t := ledger.Task{ID: "t2", Type: ledger.Create, MaxAttempts: 1, Database: "shop", Backup: "bt1"}
	b.must(b.led.Plan(b.ctx, t), "plan a second task of the backup")
	g2, row2 := b.take("t2", "aa")
	if err := b.write(g2, row2, ledger.Completed, ledger.BackupCompleted); err == nil {
		b.Fatal("completed twice")
	}
	if err := b.write(g2, row2, ledger.Creating, ledger.BackupCreating); err == nil {
		b.Fatal("a completed backup was begun again")
	}
	if err := b.write(g2, row2, ledger.Failed, ledger.BackupGone); err == nil {
		b.Fatal("a completed backup went without being deleted")
	}
	if now, err := b.led.Backup(b.ctx, "bt1"); err != nil || now.Token != first.Token || now.State != first.State {
		b.Fatalf("entry changed: %+v, %v", now, err)
	}
	if t := b.task("t2"); t.State != ledger.Planned {
		b.Fatalf("task was written without its backup: %+v", t)
	}
}

func backupStates(b *bench) {
	b.plan("t1")
	g, row := b.take("t1", "aa")
	for _, s := range []ledger.BackupState{ledger.BackupCreating, ledger.BackupCreating, ledger.BackupCompleted, ledger.BackupDeleting, ledger.BackupGone} {
		b.must(b.write(g, row, ledger.Deleting, s), "entry to "+string(s))
	}
	for _, s := range []ledger.BackupState{ledger.BackupCreating, ledger.BackupCompleted, ledger.BackupDeleting} {
		if err := b.write(g, row, ledger.Deleting, s); err == nil {
			b.Fatalf("a gone backup became %s", s)
		}
	}
	list, err := b.led.Backups(b.ctx, ledger.BackupFilter{})
	if b.must(err, "list"); len(list) != 0 {
		b.Fatalf("gone entries in the list: %+v", list)
	}
	list, err = b.led.Backups(b.ctx, ledger.BackupFilter{State: ledger.BackupGone, Database: "shop"})
	if b.must(err, "list gone"); len(list) != 1 || list[0].Gone.IsZero() {
		b.Fatalf("gone entries: %+v", list)
	}
}

func allOrNothing(b *bench) {
	b.plan("t1")
	g, row := b.take("t1", "aa")
	row.State = ledger.Uploading
	for _, bad := range []ledger.Backup{
		{ID: "bt1", State: ledger.BackupCreating, Token: g.Token + 1},
		{ID: "no/slash", State: ledger.BackupCreating, Token: g.Token},
	} {
		if err := b.led.Write(b.ctx, g, ledger.Change{Task: row, Backup: &bad}); err == nil {
			b.Fatalf("accepted %+v", bad)
		}
	}
	if t := b.task("t1"); t.State != ledger.Planned {
		b.Fatalf("half a change: %+v", t)
	}
}

func takesRace(b *bench) {
	b.plan("t1")
	low := b.claim("t1", "aa")
	high := b.recoverer("t1", "aa", "bb")
	b.group.OpenRun("aa")
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, g := range []ledger.Guard{low, high} {
		wg.Go(func() { _, errs[i] = b.led.Take(b.ctx, g, "t1", "n"+g.Run) })
	}
	wg.Wait()
	b.want(errs[0], ledger.ErrFenced, "take with the token that was adopted away")
	b.must(errs[1], "take with the adopter's token")
	if t := b.task("t1"); t.Token != high.Token || t.Run != "bb" || t.Attempt != 1 {
		b.Fatalf("row: %+v", t)
	}
}

// cancelOrFinish races a cancel request with the write that ends the task: a request that was accepted is in the row,
// one that was refused met the end.
func cancelOrFinish(b *bench) {
	for i := range 20 {
		id := fmt.Sprintf("t%d", i)
		b.plan(id)
		g, row := b.take(id, "aa")
		var wg sync.WaitGroup
		var cancelled, finished error
		wg.Go(func() { cancelled = b.led.RequestCancel(b.ctx, id, "ann") })
		wg.Go(func() { finished = b.write(g, row, ledger.Completed, ledger.BackupCompleted) })
		wg.Wait()
		b.must(finished, "finish")
		t := b.task(id)
		switch {
		case cancelled == nil && t.CancelBy != "ann":
			b.Fatalf("an accepted cancel request is lost: %+v", t)
		case cancelled != nil && (!errors.Is(cancelled, ledger.ErrFinal) || t.CancelBy != ""):
			b.Fatalf("refused with %v, row %+v", cancelled, t)
		}
		if t.State != ledger.Completed {
			b.Fatalf("row: %+v", t)
		}
	}
}

func cancelSurvives(b *bench) {
	b.plan("t1")
	b.want(b.led.RequestCancel(b.ctx, "nope", "ann"), ledger.ErrNotFound, "cancel an unknown task")
	if err := b.led.RequestCancel(b.ctx, "t1", ""); err == nil {
		b.Fatal("a cancel request of nobody was accepted")
	}
	b.must(b.led.RequestCancel(b.ctx, "t1", "ann"), "cancel")
	b.must(b.led.RequestCancel(b.ctx, "t1", "bob"), "cancel again")
	g := b.claim("t1", "aa")
	before, err := b.led.Take(b.ctx, g, "t1", "n1")
	b.must(err, "take")
	row := b.task("t1")
	if before.CancelBy != "ann" || row.CancelBy != "ann" {
		b.Fatalf("cancel request lost: before %+v, row %+v", before, row)
	}
	row.CancelBy = ""
	b.must(b.write(g, row, ledger.Creating), "write without the request")
	list, err := b.led.Tasks(b.ctx, ledger.TaskFilter{Active: true})
	if b.must(err, "list"); len(list) != 1 || list[0].CancelBy != "ann" {
		b.Fatalf("a write or a listing lost the request: %+v", list)
	}
}

// sixteenWriters lets sixteen writers change sixteen tasks and one shared one; every accepted change counts.
func sixteenWriters(b *bench) {
	const writers, rounds = 16, 8
	b.plan("shared")
	shared, sharedRow := b.take("shared", "aa")
	errs := make(chan error, writers)
	for i := range writers {
		id := fmt.Sprintf("t%d", i)
		b.plan(id)
		g, row := b.take(id, "aa")
		go func() {
			errs <- func() error {
				for n := range rounds {
					row.Progress.Read = int64(n + 1)
					if err := b.write(g, row, ledger.Uploading, ledger.BackupCreating); err != nil {
						return fmt.Errorf("write %s: %w", id, err)
					}
					if err := b.write(shared, sharedRow, ledger.Uploading); err != nil {
						return fmt.Errorf("write shared: %w", err)
					}
				}
				return b.write(g, row, ledger.Completed, ledger.BackupCompleted)
			}()
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			b.Error(err)
		}
	}
	list, err := b.led.Backups(b.ctx, ledger.BackupFilter{State: ledger.BackupCompleted})
	if b.must(err, "list"); len(list) != writers {
		b.Fatalf("%d completed backups, want %d", len(list), writers)
	}
	for i := range writers {
		if t := b.task(fmt.Sprintf("t%d", i)); t.State != ledger.Completed || t.Progress.Read != rounds {
			b.Errorf("lost a write: %+v", t)
		}
	}
}
