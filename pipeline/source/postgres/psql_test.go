package postgres

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// runPsql gives a script to psql as its comment says.
func runPsql(t *testing.T, srv *pgtest.Server, database string, script []byte) {
	t.Helper()
	bin, err := pgtest.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "psql"), "-X", "--set=ON_ERROR_STOP=1", "--set=database="+database, "--file=-", "--dbname="+srv.DSN("postgres"))
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdin = bytes.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("psql: %v: %s", err, out)
	}
}
