package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// TestKit: everything of a group is lost but a storage and a kit; the kit alone, and a server, give a database back, and the whole
// server with its roles (serverFromKit).
func TestKit(t *testing.T) {
	t.Parallel()
	lost := newLostServer(t)
	dsn := lost.shop
	recipient, identity := ageKey(t)
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn, "slow": lost.slow}, extra: encrypted(recipient, identity)})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	b := c.oneBackup("n1")

	away := t.TempDir() // where no machine of the group is
	phrase := filepath.Join(away, "phrase")
	if err := os.WriteFile(phrase, []byte("correct horse battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(env []string, args ...string) (string, error) {
		cmd := exec.CommandContext(c.ctx, command, args...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	kit := filepath.Join(away, "kit.age")
	out, err := run(nil, "kit", "make", kit, "--config", c.file("n1"), "--passphrase-file", phrase)
	if err != nil || !strings.Contains(out, "keys/identity_file") {
		t.Fatalf("%s%v", out, err)
	}
	sealed, err := os.ReadFile(kit)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(identity)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("AGE-SECRET-KEY")) || bytes.Contains(sealed, bytes.TrimSpace(secret)) {
		t.Error("a key is readable in the kit")
	}
	if out, err := run(nil, "kit", "make", kit, "--config", c.file("n1"), "--passphrase-file", phrase); err == nil {
		t.Errorf("a kit was overwritten: %s", out)
	}
	id := c.manifest("a").Kit
	if id == "" || !strings.Contains(out, "Its id is "+id) {
		t.Errorf("the manifest names the kit %q: %s", id, out)
	}
	text, err := os.ReadFile(c.file("n1"))
	if err != nil {
		t.Fatal(err)
	}
	otherRecipient, otherIdentity := ageKey(t)
	otherConfig, other := filepath.Join(away, "other.yaml"), filepath.Join(away, "other.age")
	if err := os.WriteFile(otherConfig, []byte(strings.NewReplacer(recipient, otherRecipient, identity, otherIdentity).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(nil, "kit", "make", other, "--config", otherConfig, "--passphrase-file", phrase); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	if out, err := run(nil, "kit", "check", other, "--passphrase-file", phrase); err == nil || !strings.Contains(out, "Not read by this kit: 1 backups of shop in a, up to "+b.ID+"; they need the kit "+id) {
		t.Errorf("with the kit of other keys: %s%v", out, err)
	}

	// A kit of before this node had joined tells whose key it does not know, and believes nothing by it.
	early := filepath.Join(away, "early")
	if err := os.Mkdir(early, 0o700); err != nil {
		t.Fatal(err)
	}
	list, err := offline.ReadSigners(filepath.Join(c.dir, "n1", offline.SignersName))
	if err != nil || len(list.Keys) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	list.Keys = map[string]string{strings.Repeat("ab", 32): "n0"}
	if err := list.Write(filepath.Join(early, offline.SignersName)); err != nil {
		t.Fatal(err)
	}
	home := "home: " + filepath.Join(c.dir, "n1") + "\n"
	if err := os.WriteFile(otherConfig, []byte(strings.Replace(string(text), home, "home: "+early+"\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	before := filepath.Join(away, "before.age")
	if out, err := run(nil, "kit", "make", before, "--config", otherConfig, "--passphrase-file", phrase); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	out, err = run(nil, "kit", "check", before, "--passphrase-file", phrase)
	if err == nil || !strings.Contains(out, "Not believed by this kit: 1 backups in a, up to "+b.ID+", by node n1") || !strings.Contains(out, "make a new kit") {
		t.Errorf("with the kit of before: %s%v", out, err)
	}

	c.backupOf("n1", "slow")
	c.end()
	for _, gone := range []string{filepath.Join(c.dir, "n1"), c.file("n1"), identity} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(nil, "kit", "check", kit, "--passphrase-file", phrase); err != nil || strings.Count(out, " 2 ") < 2 {
		t.Errorf("%s%v", out, err)
	}
	wrong := filepath.Join(away, "wrong")
	if err := os.WriteFile(wrong, []byte("incorrect horse battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(nil, "kit", "check", kit, "--passphrase-file", wrong); err == nil || !strings.Contains(out, "wrong passphrase") {
		t.Errorf("with another passphrase: %s%v", out, err)
	}

	dir := filepath.Join(away, "here")
	if out, err := run(nil, "kit", "open", kit, "--dir", dir, "--passphrase-file", phrase); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	config, signers := filepath.Join(dir, "restore.yaml"), filepath.Join(dir, "signers.json")
	steps, err := os.ReadFile(filepath.Join(dir, "STEPS.txt"))
	if err != nil || !strings.Contains(string(steps), "fencepost storage restore a BACKUP --database ") {
		t.Errorf("the steps: %s, %v", steps, err)
	}
	if out, err := run(nil, "storage", "list", "a", "--config", config, "--signers", signers); err != nil || !strings.Contains(out, b.ID) {
		t.Fatalf("%s%v", out, err)
	}
	roles := filepath.Join(away, "roles.sql")
	for i, want := range []string{"are in " + roles, "exists"} {
		out, err := run(nil, "storage", "globals", "a", b.ID, "--out", roles, "--config", config, "--signers", signers)
		if (err == nil) != (i == 0) || !strings.Contains(out, want) {
			t.Errorf("%s%v", out, err)
		}
	}
	if sql, err := os.ReadFile(roles); err != nil || !bytes.Contains(sql, []byte("CREATE ROLE postgres")) || !bytes.Contains(sql, []byte("cluster dump complete")) || bytes.Contains(sql, []byte("SCRAM")) {
		t.Errorf("the roles of the server: %s, %v", sql, err)
	}
	if !strings.Contains(string(steps), "fencepost storage globals a BACKUP --out roles.sql") {
		t.Errorf("the steps do not tell of roles: %s", steps)
	}
	name := fmt.Sprintf("kit %d", time.Now().UnixNano())
	c.targets = append(c.targets, name)
	t.Cleanup(func() { pg.Server(t).Exec(t, "postgres", fmt.Sprintf("DROP DATABASE IF EXISTS %q", name)) })
	replay(t, "../cli/testdata/e2e/shelf.txt", map[string]string{"BACKUP": b.ID, "ROLES": filepath.Join(away, "more.sql"), "TARGET": name, "CONFIG": config, "SIGNERS": signers}, func(args ...string) (string, error) {
		return run([]string{"DSN=" + pg.Server(t).DSN("postgres")}, args...)
	})
	same(t, "restored by the kit", print(t, dsn), print(t, pg.Server(t).DSN(name)))

	if err := os.RemoveAll(filepath.Join(c.dir, "b")); err != nil {
		t.Fatal(err)
	}
	serverFromKit(t, c, kit, phrase, lost)

	// A kit whose storages are gone says so.
	if err := os.RemoveAll(filepath.Join(c.dir, "a")); err != nil {
		t.Fatal(err)
	}
	if out, err := run(nil, "kit", "check", kit, "--passphrase-file", phrase); err == nil || !strings.Contains(out, "nothing can be restored") {
		t.Errorf("without storages: %s%v", out, err)
	}
}

// replay runs the command lines of a golden file, of which names stand for what is drawn, and compares what they print.
func replay(t *testing.T, path string, names map[string]string, run func(args ...string) (string, error)) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(line, "$ fencepost ")
		if !ok {
			if strings.HasPrefix(line, "#") {
				got.WriteString(line)
			}
			continue
		}
		args := strings.Fields(command)
		for i := range args {
			if is, ok := names[args[i]]; ok {
				args[i] = is
			}
		}
		out, err := run(args...)
		if err != nil {
			t.Fatalf("%s%s%v", line, out, err)
		}
		for name, is := range names {
			out = strings.ReplaceAll(out, is, name)
		}
		got.WriteString(line + out + "\n")
	}
	if got.String() != string(text) {
		t.Errorf("%s is\n%s", path, got.String())
	}
}
