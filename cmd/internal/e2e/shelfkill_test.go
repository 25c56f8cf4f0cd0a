package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// TestKilledOfflineRestore: a restore straight from a storage dies while it fills the new database. The database that it was to
// replace is untouched, and the next restore into it cleans up and is whole.
func TestKilledOfflineRestore(t *testing.T) {
	t.Parallel()
	slow := "CREATE FUNCTION public.slow(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM pg_sleep(3); RETURN i; END$$"
	dsn := database(t, bulk("goods", 1), slow, "CREATE TABLE held AS SELECT 1 AS i", "CREATE INDEX ON held (public.slow(i))")
	victim := database(t, "CREATE TABLE precious AS SELECT 7 AS i")
	target := nameIn(t, victim)
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn}})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	b := c.oneBackup("n1")
	c.end()
	restore := func() *exec.Cmd {
		return exec.CommandContext(c.ctx, command, "storage", "restore", "a", b.ID, "--database", "shop", "--as", target, "--replace", "--yes", "--config", c.file("n1"))
	}
	filling := func() (found []string) {
		names, err := pg.Server(t).Databases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasPrefix(name, target+"__fp_") {
				found = append(found, name)
			}
		}
		return found
	}
	before := print(t, victim)
	killed := restore()
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	c.until("the new database is being filled", func() bool { return len(filling()) == 1 })
	left := filling()
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := killed.Wait(); err == nil || killed.ProcessState.Exited() {
		t.Fatalf("it ended before it was killed: %v", err)
	}
	same(t, "the target of a killed restore", before, print(t, victim))
	if out, err := restore().CombinedOutput(); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	same(t, "restored by the next one", print(t, dsn), print(t, victim))
	for _, name := range filling() {
		if name == left[0] {
			t.Errorf("%s, which the killed restore was filling, is still there", name)
		}
	}
}
