package ledgertest

import (
	"context"
	"errors"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// errorsComeUntilHandled: oldest first, at most so many, each until somebody has handled it, and none after that.
func errorsComeUntilHandled(b *bench) {
	var guards []ledger.Guard
	for _, id := range []string{"t1", "t2", "t3"} {
		b.plan(id)
		g, _ := b.take(id, "aa")
		guards = append(guards, g)
		b.must(b.led.NoteError(b.ctx, g, "disk full at "+id), "note "+id)
		b.must(b.led.NoteError(b.ctx, g, "again"), "note it again")
	}
	late := guards[0]
	late.Token--
	b.want(b.led.NoteError(b.ctx, late, "late"), ledger.ErrFenced, "note under an earlier token")
	boom := errors.New("boom")
	var seen []string
	handle := func(_ context.Context, e ledger.TaskError) error {
		seen = append(seen, e.Task+": "+e.Problem)
		if e.Task == "t1" {
			return boom
		}
		return nil
	}
	n, err := b.led.HandleErrors(b.ctx, 2, handle)
	if b.want(err, boom, "handle two"); n != 1 || len(seen) != 2 || seen[0] != "t1: disk full at t1" || seen[1] != "t2: disk full at t2" {
		b.Fatalf("handled %d of %q", n, seen)
	}
	seen = nil
	n, err = b.led.HandleErrors(b.ctx, 10, func(_ context.Context, e ledger.TaskError) error { seen = append(seen, e.Task); return nil })
	if b.must(err, "handle the rest"); n != 2 || len(seen) != 2 || seen[0] != "t1" || seen[1] != "t3" {
		b.Fatalf("handled %d of %q", n, seen)
	}
	n, err = b.led.HandleErrors(b.ctx, 10, handle)
	if b.must(err, "handle nothing"); n != 0 {
		b.Fatalf("handled %d again", n)
	}
}
