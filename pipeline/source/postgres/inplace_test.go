package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

func over(b backup, target string) source.RestoreOptions {
	return source.RestoreOptions{Target: target, Replace: true, Info: b.info, RestoreChoices: source.RestoreChoices{InPlace: true}}
}

// begun begins a restore in place; it is aborted at the end of the test.
func begun(t *testing.T, s *Source, a source.Attempt, o source.RestoreOptions) source.Restore {
	t.Helper()
	r, err := s.Restore(t.Context(), a, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Abort(); err != nil {
			t.Errorf("abort: %v", err)
		}
	})
	return r
}

// readBoth reads both parts and checks.
func readBoth(t *testing.T, r source.Restore, b backup) source.Prepared {
	t.Helper()
	readAll(t, r, b)
	p, err := r.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// userPrint is a fingerprint without what a restore in place keeps for itself.
func userPrint(t *testing.T, database string) pgtest.Print {
	t.Helper()
	f := fingerprint(t, database)
	delete(f.Tables, "fencepost.attempt")
	f.Schema = slices.DeleteFunc(f.Schema, func(line string) bool { return strings.Contains(line, "fencepost") })
	return f
}

func rows(t *testing.T, database string) string {
	t.Helper()
	return query(t, database, `SELECT coalesce(string_agg(task || ' ' || token || ' ' || done, ', ' ORDER BY token), '') FROM fencepost.attempt`)
}

func TestInPlace(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 1<<20)
	target := s.Database()
	b := takeBackup(t, s, first)
	backedUp := userPrint(t, target)
	srv.Exec(t, target, `DELETE FROM events; SELECT lo_unlink(50001); ALTER TABLE customers ADD more int; SELECT lo_put(50002, 0, 'changed'); DROP VIEW "Umsatz je Kunde"`)
	client, err := pgx.Connect(t.Context(), srv.DSN(target))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.Background()) }()
	oid := query(t, "postgres", `SELECT oid FROM pg_database WHERE datname = $1`, target)
	changed := userPrint(t, target)

	r := begun(t, s, first, over(b, target))
	p := readBoth(t, r, b)
	if !p.InPlace || p.Target != target || fmt.Sprint(p.ID) != oid || p.Undo != "" {
		t.Errorf("prepared %+v", p)
	}
	if got := query(t, target, `SELECT count(*) FROM pg_largeobject_metadata`); got != fmt.Sprint(len(changed.Objects)) {
		t.Errorf("large objects before the commit: %s", got)
	}
	if err := errors.Join(r.Commit(t.Context()), r.Commit(t.Context()), r.Abort()); err != nil {
		t.Fatal(err)
	}
	same(t, backedUp, userPrint(t, target))
	if got := rows(t, target); got != fmt.Sprintf("t-1 %d true", first.Token) {
		t.Errorf("rows %s", got)
	}
	if err := client.Ping(t.Context()); err != nil {
		t.Errorf("a client was disconnected: %v", err)
	}
	nothingLeft(t, first)
	settled(t, s, next(first), p, source.Committed)
	settled(t, s, next(first), source.Prepared{InPlace: true, Target: target}, source.Committed)
	if _, err := s.Restore(t.Context(), next(first), over(b, target)); !errors.Is(err, source.ErrSuperseded) {
		t.Errorf("a second attempt of a task that is done: %v", err)
	}
	// What the restore keeps for itself is in no dump.
	again := takeBackup(t, s, next(first))
	r, _ = fill(t, s, source.Attempt{Task: "t-3", Token: 1}, again, source.RestoreOptions{Target: "without ours"})
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, backedUp, fingerprint(t, "without ours"))
}

