package e2e

import (
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// slowCheck is a table whose rows take ten seconds to restore: the check of each sleeps.
var slowCheck = []string{
	"CREATE FUNCTION doze(i int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN true; END $$",
	"CREATE TABLE dozes (i int CHECK (public.doze(i)))",
	"INSERT INTO dozes SELECT generate_series(1, 100)",
	"CREATE OR REPLACE FUNCTION doze(i int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM pg_sleep(0.1); RETURN true; END $$",
}

// nappingIn tells whether rows are just being restored into the database itself.
func nappingIn(t *testing.T, dsn string) bool {
	t.Helper()
	return pg.Server(t).Text(t, nameIn(t, dsn), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE 'fencepost:%' AND wait_event = 'PgSleep'`) != "0"
}

// commits lists the restores in place that a database has seen.
func commits(t *testing.T, dsn string) string {
	t.Helper()
	return pg.Server(t).Text(t, nameIn(t, dsn), `SELECT count(*) FILTER (WHERE done) || ' of ' || count(*) FROM fencepost.attempt`)
}

// TestPausedRestorerInPlace: the first owner is paused in the middle of its transaction. The second attempt commits, once;
// the late first one does not, and rows that users wrote meanwhile stay.
func TestPausedRestorerInPlace(t *testing.T) {
	t.Parallel()
	dsn := database(t, append([]string{bulk("goods", 1)}, slowCheck...)...)
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	b := c.oneBackup("n1")
	backedUp := print(t, dsn)
	execute(t, dsn, "DELETE FROM goods WHERE id % 2 = 0")
	task, err := c.client("n1").Restore(c.ctx, api.RestoreBackup{Backup: b.ID, Replace: true, InPlace: true})
	if err != nil {
		t.Fatal(err)
	}
	first := c.reaches("n1", task.ID, "restoring", nil)
	c.until("rows are being restored", func() bool { return nappingIn(t, dsn) })
	if left := pg.Server(t).Text(t, nameIn(t, dsn), "SELECT count(*) FROM fencepost.attempt WHERE done"); left != "0" {
		t.Errorf("%s attempts are done in the middle of the first", left)
	}
	by := c.survivor(first.Node)
	c.stop(first.Node)
	done := c.finishes(by, task.ID)
	if done.Attempt != 2 {
		t.Errorf("completed by attempt %d", done.Attempt)
	}
	got := print(t, dsn)
	delete(got.Tables, "fencepost.attempt")
	for _, difference := range pgtest.Diff(pgtest.Print{Tables: backedUp.Tables, Objects: backedUp.Objects, Sequences: backedUp.Sequences},
		pgtest.Print{Tables: got.Tables, Objects: got.Objects, Sequences: got.Sequences}) {
		t.Errorf("after the restore: %s", difference)
	}
	execute(t, dsn, "CREATE TABLE written_meanwhile AS SELECT 42 AS answer")
	want := print(t, dsn)
	c.resume(first.Node)
	c.until("the resumed node stands as a new run", func() bool {
		s, err := c.client(first.Node).Status(c.ctx)
		return err == nil && s.Ready && s.Lease == "held" && s.Run != first.Run
	})
	c.recovered(by)
	same(t, "target after the late owner came back", want, print(t, dsn))
	if got := commits(t, dsn); got != "1 of 1" {
		t.Errorf("commits: %s", got)
	}
	c.noStrays()
}
