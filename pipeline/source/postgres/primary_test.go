package postgres

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// replicated is a primary with sample data, a standby of it, and the name of the database.
func replicated(t *testing.T) (primary, standby *pgtest.Server, name string) {
	t.Helper()
	primary = pgtest.New(t, pgtest.Options{Password: oddPassword, Settings: pgtest.StandbySettings()})
	dsn := primary.Database(t)
	if err := pgtest.Sample(t.Context(), dsn, 0); err != nil {
		t.Fatal(err)
	}
	return primary, pgtest.NewStandby(t, primary, pgtest.Options{}), newSource(t, Config{DSN: dsn}).Database()
}

// severalDSN names servers in one DSN, in this order.
func severalDSN(database string, more string, servers ...*pgtest.Server) string {
	var hosts, ports string
	for i, s := range servers {
		if i > 0 {
			hosts, ports = hosts+",", ports+","
		}
		hosts, ports = hosts+"127.0.0.1", ports+strconv.Itoa(s.Port)
	}
	return fmt.Sprintf("host=%s port=%s user=postgres password='%s' dbname='%s' sslmode=disable %s", hosts, ports, conninfoEscaper.Replace(oddPassword), database, more)
}

// Of a DSN whose first server is a standby: dumps go where the DSN says, and whatever changes something goes to the primary,
// from a preview to the undo.
func TestPrimaryIsLookedFor(t *testing.T) {
	primary, standby, name := replicated(t)
	catchUp(t, primary, standby)
	s := newSource(t, Config{DSN: severalDSN(name, "target_session_attrs=standby", standby, primary)})
	b := takeBackup(t, s, first)
	if b.info.Standby == nil {
		t.Fatal("the primary was dumped")
	}
	want := printOf(t, primary, name)
	primary.Exec(t, name, `DELETE FROM events`)
	changed := printOf(t, primary, name)

	if p, err := s.Preview(t.Context(), source.RestoreOptions{Target: name, Replace: true, Info: b.info}); err != nil || !p.Exists {
		t.Errorf("preview %+v, %v", p, err)
	}
	for _, choices := range []source.RestoreChoices{{}, {Jobs: 2}} {
		a := next(first)
		r, err := s.Restore(t.Context(), a, source.RestoreOptions{Target: name, Replace: true, KeepOld: time.Hour, Info: b.info, RestoreChoices: choices})
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, r, b)
		p, err := r.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, want, printOf(t, primary, name))
		if got, err := s.Settle(t.Context(), next(a), p); err != nil || got != source.Committed {
			t.Errorf("settle says %v, %v", got, err)
		}
		if err := s.Undo(t.Context(), a, p, 0); err != nil {
			t.Fatal(err)
		}
		same(t, changed, printOf(t, primary, name))
		if dropped, err := s.ExpireOld(t.Context(), a); err != nil || len(dropped) != 1 {
			t.Errorf("expired %q, %v", dropped, err)
		}
	}
	r, err := s.Restore(t.Context(), first, over(b, name))
	if err != nil {
		t.Fatal(err)
	}
	readBoth(t, r, b)
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := printOf(t, primary, name)
	delete(got.Tables, "fencepost.attempt")
	same(t, pgtest.Print{Tables: want.Tables, Objects: want.Objects, Sequences: want.Sequences}, pgtest.Print{Tables: got.Tables, Objects: got.Objects, Sequences: got.Sequences})

	_, err = newSource(t, Config{DSN: standby.DSN(name)}).Restore(t.Context(), first, source.RestoreOptions{Target: "nowhere", Info: b.info})
	fails(t, err, "is a standby", source.ErrUnavailable)
	hasHint(t, err)
}

func printOf(t *testing.T, s *pgtest.Server, database string) pgtest.Print {
	t.Helper()
	f, err := pgtest.Fingerprint(t.Context(), s.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A dump of the DSN's second server is watched there, and its sessions are ended there: by who waits for it, and by a
// successor.
func TestTheStandbyIsWatched(t *testing.T) {
	primary, standby, name := replicated(t)
	catchUp(t, primary, standby)
	standby.Exec(t, "postgres", `ALTER SYSTEM SET max_standby_streaming_delay = -1`)
	standby.Exec(t, "postgres", `SELECT pg_reload_conf()`)
	log := &lockedBuffer{}
	s := newSource(t, Config{DSN: severalDSN(name, "", primary, standby), Standby: StandbyPrefer, Yield: YieldCancel, YieldAfter: 100 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(log, nil))})
	d, err := s.Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	err = d.Write(t.Context(), source.PartData, &onceAfter{n: 4096, do: func() {
		primary.Exec(t, name, `ALTER TABLE customers ADD later int`) // replay waits for the dump
		await(t, "pg_dump to be ended", func() bool { return len(children(t)) == 0 })
	}})
	fails(t, err, "gave way to replay", source.ErrIncomplete)

	here := func() bool {
		return standby.Text(t, "postgres", `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`, tag(first)) == "0"
	}
	if here() {
		t.Fatalf("the dump has no session on the standby; log %s", log)
	}
	if got, err := s.Settle(t.Context(), next(first), source.Prepared{}); err != nil || got != source.Undone {
		t.Errorf("settle says %v, %v", got, err)
	}
	await(t, "the dump's sessions on the standby to end", here)
	noSecret(t, log.String())
}

// A standby takes over, under the same address, while a restore is under way. What it has of the new database may be a part:
// it is not swapped in there.
func TestTakeoverDuringARestore(t *testing.T) {
	primary, standby, name := replicated(t)
	at := func(s *pgtest.Server) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }
	proxy := newProxy(t, at(primary))
	_, port, err := net.SplitHostPort(proxy.addr)
	if err != nil {
		t.Fatal(err)
	}
	s := newSource(t, Config{DSN: fmt.Sprintf("host=127.0.0.1 port=%s user=postgres password='%s' dbname='%s' sslmode=disable", port, conninfoEscaper.Replace(oddPassword), name)})
	b := takeBackup(t, s, first)
	r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: name, Replace: true, Info: b.info})
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, r, b)
	p, err := r.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	catchUp(t, primary, standby)
	second := at(standby)
	proxy.server.Store(&second)
	fails(t, r.Commit(t.Context()), "is a standby", source.ErrUnavailable)
	standby.Exec(t, "postgres", `SELECT pg_promote()`)
	before := printOf(t, standby, name)
	fails(t, r.Commit(t.Context()), "a standby took over", source.ErrIncomplete)
	same(t, before, printOf(t, standby, name))

	// A successor clears that away and begins anew.
	if got, err := s.Settle(t.Context(), next(first), p); err != nil || got != source.Undone {
		t.Errorf("settle says %v, %v", got, err)
	}
	if standby.Text(t, "postgres", `SELECT count(*) FROM pg_database WHERE datname = $1`, p.Database) != "0" {
		t.Error("what was filled is still there")
	}
	if err := r.Abort(); err != nil {
		t.Error(err)
	}
}