// Nothing of a stream that is not whole, or not right, reaches the target. The 50 places include ones in the very last
// bytes, behind all large objects.
func TestInPlaceIsAllOrNothing(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	data := b.parts[source.PartData]
	srv.Exec(t, s.Database(), `DELETE FROM events; SELECT lo_unlink(50001)`)
	before := userPrint(t, s.Database())
	boom := errors.New("hash does not fit")
	seed := newSeed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	cuts := []int{len(archiveMagic), len(data) - 1, len(data) - 100}
	for range rounds(3, 50) {
		cuts = append(cuts, len(archiveMagic)+random.IntN(len(data)-len(archiveMagic)))
	}
	for _, at := range cuts {
		flipped := bytes.Clone(data)
		flipped[at] ^= 1 << random.IntN(8)
		for name, stream := range map[string]io.Reader{
			"cut":     bytes.NewReader(data[:at]),
			"broken":  io.MultiReader(bytes.NewReader(data[:at]), iotest.ErrReader(boom)),
			"flipped": io.MultiReader(bytes.NewReader(flipped), iotest.ErrReader(boom)),
		} {
			r, err := s.Restore(t.Context(), first, over(b, s.Database()))
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Read(t.Context(), source.PartData, stream); err == nil {
				t.Errorf("%s at %d of %d: no error", name, at, len(data))
			}
			if _, err := r.Check(t.Context()); err == nil {
				t.Errorf("%s at %d: found good", name, at)
			}
			if err := r.Commit(t.Context()); err == nil {
				t.Errorf("%s at %d: committed", name, at)
			}
			if err := r.Abort(); err != nil {
				t.Error(err)
			}
		}
	}
	same(t, before, userPrint(t, s.Database()))
	if got := rows(t, s.Database()); got != "" {
		t.Errorf("rows %s", got)
	}
	nothingLeft(t, first)
}

