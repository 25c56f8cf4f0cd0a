package ledgertest

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

func planOnce(b *bench) {
	t := b.plan("t1")
	if t.State != ledger.Planned || t.Token != 0 || t.Attempt != 0 || t.Created.IsZero() || t.Database != "shop" || len(t.Storages) != 2 {
		b.Fatalf("planned row: %+v", t)
	}
	b.want(b.led.Plan(b.ctx, ledger.Task{ID: "t1", MaxAttempts: 1}), ledger.ErrExists, "plan again")
	if again := b.task("t1"); again.Database != "shop" {
		b.Fatalf("a refused plan changed the row: %+v", again)
	}
	_, err := b.led.Task(b.ctx, "nope")
	b.want(err, ledger.ErrNotFound, "read an unknown task")
	_, err = b.led.Backup(b.ctx, "nope")
	b.want(err, ledger.ErrNotFound, "read an unknown backup")
	if err := b.led.Plan(b.ctx, ledger.Task{ID: "../x", MaxAttempts: 1}); err == nil {
		b.Fatal("an id with slashes was accepted")
	}
}

func listsNewestFirst(b *bench) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 5 {
		t := ledger.Task{ID: fmt.Sprintf("t%d", i), Type: ledger.Create, MaxAttempts: 1, Database: "shop", Created: start.Add(time.Duration(i) * time.Hour)}
		if i == 3 {
			t.Database, t.Type = "other", ledger.Restore
		}
		b.must(b.led.Plan(b.ctx, t), "plan")
	}
	g, row := b.take("t4", "aa")
	b.must(b.write(g, row, ledger.Failed), "fail t4")
	for _, c := range []struct {
		filter ledger.TaskFilter
		want   string
	}{
		{ledger.TaskFilter{}, "t4 t3 t2 t1 t0 "},
		{ledger.TaskFilter{Limit: 2}, "t4 t3 "},
		{ledger.TaskFilter{Active: true, Limit: 2}, "t3 t2 "},
		{ledger.TaskFilter{Database: "other"}, "t3 "},
		{ledger.TaskFilter{Type: ledger.Create, Active: true}, "t2 t1 t0 "},
	} {
		list, err := b.led.Tasks(b.ctx, c.filter)
		b.must(err, "list")
		got := ""
		for _, t := range list {
			got += t.ID + " "
		}
		if got != c.want {
			b.Errorf("tasks %+v: %q, want %q", c.filter, got, c.want)
		}
	}
}

func takeRaises(b *bench) {
	b.plan("t1")
	g := b.claim("t1", "aa")
	before, err := b.led.Take(b.ctx, g, "t1", "n1")
	b.must(err, "take")
	if before.State != ledger.Planned || before.Token != 0 || before.Attempt != 0 {
		b.Fatalf("row before: %+v", before)
	}
	t := b.task("t1")
	if t.Token != g.Token || t.Run != "aa" || t.Node != "n1" || t.Attempt != 1 || t.State != ledger.Planned {
		b.Fatalf("taken row: %+v", t)
	}
	b.must(b.write(g, t, ledger.Uploading, ledger.BackupCreating), "write")
	heir := b.recoverer("t1", "aa", "bb")
	before, err = b.led.Take(b.ctx, heir, "t1", "n2")
	b.must(err, "take over")
	if before.State != ledger.Uploading || before.Token != g.Token || before.Run != "aa" || before.Attempt != 1 {
		b.Fatalf("row before the take-over: %+v", before)
	}
	t = b.task("t1")
	if t.State != ledger.Uploading || t.Attempt != 2 || t.Token != heir.Token {
		b.Fatalf("row taken over: %+v", t)
	}
	_, err = b.led.Take(b.ctx, heir, "t1", "n2")
	b.want(err, ledger.ErrFenced, "take twice with one token")
	next := b.recoverer("t1", "bb", "cc")
	_, err = b.led.Take(b.ctx, next, "t1", "n3")
	b.must(err, "take over what nobody has begun")
	if t = b.task("t1"); t.Attempt != 2 || t.Token != next.Token {
		b.Fatalf("an attempt that never began is counted: %+v", t)
	}
	_, err = b.led.Take(b.ctx, b.claim("nope", "cc"), "nope", "n3")
	b.want(err, ledger.ErrNotFound, "take an unknown task")
}

func oldToken(b *bench) {
	b.plan("t1")
	old, row := b.take("t1", "aa")
	b.must(b.write(old, row, ledger.Creating), "first write")
	heir := b.recoverer("t1", "aa", "bb")
	_, err := b.led.Take(b.ctx, heir, "t1", "n2")
	b.must(err, "take over")
	b.group.OpenRun("aa") // even were the old run open, its token is not the row's
	b.want(b.write(old, row, ledger.Completed, ledger.BackupCompleted), ledger.ErrFenced, "write with the old token")
	_, err = b.led.Take(b.ctx, old, "t1", "n1")
	b.want(err, ledger.ErrFenced, "take back with the old token")
	if t := b.task("t1"); t.State != ledger.Creating || t.Token != heir.Token {
		b.Fatalf("row changed: %+v", t)
	}
	_, err = b.led.Backup(b.ctx, "bt1")
	b.want(err, ledger.ErrNotFound, "backup of the old token")
}

