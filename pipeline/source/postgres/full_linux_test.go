package postgres

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// smallDisk mounts a file system of so many bytes into a server's folder, for the processes that this goroutine starts
// from now on and nobody else: its thread has mounts of its own, and ends with the test.
func smallDisk(t *testing.T, size string) (server *pgtest.Server, dir string) {
	t.Helper()
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		t.Skipf("this machine does not let the test mount a file system: %v", err)
	}
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "fpfull")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(home, "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0777,size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	server = pgtest.New(t, pgtest.Options{Password: oddPassword, Settings: map[string]string{"work_mem": "64kB", "max_locks_per_transaction": "1000"}})
	owner, err := os.Stat(filepath.Join(server.Dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	who := owner.Sys().(*syscall.Stat_t)
	if err := os.Chown(dir, int(who.Uid), int(who.Gid)); err != nil {
		t.Fatal(err)
	}
	return server, dir
}

// The disk on which the server sorts is full before the dump begins, or while pg_dump reads the catalog: it has failed, one
// sentence says why, and nothing is left. With room it is whole.
func TestDumpServerDiskFull(t *testing.T) {
	srv, dir := smallDisk(t, "64k")
	s := newSource(t, Config{DSN: srv.Database(t)})
	srv.Exec(t, s.Database(), `DO $$ BEGIN FOR i IN 1..1500 LOOP EXECUTE format('CREATE TABLE t%s (a int, b text)', i); END LOOP; END $$`)
	srv.Exec(t, s.Database(), `CREATE TABLESPACE small LOCATION '`+dir+`'`)
	sorts := func(where string) {
		srv.Exec(t, "postgres", `ALTER DATABASE `+ident(s.Database())+` SET temp_tablespaces = '`+where+`'`)
	}
	alone := func() {
		t.Helper()
		if left := children(t); len(left) > 0 {
			t.Errorf("children left: %v", left)
		}
		await(t, "the attempt's sessions to end", func() bool {
			return srv.Text(t, "postgres", `SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE $1 || '%'`, tag(first)) == "0"
		})
	}
	sorts("small")
	_, err := s.Dump(t.Context(), first)
	fails(t, err, "disk is full")
	hasHint(t, err)
	alone()

	sorts("")
	d, err := s.Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	sorts("small")
	err = d.Write(t.Context(), source.PartData, io.Discard)
	fails(t, err, "the disk is full: pg_dump: ", source.ErrIncomplete)
	hasHint(t, err)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	alone()

	sorts("")
	takeBackup(t, s, first)
}
