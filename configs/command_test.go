package configs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ask")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommand(t *testing.T) {
	for name, test := range map[string]struct{ command, want, fails string }{
		"first line":  {script(t, `echo "  a secret  "; echo more`), "a secret", ""},
		"arguments":   {script(t, `echo "$#:$1:$2"`) + ` $HOME  ;x`, "2:$HOME:;x", ""},
		"fails":       {script(t, `echo "the secret is hunter2" >&2; echo hunter2; exit 3`), "", "exit status 3"},
		"nothing":     {script(t, `:`), "", "wrote nothing"},
		"not there":   {"/no/such/program", "", "no such file"},
		"with spaces": {" " + script(t, `echo x`), "x", ""},
	} {
		got, err := NewSecret("command:" + test.command).Resolve()
		if got != test.want || (err == nil) != (test.fails == "") || err != nil && (!strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	got, err := NewDSN("command:" + script(t, `echo postgres://u:p@h/d`)).Resolve()
	if err != nil || got != "postgres://u:p@h/d" {
		t.Errorf("dsn %q, %v", got, err)
	}
	if problem := NewSecret("command:age -d x").problem(false); !strings.Contains(problem, "absolute") {
		t.Errorf("a program without its path: %q", problem)
	}
	if shown := NewSecret("command:/bin/x y").String(); shown != "command:/bin/x y" {
		t.Errorf("shown as %q", shown)
	}
}

// The secrets of a node may lie encrypted on its disk.
func TestSecretsEncryptedAtRest(t *testing.T) {
	age, err := exec.LookPath("age")
	keygen, err2 := exec.LookPath("age-keygen")
	if err != nil || err2 != nil {
		t.Fatal("the public program age is not installed: make deps installs it")
	}
	dir := t.TempDir()
	key, sealed := filepath.Join(dir, "key"), filepath.Join(dir, "dsn.age")
	if out, err := exec.Command(keygen, "-o", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	recipient, err := exec.Command(keygen, "-y", key).Output()
	if err != nil {
		t.Fatal(err)
	}
	seal := exec.Command(age, "-r", strings.TrimSpace(string(recipient)), "-o", sealed)
	seal.Stdin = strings.NewReader("postgres://u:hunter2@h/d\n")
	if out, err := seal.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, err := NewDSN("command:" + age + " -d -i " + key + " " + sealed).Resolve()
	if err != nil || got != "postgres://u:hunter2@h/d" {
		t.Errorf("%q, %v", got, err)
	}
}