func wrongClaim(b *bench) {
	b.plan("t1")
	b.plan("t2")
	other := b.claim("t2", "aa")
	if _, err := b.led.Take(b.ctx, other, "t1", "n1"); err == nil {
		b.Fatal("took a task under another item's claim")
	}
	forged := ledger.Guard{Run: "aa", Component: component, Item: "t1", Token: other.Token}
	_, err := b.led.Take(b.ctx, forged, "t1", "n1")
	b.want(err, ledger.ErrFenced, "take without a claim")
	g, row := b.take("t1", "aa")
	g.Run = "bb"
	b.want(b.write(g, row, ledger.Creating), ledger.ErrFenced, "write by a run that does not hold the claim")
	if t := b.task("t1"); t.State != ledger.Planned {
		b.Fatalf("row changed: %+v", t)
	}
}

func closedRun(b *bench) {
	b.plan("t1")
	g, row := b.take("t1", "aa")
	b.must(b.write(g, row, ledger.Uploading, ledger.BackupCreating), "write while open")
	b.recoverer("t1", "aa", "bb")
	b.want(b.write(g, row, ledger.Completed, ledger.BackupCompleted), ledger.ErrFenced, "write of a closed run")
	t := b.task("t1")
	entry, err := b.led.Backup(b.ctx, "bt1")
	b.must(err, "read backup")
	if t.State != ledger.Uploading || entry.State != ledger.BackupCreating {
		b.Fatalf("a closed run changed %+v, %+v", t, entry)
	}
}

func earlierRecoverer(b *bench) {
	b.plan("t1")
	_, row := b.take("t1", "aa")
	first := b.recoverer("t1", "aa", "bb")
	_, err := b.led.Take(b.ctx, first, "t1", "n2")
	b.must(err, "first recoverer takes over")
	f := *first.Fence
	f.Token = b.group.RaiseFence(component, f.Node, f.Run, "cc")
	b.must(b.led.ShutOut(b.ctx, f), "second recoverer shuts out")
	b.want(b.write(first, row, ledger.Reverted), ledger.ErrFenced, "write of the first recoverer")
	b.want(b.led.ShutOut(b.ctx, *first.Fence), ledger.ErrFenced, "shut out by the first recoverer")
	if t := b.task("t1"); t.State != ledger.Planned {
		b.Fatalf("row changed: %+v", t)
	}
}

func finalStays(b *bench) {
	for i, end := range []ledger.State{ledger.Completed, ledger.Failed, ledger.Interrupted, ledger.Reverted, ledger.Cancelled} {
		id := fmt.Sprintf("t%d", i)
		b.plan(id)
		g, row := b.take(id, "aa")
		b.must(b.write(g, row, end), "end "+id)
		b.want(b.write(g, row, ledger.Creating), ledger.ErrFinal, "write after "+string(end))
		b.want(b.write(g, row, end), ledger.ErrFinal, "end twice "+string(end))
		b.want(b.led.RequestCancel(b.ctx, id, "ann"), ledger.ErrFinal, "cancel after "+string(end))
		if t := b.task(id); t.State != end || t.Finished.IsZero() || t.CancelBy != "" {
			b.Fatalf("row: %+v", t)
		}
		heir := b.recoverer(id, "aa", "bb")
		_, err := b.led.Take(b.ctx, heir, id, "n2")
		b.want(err, ledger.ErrFinal, "take after "+string(end))
		b.group.OpenRun("aa")
	}
}

func plannedAgain(b *bench) {
	b.plan("t1")
	g, row := b.take("t1", "aa")
	b.must(b.write(g, row, ledger.Creating), "begin")
	row.Attempt--
	b.must(b.write(g, row, ledger.Planned), "give back")
	if t := b.task("t1"); t.State != ledger.Planned || t.Token != g.Token || t.Attempt != 0 {
		b.Fatalf("row given back: %+v", t)
	}
	row.Attempt = 0
	b.must(b.write(g, row, ledger.Creating), "go on")
	row.Attempt = -5
	b.must(b.write(g, row, ledger.Uploading), "an attempt cannot be forged")
	if t := b.task("t1"); t.Attempt != 0 {
		b.Fatalf("attempt forged: %+v", t)
	}
}

func watchHints(b *bench) {
	hints := b.led.Watch(b.ctx)
	b.plan("t1")
	select {
	case <-hints:
	case <-b.ctx.Done():
		b.Fatal("no hint after a change")
	}
}
