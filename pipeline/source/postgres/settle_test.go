package postgres

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

func settled(t *testing.T, s *Source, a source.Attempt, p source.Prepared, want source.Outcome) {
	t.Helper()
	for range 2 { // idempotent
		got, err := s.Settle(t.Context(), a, p)
		if err != nil || got != want {
			t.Fatalf("settle says %v, %v; want %v", got, err, want)
		}
	}
}

// A recoverer that settles before the commit: nothing happened, and nothing can happen any more.
func TestSettleBeforeCommit(t *testing.T) {
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	pg.Server(t).Exec(t, s.Database(), `DELETE FROM events`)
	before := fingerprint(t, s.Database())
	r, p := fill(t, s, first, b, source.RestoreOptions{Target: s.Database(), Replace: true})
	settled(t, s, next(first), p, source.Undone)
	noStray(t)
	fails(t, r.Commit(t.Context()), "superseded", source.ErrSuperseded)
	same(t, before, fingerprint(t, s.Database()))

	// The next attempt succeeds, and the late one changes nothing.
	second, _ := fill(t, s, next(first), b, source.RestoreOptions{Target: s.Database(), Replace: true})
	if err := second.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := fingerprint(t, s.Database())
	fails(t, r.Commit(t.Context()), "superseded", source.ErrSuperseded)
	if err := r.Abort(); err != nil {
		t.Error(err)
	}
	same(t, after, fingerprint(t, s.Database()))
}

// A recoverer that settles after the commit leaves it alone.
func TestSettleAfterCommit(t *testing.T) {
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	before := fingerprint(t, s.Database())
	pg.Server(t).Exec(t, s.Database(), `DELETE FROM events`)
	r, p := fill(t, s, first, b, source.RestoreOptions{Target: s.Database(), Replace: true, KeepOld: time.Hour})
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	settled(t, s, next(first), p, source.Committed)
	same(t, before, fingerprint(t, s.Database()))
	if !exists(t, p.Undo) {
		t.Error("the undo is gone")
	}
	// A later restore replaces it: the first one happened all the same.
	later := source.Attempt{Task: "t-2", Token: first.Token + 5}
	r, _ = fill(t, s, later, b, source.RestoreOptions{Target: s.Database(), Replace: true, KeepOld: time.Hour})
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	settled(t, s, next(first), p, source.Committed)
}

// Settle ends what an earlier attempt is doing at this moment, and only that.
func TestSettleDuringRestore(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 1<<20)
	b := takeBackup(t, s, first)
	other := source.Attempt{Task: "t-2", Token: 1}
	mine, otherRestore := first, other
	r, err := s.Restore(t.Context(), mine, source.RestoreOptions{Target: "during", Info: b.info})
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Restore(t.Context(), otherRestore, source.RestoreOptions{Target: "during", Info: b.info})
	if err != nil {
		t.Fatal(err)
	}
	foreign := []string{"during__fp_5", "during__fp_5_0badc0de", "x__fp_1_" + hash8("t-2"), preparedName("later", next(mine))}
	for _, name := range foreign {
		srv.NamedDatabase(t, name)
	}
	bystander, err := pgx.Connect(t.Context(), srv.DSN("postgres")+"&application_name="+tag(next(mine)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Close(context.Background()) }()

	data := b.parts[source.PartData]
	err = r.Read(t.Context(), source.PartData, &gated{bytes.NewReader(data), len(data) / 2, func() {
		settled(t, s, next(mine), source.Prepared{}, source.Undone)
	}})
	if err == nil {
		t.Error("the settled attempt went on")
	}
	if exists(t, preparedName("during", mine)) {
		t.Error("its database is left")
	}
	for _, name := range append(foreign, preparedName("during", other)) {
		if !exists(t, name) {
			t.Errorf("foreign database %q was dropped", name)
		}
	}
	if err := bystander.Ping(t.Context()); err != nil {
		t.Errorf("a session with the newer token was ended: %v", err)
	}
	for _, x := range []source.Restore{r, o} {
		if err := x.Abort(); err != nil {
			t.Error(err)
		}
	}
}

// A dead attempt's dump that waits for a lock does not hold its snapshot for ever.
func TestSettleEndsDump(t *testing.T) {
	s := sampled(t, 0)
	d, err := s.Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	settled(t, s, first, source.Prepared{}, source.Undone)
	snapshotOnly(t) // an attempt does not settle itself
	settled(t, s, next(first), source.Prepared{}, source.Undone)
	if n := sessions(t, first); n != 0 {
		t.Errorf("%d sessions left", n)
	}
	fails(t, d.Write(t.Context(), source.PartData, io.Discard), "snapshot", source.ErrIncomplete)
}

// Somebody else's database took the target's name: neither commit nor settle touches it.
func TestTargetMovedOn(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	r, p := fill(t, s, first, b, source.RestoreOptions{Target: "moved"})
	srv.NamedDatabase(t, "moved")
	srv.Exec(t, "moved", `CREATE TABLE theirs ()`)
	before := fingerprint(t, "moved")
	fails(t, r.Commit(t.Context()), "superseded", source.ErrSuperseded)
	settled(t, s, next(first), p, source.Undone)
	same(t, before, fingerprint(t, "moved"))
	noStray(t)
}
