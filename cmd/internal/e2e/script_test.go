package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/processor/processortest"
)

// TestScriptOfAnotherTool: a plain dump of pg_dump goes into a new database, from a file and by a pipe; one that was cut, that has
// a command for psql, or that is an archive is refused, and a database that is there is left as it is. Nothing stays of those.
func TestScriptOfAnotherTool(t *testing.T) {
	t.Parallel()
	server := pg.Server(t)
	dsn := database(t, bulk("goods", 1), "SELECT lo_from_bytea(0, decode(repeat('ab', 5000), 'hex'))")
	dir := t.TempDir()
	to := filepath.Join(dir, "new.dsn")
	if err := os.WriteFile(to, []byte(server.DSN("postgres")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := string(processortest.Tool(t, nil, pgTool(t, "pg_dump"), "-d", dsn))
	file := func(text string) string {
		t.Helper()
		path := filepath.Join(dir, fmt.Sprintf("%d.sql", time.Now().UnixNano()))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	name := func(what string) string { return fmt.Sprintf("script %s %d", what, os.Getpid()) }
	restore := func(from, as string) said {
		return run(t, command, "restore-script", from, "--to", "file:"+to, "--as", as)
	}

	made := name("file")
	replay(t, "../cli/testdata/e2e/script.txt", map[string]string{"SCRIPT": file(script), "SERVER": "file:" + to, "NAME": made}, func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), command, args...).CombinedOutput()
		return string(out), err
	})
	same(t, "from a file", print(t, dsn), print(t, server.DSN(made)))
	piped := exec.CommandContext(t.Context(), command, "restore-script", "-", "--to", "file:"+to, "--as", name("pipe"))
	piped.Stdin = bytes.NewReader([]byte(script))
	if out, err := piped.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	same(t, "by a pipe", print(t, dsn), print(t, server.DSN(name("pipe"))))

	at := strings.Index(script, "CREATE TABLE")
	owned := filepath.Join(dir, "owned")
	for what, x := range map[string]struct {
		text, as string
		words    []string
	}{
		"cut":     {script[:len(script)*2/3], name("cut"), []string{"lacks the line"}},
		"shell":   {script[:at] + `\! touch ` + owned + "\n" + script[at:], name("shell"), []string{"command for psql"}},
		"archive": {string(processortest.Tool(t, nil, pgTool(t, "pg_dump"), "-Fc", "-d", dsn)), name("archive"), []string{"it is no plain dump"}},
		"there":   {script, made, []string{"exists", "--as"}},
	} {
		restore(file(x.text), x.as).complains(t, 1, x.words...)
		if names, err := server.Databases(t.Context()); err != nil || x.as != made && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, x.as) }) {
			t.Errorf("%s: databases %q, %v", what, names, err)
		}
	}
	if _, err := os.Stat(owned); !os.IsNotExist(err) {
		t.Error("a script ran a program")
	}
	same(t, "the one that was there", print(t, dsn), print(t, server.DSN(made)))
	run(t, command, "restore-script", "--as", "x").complains(t, 2, "which server", "--to")
	run(t, command, "restore-script", "--to", "file:"+to).complains(t, 2, "name", "--as")
	run(t, command, "restore-script", filepath.Join(dir, "none.sql"), "--to", "file:"+to, "--as", "x").complains(t, 1, "none.sql")
	for _, as := range []string{made, name("pipe")} {
		server.Exec(t, "postgres", fmt.Sprintf(`DROP DATABASE "%s"`, as))
	}
}
