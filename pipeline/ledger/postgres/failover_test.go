package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// An asynchronous standby takes over without the last result. The node that wrote it notices, and so does one that has only
// heard of it from the group; nothing is written to the standby, and every other node finds it frozen.
func TestFailoverWithLoss(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t, pgtest.Options{Settings: pgtest.StandbySettings()})
	const name = "ledger"
	dsn, err := primary.CreateDatabase(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	group := newGroup()
	group.OpenRun("aa")
	var mark uint64
	cfg := configOf(dsn)
	cfg.Check = group.check
	b := &bench{T: t, group: group, dsn: cfg.DSN, led: mustOpen(t, cfg)}
	g, row := b.take("t1", "aa")

	standby := pgtest.NewStandby(t, primary, pgtest.Options{})
	both := cfg
	both.DSN = fmt.Sprintf("host=127.0.0.1,127.0.0.1 port=%d,%d user=postgres password='%s' dbname='%s' sslmode=disable", primary.Port, standby.Port, primary.Password, name)
	both.Mark = func(context.Context) (uint64, error) { return mark, nil }
	writer, other := mustOpen(t, both), mustOpen(t, both)
	standby.Exec(t, "postgres", `ALTER SYSTEM SET primary_conninfo = ''`)
	standby.Exec(t, "postgres", `SELECT pg_reload_conf()`)
	limit := time.After(time.Minute)
	for standby.Text(t, "postgres", `SELECT count(*) FROM pg_stat_wal_receiver`) != "0" {
		select {
		case <-limit:
			t.Fatal("the standby goes on receiving")
		case <-time.After(5 * time.Millisecond):
		}
	}
	row.State = ledger.Completed
	if err := writer.Write(t.Context(), g, ledger.Change{Task: row}); err != nil {
		t.Fatal(err)
	}
	mark = g.Token
	if err := primary.Stop(); err != nil {
		t.Fatal(err)
	}
	standby.Exec(t, "postgres", `SELECT pg_promote()`)

	for who, led := range map[string]*Ledger{"the writer": writer, "another node": other} {
		if err := led.Plan(t.Context(), ledger.Task{ID: "t2", MaxAttempts: 1}); !errors.Is(err, ErrFrozen) || !strings.Contains(err.Error(), "older copy") {
			t.Errorf("%s: %v", who, err)
		}
	}
	if got := standby.Text(t, name, `SELECT state || ' ' || (SELECT count(*) FROM fencepost_ledger.tasks) FROM fencepost_ledger.lineage`); got != "frozen 1" {
		t.Errorf("the standby is %s", got)
	}
}
