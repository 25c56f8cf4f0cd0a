package postgres

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// noStray fails when a database of an unfinished restore is left.
func noStray(t *testing.T) {
	t.Helper()
	if names := query(t, "postgres", `SELECT coalesce(string_agg(datname, ','), '') FROM pg_database WHERE datname LIKE '%\_\_fp\_%'`); names != "" {
		t.Errorf("databases left: %s", names)
	}
}

// gated gives its first n bytes, then calls do, then goes on.
type gated struct {
	r    io.Reader
	left int
	do   func()
}

func (g *gated) Read(p []byte) (int, error) {
	if g.left == 0 && g.do != nil {
		g.do()
		g.do = nil
	}
	if g.left > 0 {
		p = p[:min(len(p), g.left)]
	}
	n, err := g.r.Read(p)
	g.left = max(0, g.left-n)
	return n, err
}

// A restore that fails in the middle leaves no database, no session, no child, and the target as it was.
func TestRestoreEndsMidway(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 4<<20)
	b := takeBackup(t, s, first)
	data := b.parts[source.PartData]
	srv.Exec(t, s.Database(), `CREATE TABLE newer AS SELECT 1 AS a`)
	before := fingerprint(t, s.Database())
	boom := errors.New("hash does not fit")
	half := len(data) / 2
	for _, c := range []struct {
		name, part string
		kind       error
		stream     func(cancel func()) io.Reader
	}{
		{"cut", "pg_restore", source.ErrIncomplete, func(func()) io.Reader { return bytes.NewReader(data[:half]) }},
		{"last bytes missing", "pg_restore", source.ErrIncomplete, func(func()) io.Reader { return bytes.NewReader(data[:len(data)-8]) }},
		{"empty", "no archive", source.ErrIncomplete, func(func()) io.Reader { return strings.NewReader("") }},
		{"something else", "no archive", source.ErrIncomplete, func(func()) io.Reader { return strings.NewReader("-- SQL\nDROP TABLE x;") }},
		{"reader fails midway", boom.Error(), boom, func(func()) io.Reader {
			return io.MultiReader(bytes.NewReader(data[:half]), iotest.ErrReader(boom))
		}},
		{"reader fails at the very end", boom.Error(), boom, func(func()) io.Reader {
			return io.MultiReader(bytes.NewReader(data), iotest.ErrReader(boom))
		}},
		{"program killed", "signal: killed", source.ErrIncomplete, func(func()) io.Reader {
			return &gated{bytes.NewReader(data), half, func() { killChildren(t, syscall.SIGKILL) }}
		}},
		{"backend terminated", "ended the session", source.ErrIncomplete, func(func()) io.Reader {
			return &gated{bytes.NewReader(data), half, func() {
				srv.Exec(t, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '`+tag(first)+`'`)
			}}
		}},
		{"cancelled", "canceled", context.Canceled, func(cancel func()) io.Reader {
			return &gated{bytes.NewReader(data), half, cancel}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: s.Database(), Replace: true, Info: b.info})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			fails(t, r.Read(ctx, source.PartData, c.stream(cancel)), c.part, c.kind)
			if len(children(t)) > 0 {
				t.Error("a child is left")
			}
			if err := r.Read(t.Context(), source.PartDatabase, bytes.NewReader(b.parts[source.PartDatabase])); err == nil {
				t.Error("a part was taken after the failure")
			}
			if _, err := r.Check(t.Context()); err == nil {
				t.Error("a failed restore was found good")
			}
			if err := r.Commit(t.Context()); err == nil {
				t.Error("a failed restore was committed")
			}
			for range 2 {
				if err := r.Abort(); err != nil {
					t.Error(err)
				}
			}
			noStray(t)
			nothingLeft(t, first)
		})
	}
	same(t, before, fingerprint(t, s.Database()))
}

func TestRestoreCannotBegin(t *testing.T) {
	srv := pg.Server(t)
	srv.NamedDatabase(t, "there")
	srv.Exec(t, "postgres", `CREATE ROLE may_not LOGIN PASSWORD 'only x'`)
	t.Cleanup(func() { srv.Exec(t, "postgres", `DROP ROLE may_not`) })
	s := newSource(t, Config{DSN: srv.DSN("there")})
	for _, c := range []struct {
		name string
		src  *Source
		o    source.RestoreOptions
		part string
		kind error
	}{
		{"target exists", s, source.RestoreOptions{Target: "there"}, "exists", source.ErrTargetExists},
		{"no name", s, source.RestoreOptions{}, "cannot be the name", nil},
		{"long name", s, source.RestoreOptions{Target: strings.Repeat("x", 64)}, "cannot be the name", nil},
		{"template", s, source.RestoreOptions{Target: "template1", Replace: true}, "belongs to the server", nil},
		{"maintenance", s, source.RestoreOptions{Target: "postgres", Replace: true}, "belongs to the server", nil},
		{"newer server", s, source.RestoreOptions{Target: "new", Info: source.Info{ServerVersion: "97.1"}}, "of PostgreSQL 97", nil},
		{"newer tool", s, source.RestoreOptions{Target: "new", Info: source.Info{ToolVersion: "97.1"}}, "pg_restore of version 97", nil},
		{"extension", s, source.RestoreOptions{Target: "new", Info: source.Info{Extensions: map[string]string{"no_such": "1"}}}, "lacks extension no_such", nil},
		{"old extension", s, source.RestoreOptions{Target: "new", Info: source.Info{Extensions: map[string]string{"plpgsql": "7.1"}}}, "older extension: plpgsql 1.0 (the backup was made with 7.1)", nil},
		{"locale", s, source.RestoreOptions{Target: "new", Info: source.Info{Locale: source.Locale{Collate: "xx_XX", Ctype: "xx_XX"}}}, "locale", nil},
		{"rights", newSource(t, Config{DSN: srv.DSNFor("may_not", "only x", "there")}), source.RestoreOptions{Target: "new"}, "may not create databases", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.src.Restore(t.Context(), first, c.o)
			if c.kind == nil {
				fails(t, err, c.part)
			} else {
				fails(t, err, c.part, c.kind)
			}
			hasHint(t, err)
			noStray(t)
		})
	}
}

func TestReplaceAndUndo(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 1<<20)
	target := s.Database()
	srv.Exec(t, "postgres", `COMMENT ON DATABASE `+ident(target)+` IS 'my own'`)
	backedUp := fingerprint(t, target)
	b := takeBackup(t, s, first)
	srv.Exec(t, target, `DELETE FROM events; SELECT lo_unlink(50001)`)
	replaced := fingerprint(t, target)
	client, err := pgx.Connect(t.Context(), srv.DSN(target))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.Background()) }()

	r, p := fill(t, s, first, b, source.RestoreOptions{Target: target, Replace: true, KeepOld: time.Hour})
	same(t, replaced, fingerprint(t, target)) // until the commit
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Commit(t.Context()), r.Abort()); err != nil {
		t.Errorf("a second commit, or an abort after it: %v", err)
	}
	same(t, backedUp, fingerprint(t, target))
	noStray(t)
	if err := client.Ping(t.Context()); err == nil {
		t.Error("a client of the replaced database is still connected")
	}
	if p.Undo != undoName(target, first) {
		t.Errorf("undo is %q", p.Undo)
	}
	if expired, err := s.ExpireOld(t.Context(), next(first)); err != nil || len(expired) > 0 {
		t.Errorf("expired too early: %v %v", expired, err)
	}
	// The undo: two renames by hand.
	srv.Exec(t, "postgres", `ALTER DATABASE `+ident(target)+` RENAME TO "put aside"; ALTER DATABASE `+ident(p.Undo)+` RENAME TO `+ident(target))
	dropLater(t, "put aside")
	srv.Exec(t, "postgres", `COMMENT ON DATABASE `+ident(target)+` IS 'my own'`)
	same(t, replaced, fingerprint(t, target))
}

func TestKeepOld(t *testing.T) {
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	r, p := fill(t, s, first, b, source.RestoreOptions{Target: s.Database(), Replace: true})
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(t, p.Undo) {
		t.Error("the replaced database was to go with the swap")
	}
	second := next(first)
	r, p = fill(t, s, second, b, source.RestoreOptions{Target: s.Database(), Replace: true, KeepOld: time.Nanosecond})
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	lookalike := "x__was_1"
	pg.Server(t).NamedDatabase(t, lookalike)
	expired, err := s.ExpireOld(t.Context(), next(second))
	if err != nil || len(expired) != 1 || expired[0] != p.Undo || exists(t, p.Undo) || !exists(t, lookalike) {
		t.Errorf("expired %v, %v", expired, err)
	}
}

// Check notices an archive that is good in itself and not what the snapshot was.
func TestCheckCounts(t *testing.T) {
	s, other := sampled(t, 0), newSource(t, Config{DSN: pg.Server(t).Database(t)})
	b := takeBackup(t, s, first)
	b.parts[source.PartData] = takeBackup(t, other, first).parts[source.PartData]
	r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "checked", Info: b.info})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{source.PartData, source.PartDatabase} {
		if err := r.Read(t.Context(), part, bytes.NewReader(b.parts[part])); err != nil {
			t.Fatal(err)
		}
	}
	_, err = r.Check(t.Context())
	fails(t, err, "the new database has 0", source.ErrIncomplete)
	if err := r.Abort(); err != nil {
		t.Error(err)
	}
	noStray(t)
}

func TestScriptIsCut(t *testing.T) {
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	script := b.parts[source.PartDatabase]
	for _, n := range []int{0, 10, len(script) / 2, len(script) - 1} {
		r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "cut", Info: b.info})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Read(t.Context(), source.PartData, bytes.NewReader(b.parts[source.PartData])); err != nil {
			t.Fatal(err)
		}
		fails(t, r.Read(t.Context(), source.PartDatabase, bytes.NewReader(script[:n])), "whole", source.ErrIncomplete)
		if err := r.Abort(); err != nil {
			t.Error(err)
		}
	}
	noStray(t)
}

// A commit whose answer is lost has happened all the same: the outcome is read from the server.
func TestCommitUnanswered(t *testing.T) {
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	proxy, through := behindProxy(t, s)
	r, _ := fill(t, through, first, b, source.RestoreOptions{Target: "unanswered"})
	proxy.cut.Store(true)
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !proxy.did.Load() {
		t.Error("the answer was not lost: this test shows nothing")
	}
	if !exists(t, "unanswered") {
		t.Error("not committed")
	}
	noStray(t)
}

// behindProxy is a source whose connections a proxy passes on.
func behindProxy(t *testing.T, s *Source) (*proxy, *Source) {
	t.Helper()
	srv := pg.Server(t)
	server := net.JoinHostPort("127.0.0.1", strconv.Itoa(srv.Port))
	p := newProxy(t, server)
	return p, newSource(t, Config{DSN: strings.Replace(srv.DSN(s.Database()), server, p.addr, 1)})
}

// proxy passes a server's connections on. When cut is set it breaks the next one that says commit, after the server
// has got it; when lose is set, before.
type proxy struct {
	addr           string
	server         atomic.Pointer[string]
	cut, lose, did atomic.Bool
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String()}
	p.server.Store(&server)
	over := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-over
	})
	go func() {
		defer close(over)
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client, *p.server.Load())
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn, server string) {
	defer func() { _ = client.Close() }()
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	var silent atomic.Bool // no answer reaches the client any more
	answered := make(chan struct{})
	answer := sync.OnceFunc(func() { close(answered) })
	go func() {
		defer answer()
		_, _ = io.Copy(writerFunc(func(data []byte) (int, error) {
			if silent.Load() {
				answer()
				return len(data), nil
			}
			return client.Write(data)
		}), up)
		_ = client.Close()
	}()
	defer func() { _ = up.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		commits := bytes.Contains(buf[:n], []byte("commit\x00")) || bytes.Contains(buf[:n], []byte("COMMIT;\x00"))
		if commits && p.lose.Swap(false) {
			p.did.Store(true)
			return
		}
		if commits && p.cut.Swap(false) {
			p.did.Store(true)
			silent.Store(true)
			_, _ = up.Write(buf[:n])
			<-answered // so it is done: a session that is ended before it has read the commit undoes all, rightly
			_ = client.Close()
			_, _ = io.Copy(io.Discard, up)
			return
		}
		if n > 0 {
			if _, err := up.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Clients that come back at once do not keep a target from being replaced.
func TestSwapAgainstClients(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	r, _ := fill(t, s, first, b, source.RestoreOptions{Target: s.Database(), Replace: true})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			if conn, err := pgx.Connect(ctx, srv.DSN(s.Database())); err == nil {
				_, _ = conn.Exec(ctx, `SELECT pg_sleep(60)`)
				_ = conn.Close(context.Background())
			}
		}
	}()
	await(t, "a client", func() bool {
		return query(t, "postgres", `SELECT count(*) FROM pg_stat_activity WHERE datname = $1`, s.Database()) != "0"
	})
	err := r.Commit(t.Context())
	cancel()
	<-over
	if err != nil {
		t.Error(err)
	}
}

// The end of an eviction leaves nothing under way in the server that could end a session which begins later.
func TestEvictionIsWaitedFor(t *testing.T) {
	s := newSource(t, Config{DSN: pg.Server(t).Database(t)})
	conn, err := s.connect(t.Context(), first, s.Database())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { // ends with ctx
		over <- endSessions(ctx, conn, `SELECT pid FROM (SELECT 0 AS pid, pg_sleep(0.5)::text AS slept OFFSET 0) AS late WHERE slept <> ''`)
	}()
	await(t, "the look to begin", func() bool {
		return query(t, "postgres", `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = $1`, tag(first)) == "1"
	})
	cancel()
	if err := <-over; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Errorf("the look was left alone: %v", err)
	}
}

// A role that the server lacks is told in words.
func TestRestoreWithoutRole(t *testing.T) {
	srv := pg.Server(t)
	dsn := srv.NamedDatabase(t, "of exotic")
	srv.Exec(t, "of exotic", `CREATE ROLE exotic; CREATE TABLE t (); ALTER TABLE t OWNER TO exotic`)
	s := newSource(t, Config{DSN: dsn})
	b := takeBackup(t, s, first)
	srv.Exec(t, "of exotic", `DROP OWNED BY exotic; DROP ROLE exotic`)
	_, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "poor", Info: b.info})
	fails(t, err, "lacks role exotic")
	hasHint(t, err)
	b.info.Roles = nil // a backup that does not say
	r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "poor", Info: b.info})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Read(t.Context(), source.PartData, bytes.NewReader(b.parts[source.PartData]))
	fails(t, err, "role", source.ErrIncomplete)
	hasHint(t, err)
	if err := r.Abort(); err != nil {
		t.Error(err)
	}
	noStray(t)
}
