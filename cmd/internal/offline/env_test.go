package offline

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fencepost/fencepost/recovery/home"
)

func env(t *testing.T) (Env, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "env"), 0o700); err != nil {
		t.Fatal(err)
	}
	e, err := OpenEnv(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return e, dir
}

func TestOpenEnv(t *testing.T) {
	if _, err := OpenEnv(t.TempDir(), ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a home that was never watched: %v", err)
	}
	if _, err := OpenEnv("", filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("no configuration, and no error")
	}
}

func TestEnvLife(t *testing.T) {
	e, dir := env(t)
	raft := filepath.Join(dir, "raft")
	if err := os.WriteFile(raft, []byte("votes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.Fail("x"); !errors.Is(err, ErrEnvNotSealed) {
		t.Errorf("fail: %v", err)
	}
	for want := uint64(1); want < 4; want++ {
		if gen, err := e.Seal(t.Context()); err != nil || gen != want {
			t.Fatalf("seal: generation %d, %v", gen, err)
		}
	}
	if err := e.Fail("an operator's cause"); err != nil {
		t.Fatal(err)
	}
	if st, err := e.Status(); err != nil || st.Failed != "an operator's cause" {
		t.Errorf("%+v, %v", st, err)
	}
	for range 8 { // more than recoveries may be begun by a warden
		if err := e.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(home.VolatileDir(filepath.Join(dir, "env"), 3)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the volatile part: %v", err)
	}
	if problems, err := e.Verify(); err != nil || len(problems) == 0 {
		t.Errorf("a drained environment is in order: %q, %v", problems, err)
	}
	if ev, err := e.Evidence(); err != nil || len(ev) == 0 || ev[0].Cause != "an operator's cause" {
		t.Errorf("%+v, %v", ev, err)
	}
	if data, err := os.ReadFile(raft); err != nil || string(data) != "votes" {
		t.Errorf("beside the environment: %q, %v", data, err)
	}
}

func TestEnvBelowAWarden(t *testing.T) {
	e, dir := env(t)
	k, err := home.Take(home.Config{Dir: filepath.Join(dir, "env")})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := e.Drain(t.Context()); !errors.Is(err, ErrEnvBusy) {
		t.Errorf("drain: %v", err)
	}
	if _, err := e.Seal(t.Context()); !errors.Is(err, ErrEnvBusy) {
		t.Errorf("seal: %v", err)
	}
}
