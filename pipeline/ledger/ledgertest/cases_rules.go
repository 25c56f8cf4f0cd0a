package ledgertest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// shutOutAmidWrites shuts a run out while four of its writers go on: what they had written when ShutOut returned is what
// stays, whatever was on its way.
func shutOutAmidWrites(b *bench) {
	const writers = 4
	began := make(chan struct{}, writers)
	ends := make(chan error, writers)
	var wait sync.WaitGroup
	for i := range writers {
		b.plan(id(i))
		g, row := b.take(id(i), "aa")
		row.State = ledger.Uploading
		wait.Go(func() {
			for n := int64(1); ; n++ {
				row.Progress.Read = n
				if err := b.led.Write(b.ctx, g, ledger.Change{Task: row}); err != nil && (b.ctx.Err() != nil || !errors.Is(err, ledger.ErrUnavailable)) {
					ends <- err
					return
				}
				if n == 3 {
					began <- struct{}{}
				}
			}
		})
	}
	for range writers {
		select {
		case <-began:
		case err := <-ends:
			b.Fatalf("a writer of an open run: %v", err)
		}
	}
	b.recoverer(id(0), "aa", "bb")
	var before [writers]ledger.Task
	for i := range before {
		before[i] = b.task(id(i))
	}
	wait.Wait()
	for i := range before {
		b.want(<-ends, ledger.ErrFenced, "end of a writer")
		if now := b.task(id(i)); now.Progress.Read != before[i].Progress.Read || !now.Updated.Equal(before[i].Updated) {
			b.Errorf("written after the shut-out: %+v, then %+v", before[i], now)
		}
	}
}

func id(i int) string { return fmt.Sprintf("t%d", i) }

// lowerTokenOfTheRun: a run that lost its claim and has it again under a larger token writes nothing with the earlier one,
// though it is open, was not shut out and is the row's owner: only the token tells the two.
func lowerTokenOfTheRun(b *bench) {
	b.plan("t1")
	low, row := b.take("t1", "aa")
	b.group.CloseRun("aa")
	token, err := b.group.Adopt(component, "t1", "aa")
	b.must(err, "adopt")
	b.group.OpenRun("aa")
	high := low
	high.Token = token
	_, err = b.led.Take(b.ctx, high, "t1", "node-aa")
	b.must(err, "take with the larger token")
	b.want(b.write(low, row, ledger.Creating, ledger.BackupCreating), ledger.ErrFenced, "write with the lower token")
	_, err = b.led.Take(b.ctx, low, "t1", "node-aa")
	b.want(err, ledger.ErrFenced, "take with the lower token")
	if now := b.task("t1"); now.State != ledger.Planned || now.Token != token {
		b.Fatalf("row: %+v, want token %d", now, token)
	}
	b.must(b.write(high, b.task("t1"), ledger.Creating, ledger.BackupCreating), "write with the larger token")
}

// leftIsKnown: who takes over is told whose the row was, and the entry names the token that may have left something until
// somebody has reverted it, however many die before that.
func leftIsKnown(b *bench) {
	b.plan("t1")
	g, row := b.take("t1", "aa")
	b.must(b.write(g, row, ledger.Uploading, ledger.BackupCreating), "begin")
	dead, token, run := "aa", g.Token, "aa"
	for _, heir := range []string{"bb", "cc"} {
		next := b.recoverer("t1", dead, heir)
		before, err := b.led.Take(b.ctx, next, "t1", "node-"+heir)
		b.must(err, "take over by "+heir)
		if before.Token != token || before.Run != run || before.State != ledger.Uploading {
			b.Fatalf("%s is told of %+v, want token %d of run %s", heir, before, token, run)
		}
		entry, err := b.led.Backup(b.ctx, "bt1")
		if b.must(err, "read the entry"); entry.Token != g.Token || entry.State != ledger.BackupCreating {
			b.Fatalf("the entry forgot token %d: %+v", g.Token, entry)
		}
		dead, token, run = heir, next.Token, heir
	}
}

// goneIsKept: what was deleted keeps its entry, with the token below which a sweep removes, and is listed when asked for.
func goneIsKept(b *bench) {
	b.plan("t1")
	g, row := b.take("t1", "aa")
	for _, s := range []ledger.BackupState{ledger.BackupCreating, ledger.BackupGone} {
		b.must(b.write(g, row, ledger.Creating, s), "entry to "+string(s))
	}
	b.must(b.write(g, row, ledger.Failed), "end")
	list, err := b.led.Backups(b.ctx, ledger.BackupFilter{State: ledger.BackupGone})
	if b.must(err, "list"); len(list) != 1 || list[0].ID != "bt1" || list[0].Token != g.Token || list[0].Gone.IsZero() {
		b.Fatalf("gone entries: %+v, want bt1 with token %d", list, g.Token)
	}
}

// deletingStays: what is being deleted is not brought back, by its owner or by who takes over, and comes to its end.
func deletingStays(b *bench) {
	entry := b.kept("t1")
	b.kept("t2")
	g, row := b.ready(ledger.Task{ID: "d1", Type: ledger.Delete, Database: "shop", Backup: "bt1", Flight: "backup/bt1"}, "aa")
	b.must(b.deleting(g, row, entry, nil), "delete")
	heir := b.recoverer("d1", "aa", "bb")
	_, err := b.led.Take(b.ctx, heir, "d1", "node-bb")
	b.must(err, "take over")
	row = b.task("d1")
	if row.State != ledger.Deleting {
		b.Fatalf("row taken over: %+v", row)
	}
	for _, s := range []ledger.BackupState{ledger.BackupCompleted, ledger.BackupCreating} {
		back := entry
		back.State, back.Token = s, heir.Token
		change := ledger.Change{Task: row, Backup: &back}
		change.Task.State = ledger.Cancelled
		if err := b.led.Write(b.ctx, heir, change); err == nil {
			b.Fatalf("what was being deleted became %s", s)
		}
	}
	b.wantState("bt1", ledger.BackupDeleting)
	_, err = b.led.EditBackup(b.ctx, "bt1", func(m ledger.Mark) ledger.Mark { m.Pinned = true; return m })
	b.want(err, ledger.ErrFinal, "pin what is being deleted")
	b.must(b.write(heir, row, ledger.Completed, ledger.BackupGone), "end it")
	b.wantState("bt1", ledger.BackupGone)
}