// Whatever ends the restore in the middle, the target stays as it was.
func TestInPlaceEndsMidway(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 4<<20)
	b := takeBackup(t, s, first)
	data := b.parts[source.PartData]
	srv.Exec(t, s.Database(), `DELETE FROM events`)
	before := userPrint(t, s.Database())
	for _, c := range []struct {
		name, part string
		kind       error
		do         func(cancel func())
	}{
		{"programs killed", "", source.ErrIncomplete, func(func()) { killChildren(t, syscall.SIGKILL) }},
		{"programs terminated", "", source.ErrIncomplete, func(func()) { killChildren(t, syscall.SIGTERM) }},
		{"backend terminated", "ended the session", source.ErrIncomplete, func(func()) {
			srv.Exec(t, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '`+tag(first)+`'`)
		}},
		{"cancelled", "canceled", context.Canceled, func(cancel func()) { cancel() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := begun(t, s, first, over(b, s.Database()))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			fails(t, r.Read(ctx, source.PartData, &gated{bytes.NewReader(data), len(data) / 2, func() { c.do(cancel) }}), c.part, c.kind)
			if err := r.Abort(); err != nil {
				t.Error(err)
			}
			nothingLeft(t, first)
			same(t, before, userPrint(t, s.Database()))
		})
	}
}

// A COMMIT that is in the stream itself is refused by the server, and so is one of psql that nobody released.
func TestStrayCommit(t *testing.T) {
	srv := pg.Server(t)
	s := newSource(t, Config{DSN: srv.Database(t)})
	for _, sql := range []string{"COMMIT;", "END;", "CREATE TABLE public.stray (); COMMIT; BEGIN;", "COMMIT AND CHAIN;", "SET CONSTRAINTS ALL IMMEDIATE; COMMIT;"} {
		t.Run(sql, func(t *testing.T) {
			r := begun(t, s, first, source.RestoreOptions{Target: s.Database(), RestoreChoices: source.RestoreChoices{InPlace: true}}).(*inPlace)
			_, err := r.ask(t.Context(), "CREATE TABLE public.kept (a int);\n"+sql, "1")
			fails(t, err, "only fencepost may commit this")
			if err := r.Abort(); err != nil {
				t.Error(err)
			}
			if n := query(t, s.Database(), `SELECT count(*) FROM pg_class WHERE relname IN ('kept', 'stray')`); n != "0" {
				t.Error("something was committed")
			}
		})
	}
}

// The input of psql ends with the node's death: that commits nothing, also when all but the COMMIT was sent.
func TestEndOfInputCommitsNothing(t *testing.T) {
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	pg.Server(t).Exec(t, s.Database(), `DELETE FROM events`)
	before := userPrint(t, s.Database())
	r := begun(t, s, first, over(b, s.Database())).(*inPlace)
	readBoth(t, r, b)
	if err := r.psql.finish(t.Context()); err != nil {
		t.Error(err)
	}
	fails(t, r.Commit(t.Context()), "psql")
	same(t, before, userPrint(t, s.Database()))
}

// A row that was deleted under a session, however that came about, keeps it from committing.
func TestCommitNeedsTheRow(t *testing.T) {
	srv := pg.Server(t)
	s := newSource(t, Config{DSN: srv.Database(t)})
	r := begun(t, s, first, source.RestoreOptions{Target: s.Database(), RestoreChoices: source.RestoreChoices{InPlace: true}}).(*inPlace)
	if _, err := r.ask(t.Context(), `DELETE FROM fencepost.attempt; CREATE TABLE public.x ();`, "1"); err != nil {
		t.Fatal(err)
	}
	r.checked = true
	if err := r.Commit(t.Context()); err == nil {
		t.Error("it was committed without its row")
	}
	if n := query(t, s.Database(), `SELECT count(*) FROM pg_class WHERE relname = 'x'`); n != "0" {
		t.Error("its table is there")
	}
}

// A commit whose answer is lost has happened once, and is told so.
func TestCommitUnansweredInPlace(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	backedUp := userPrint(t, s.Database())
	srv.Exec(t, s.Database(), `DELETE FROM events`)
	port := query(t, "postgres", `current_setting('port')`)
	proxy := newProxy(t, "127.0.0.1:"+port)
	through := newSource(t, Config{DSN: strings.Replace(srv.DSN(s.Database()), "127.0.0.1:"+port, proxy.addr, 1)})
	r := begun(t, through, first, over(b, s.Database()))
	readBoth(t, r, b)
	proxy.cut.Store(true)
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !proxy.did.Load() {
		t.Error("the answer was not lost: this test shows nothing")
	}
	same(t, backedUp, userPrint(t, s.Database()))
}

func TestInPlaceCannotBegin(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	for _, c := range []struct {
		name, part string
		kind       error
		change     func(o *source.RestoreOptions)
	}{
		{"not empty", "exists and holds", source.ErrTargetExists, func(o *source.RestoreOptions) { o.Replace = false }},
		{"no target", "does not exist", nil, func(o *source.RestoreOptions) { o.Target = "nowhere" }},
		{"server's own", "belongs to the server", nil, func(o *source.RestoreOptions) { o.Target = "template1" }},
		{"locks", "max_locks_per_transaction 64", nil, func(o *source.RestoreOptions) { o.Info.Counts = map[string]int64{"tables": 4000} }},
		{"large objects", "max_locks_per_transaction 64", nil, func(o *source.RestoreOptions) { o.Info.Counts = map[string]int64{"large objects": 30000} }},
		{"role", "lacks role nobody at all", nil, func(o *source.RestoreOptions) { o.Info.Roles = []string{"nobody at all"} }},
		{"extension", "lacks extension no_such", nil, func(o *source.RestoreOptions) { o.Info.Extensions = map[string]string{"no_such": "1"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := over(b, s.Database())
			c.change(&o)
			_, err := s.Restore(t.Context(), first, o)
			if fails(t, err, c.part); c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v is not %v", err, c.kind)
			}
		})
	}
	t.Run("right", func(t *testing.T) {
		srv.Exec(t, "postgres", `CREATE ROLE visitor LOGIN PASSWORD 'v'`)
		t.Cleanup(func() { srv.Exec(t, "postgres", `DROP ROLE visitor`) })
		_, err := newSource(t, Config{DSN: srv.DSNFor("visitor", "v", s.Database())}).Restore(t.Context(), first, over(b, s.Database()))
		fails(t, err, "may not create schemas")
		hasHint(t, err)
	})
	t.Run("old pg_restore", func(t *testing.T) {
		r := begun(t, s, first, over(b, s.Database())).(*inPlace)
		r.pgRestore.path = filepath.Join(fakeTools(t, `echo 'BEGIN; SELECT 1; COMMIT;'; cat >/dev/null`), "pg_restore")
		err := r.Read(t.Context(), source.PartData, bytes.NewReader(b.parts[source.PartData]))
		fails(t, err, "too old")
		hasHint(t, err)
	})
	nothingLeft(t, first)
}

// A client that holds a lock holds a restore in place up: it is told of, and disconnected when that was allowed.
func TestInPlaceAgainstClients(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	backedUp := userPrint(t, s.Database())
	client, err := pgx.Connect(t.Context(), srv.DSN(s.Database())+"&application_name=lazy")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.Background()) }()
	lines := make(chan string, 100)
	told := newSource(t, Config{DSN: s.cfg.DSN, Logger: slog.New(slog.NewTextHandler(lineWriter(lines), nil))})
	for _, disconnect := range []bool{false, true} {
		if _, err := client.Exec(t.Context(), `BEGIN; SELECT FROM customers`); err != nil {
			t.Fatal(err)
		}
		o := over(b, s.Database())
		o.Disconnect = disconnect
		r := begun(t, told, first, o)
		over := make(chan error, 1)
		go func() { over <- r.Read(t.Context(), source.PartData, bytes.NewReader(b.parts[source.PartData])) }()
		if line := <-lines; !strings.Contains(line, "lazy") || strings.Contains(line, "disconnecting") != disconnect {
			t.Errorf("log: %s", line)
		}
		if !disconnect {
			if _, err := client.Exec(t.Context(), `ROLLBACK`); err != nil {
				t.Error(err)
			}
		}
		if err := <-over; err != nil {
			t.Fatal(err)
		}
		if err := client.Ping(t.Context()); (err != nil) != disconnect {
			t.Errorf("disconnect %v: the client says %v", disconnect, err)
		}
		if !disconnect {
			if err := r.Abort(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := r.Read(t.Context(), source.PartDatabase, bytes.NewReader(b.parts[source.PartDatabase])); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	same(t, backedUp, userPrint(t, s.Database()))
	nothingLeft(t, first)
}

// What was made since the backup and depends on what is replaced makes the restore fail, in words.
func TestInPlaceAgainstDependents(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	srv.Exec(t, s.Database(), `CREATE VIEW since AS SELECT id FROM pictures; CREATE TABLE unrelated AS SELECT 1 AS a`)
	r := begun(t, s, first, over(b, s.Database()))
	err := r.Read(t.Context(), source.PartData, bytes.NewReader(b.parts[source.PartData]))
	fails(t, err, "depends on")
	hasHint(t, err)
	if err := r.Abort(); err != nil {
		t.Fatal(err)
	}
	srv.Exec(t, s.Database(), `DROP VIEW since`)
	r = begun(t, s, first, over(b, s.Database()))
	readBoth(t, r, b)
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := query(t, s.Database(), `SELECT count(*) FROM unrelated`); n != "1" {
		t.Errorf("what the backup does not hold did not stay: %s", n)
	}
}

// dumpEstimate compares the locks that a dump is refused by with those that it holds. (Of a file that it cannot write
// away it is still writing when all is read.)
func dumpEstimate(t *testing.T, s *Source) {
	t.Helper()
	pg.Server(t).Exec(t, s.Database(), `CREATE TABLE zz_last AS SELECT repeat(md5(g::text), 4000) AS big FROM generate_series(1, 40) g; CREATE VIEW over_it AS SELECT big FROM zz_last`)
	d, err := s.Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	var taken int64
	err = d.Write(t.Context(), source.PartData, &onceAfter{n: 1 << 20, do: func() {
		text := query(t, "postgres", `SELECT count(DISTINCT l.relation) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE a.application_name = $1 AND l.relation >= 16384`, tag(first))
		if _, err := fmt.Sscan(text, &taken); err != nil {
			t.Error(err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if estimate := dumpLocks(d.Info().Counts); taken > estimate+5 || estimate > taken+5 {
		t.Errorf("a dump holds %d locks, %d were estimated", taken, estimate)
	}
}

// The number of locks that a restore is refused by is not below what it really takes, nor far above.
func TestLockEstimate(t *testing.T) {
	srv := pg.Server(t)
	s := newSource(t, Config{DSN: srv.Database(t)})
	srv.Exec(t, s.Database(), `CREATE TYPE mood AS ENUM ('a')`)
	srv.Exec(t, s.Database(), `DO $$ BEGIN FOR i IN 1..60 LOOP
		EXECUTE format('CREATE TABLE t%s (a serial PRIMARY KEY, b text, c mood CHECK (a > 0))', i);
		PERFORM lo_from_bytea(0, 'x');
		EXECUTE format('CREATE FUNCTION f%s() RETURNS int LANGUAGE sql AS ''SELECT 1''', i);
	END LOOP; END $$`)
	b := takeBackup(t, s, first)
	dumpEstimate(t, s)
	for _, replace := range []bool{true, false} {
		o, estimate := over(b, s.Database()), buildLocks(b.info.Counts)
		if replace {
			estimate *= 2
		} else {
			o.Target, o.Replace = "empty one", false
			srv.NamedDatabase(t, o.Target)
		}
		r := begun(t, s, first, o).(*inPlace)
		readBoth(t, r, b)
		var taken int64
		text, err := r.ask(t.Context(), "", `SELECT count(DISTINCT (locktype, relation, classid, objid)) FROM pg_locks WHERE pid = pg_backend_pid()`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(text, &taken); err != nil {
			t.Fatal(err)
		}
		const alwaysThere = 120 // catalogs and the like
		if taken > estimate+alwaysThere || estimate > 3*taken {
			t.Errorf("replace %v: %d locks taken, %d estimated", replace, taken, estimate)
		}
		if err := r.Abort(); err != nil {
			t.Fatal(err)
		}
	}
}
