//go:build unix

package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// A recoverer that settles before the commit ends the session, and the late commit fails.
func TestSettleBeforeCommitInPlace(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	srv.Exec(t, s.Database(), `DELETE FROM events`)
	r := begun(t, s, first, over(b, s.Database())).(*inPlace)
	p := readBoth(t, r, b)
	// The node is stopped: so is its psql, whose session holds the row.
	signal(t, r.psql.child, syscall.SIGSTOP)
	settled(t, s, next(first), p, source.Undone)

	second := begun(t, s, next(first), over(b, s.Database()))
	readBoth(t, second, b)
	if err := second.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv.Exec(t, s.Database(), `INSERT INTO events VALUES ('2026-06-06', 'of a user')`)
	after := userPrint(t, s.Database())
	signal(t, r.psql.child, syscall.SIGCONT)
	fails(t, r.Commit(t.Context()), "superseded", source.ErrSuperseded)
	if err := r.Abort(); err != nil {
		t.Error(err)
	}
	same(t, after, userPrint(t, s.Database()))
	settled(t, s, source.Attempt{Task: first.Task, Token: first.Token + 2}, p, source.Committed)
}

func signal(t *testing.T, c *child, sig syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// A session of a dead attempt that connects only after its successor has committed finds its row gone.
func TestLateSessionInPlace(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	bin, gate := slowPsql(t)
	slow := newSource(t, Config{DSN: srv.DSN(s.Database()), BinDir: bin})
	late := make(chan error, 1)
	go func() { // ends when the gate opens
		r, err := slow.Restore(t.Context(), first, over(b, s.Database()))
		if err == nil {
			err = errors.Join(errors.New("it began"), r.Abort())
		}
		late <- err
	}()
	await(t, "the late attempt's row", func() bool {
		return query(t, s.Database(), `SELECT count(*) FROM pg_class WHERE relname = 'attempt'`) == "1" && rows(t, s.Database()) != ""
	})
	settled(t, s, next(first), source.Prepared{InPlace: true, Target: s.Database()}, source.Undone)
	r := begun(t, s, next(first), over(b, s.Database()))
	readBoth(t, r, b)
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv.Exec(t, s.Database(), `INSERT INTO events VALUES ('2026-06-06', 'of a user')`)
	after := userPrint(t, s.Database())
	gate()
	fails(t, <-late, "superseded", source.ErrSuperseded)
	same(t, after, userPrint(t, s.Database()))
}

// slowPsql makes a directory with the real programs, whose psql begins only when the gate is opened.
func slowPsql(t *testing.T) (dir string, open func()) {
	t.Helper()
	real, err := pgtest.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	gate := filepath.Join(dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pg_dump", "pg_restore"} {
		if err := os.Symlink(filepath.Join(real, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\n[ \"$1\" = --version ] || read line <" + gate + "\nexec " + filepath.Join(real, "psql") + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "psql"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, func() {
		if err := os.WriteFile(gate, []byte("go\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
}
