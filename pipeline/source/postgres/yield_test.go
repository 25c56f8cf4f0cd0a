package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// waitFor begins to change a table that a dump holds; it comes through when the dump has ended.
func waitFor(t *testing.T, s *Source) (over chan error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pg.Server(t).DSN(s.Database())+"&application_name=impatient")
	if err != nil {
		t.Fatal(err)
	}
	over = make(chan error, 1)
	go func() { // ends with the dump
		_, err := conn.Exec(t.Context(), `ALTER TABLE customers ADD later int; ALTER TABLE customers DROP later`)
		_ = conn.Close(context.Background())
		over <- err
	}()
	return over
}

func TestYieldCancel(t *testing.T) {
	var log bytes.Buffer
	s := sampled(t, 8<<20)
	y := newSource(t, Config{DSN: s.cfg.DSN, Yield: YieldCancel, YieldAfter: 100 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	d, err := y.Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	var over chan error
	err = d.Write(t.Context(), source.PartData, &onceAfter{n: 1 << 20, do: func() {
		over = waitFor(t, s)
		await(t, "pg_dump to be ended", func() bool { return len(children(t)) == 0 })
	}})
	fails(t, err, "gave way to postgres/impatient", source.ErrIncomplete, source.ErrUnavailable) // it is tried again
	hasHint(t, err)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := <-over; err != nil {
		t.Errorf("the one who waited: %v", err)
	}
	if !strings.Contains(log.String(), "somebody waits for a dump") {
		t.Errorf("log: %s", log.String())
	}
	nothingLeft(t, first)
}

func TestYieldWarn(t *testing.T) {
	lines := make(chan string, 100)
	s := sampled(t, 8<<20)
	y := newSource(t, Config{DSN: s.cfg.DSN, Yield: YieldWarn, YieldAfter: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(lineWriter(lines), nil))})
	d, err := y.Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	var over chan error
	err = d.Write(t.Context(), source.PartData, &onceAfter{n: 1 << 20, do: func() {
		over = waitFor(t, s)
		if line := <-lines; !strings.Contains(line, "impatient") {
			t.Errorf("log: %s", line)
		}
	}})
	if err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	if len(lines) > 0 {
		t.Errorf("told more than once: %s", <-lines)
	}
	nothingLeft(t, first)
}

type lineWriter chan string

func (l lineWriter) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func TestPatience(t *testing.T) {
	start := time.Now()
	p := patience{limit: 10 * time.Second}
	for _, c := range []struct {
		at      int
		waiting []int32
		want    []int32
	}{
		{0, []int32{1}, nil}, {9, []int32{1, 2}, nil}, {10, []int32{1, 2}, []int32{1}}, {11, []int32{1, 2}, nil},
		{19, []int32{2}, []int32{2}}, {20, []int32{1, 2}, nil}, {29, []int32{1}, nil}, {30, []int32{1}, []int32{1}}, {99, nil, nil}, {100, []int32{1}, nil},
	} {
		var waiting []waiter
		for _, pid := range c.waiting {
			waiting = append(waiting, waiter{pid: pid})
		}
		var got []int32
		for _, w := range p.over(start.Add(time.Duration(c.at)*time.Second), waiting) {
			got = append(got, w.pid)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("at %d: want %v, got %v", c.at, c.want, got)
		}
	}
}

func TestYieldConfig(t *testing.T) {
	if _, err := New(Config{DSN: "postgres://x/y", Yield: "maybe"}); err == nil || !strings.Contains(err.Error(), "maybe") {
		t.Errorf("%v", err)
	}
	if s := newSource(t, Config{DSN: "postgres://x/y", Yield: YieldWarn}); s.cfg.YieldAfter != defaultYieldAfter {
		t.Errorf("after %v", s.cfg.YieldAfter)
	}
}

// A role that is no superuser is told of subscriptions before the dump, not by a warning at its end.
func TestSubscriptionsNeedSuperuser(t *testing.T) {
	srv := pg.Server(t)
	s := newSource(t, Config{DSN: srv.Database(t)})
	srv.Exec(t, s.Database(), `CREATE ROLE reader LOGIN PASSWORD 'r'; GRANT pg_read_all_data TO reader;
		CREATE SUBSCRIPTION sub CONNECTION 'dbname=x' PUBLICATION p WITH (connect = false)`)
	t.Cleanup(func() {
		srv.Exec(t, s.Database(), `ALTER SUBSCRIPTION sub DISABLE; ALTER SUBSCRIPTION sub SET (slot_name = NONE); DROP SUBSCRIPTION sub; DROP ROLE reader`)
	})
	reader := newSource(t, Config{DSN: srv.DSNFor("reader", "r", s.Database())})
	_, err := reader.Dump(t.Context(), first)
	fails(t, err, "subscription sub")
	hasHint(t, err)
	takeWith(t, reader, source.DumpOptions{NoSubscriptions: true})
	takeWith(t, reader, source.DumpOptions{Schemas: []string{"public"}})
}

// The lock table is looked at before a dump begins.
func TestLockTable(t *testing.T) {
	l := lockTable{perTransaction: 64, sessions: 100, used: 10}
	if _, ok := l.lacks(6390); !ok {
		t.Error("just enough was refused")
	}
	p, ok := l.lacks(12795)
	if ok || !strings.Contains(p.what, "12795") || !strings.Contains(p.what, "6400") || !strings.Contains(p.hint, "max_locks_per_transaction to 129") {
		t.Errorf("%+v", p)
	}
	if n := dumpLocks(map[string]int64{"tables": 5000, "large objects": 30000, "indexes": 5000}); n != 5000 {
		t.Errorf("a dump of 5000 tables needs %d", n)
	}
}
