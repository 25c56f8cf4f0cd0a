package local

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// childEnv makes this test binary a process that begins a Put below the root it names, and never ends it.
const childEnv = "FENCEPOST_LOCAL_TEST_CHILD"

func TestMain(m *testing.M) {
	childMain()
	if root := os.Getenv(childEnv); root != "" {
		fmt.Println("error:", putForEver(root))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// putForEver tells when 2 MiB have been written, and then waits for its end.
func putForEver(root string) error {
	s, err := Open(Options{Root: root})
	if err != nil {
		return err
	}
	stuck := readerFunc(func([]byte) (int, error) {
		fmt.Println("written")
		select {}
	})
	_, err = s.Put(context.Background(), "b/1/data", io.MultiReader(io.LimitReader(zeros{}, 2<<20), stuck), storage.Condition{})
	return err
}

func TestKilledInTheMiddleOfAPut(t *testing.T) {
	root := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+root)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dead := false
	kill := func() {
		if !dead {
			dead = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	defer kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "written\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}

	s := open(t, Options{Root: root}) // while the writer lives its temporary stays
	if left := temps(t, root); len(left) != 1 || !strings.Contains(left[0], fmt.Sprintf("-%d-", cmd.Process.Pid)) {
		t.Fatalf("temporaries of the living writer: %q", left)
	}
	fi, err := os.Stat(filepath.Join(root, tempDir, temps(t, root)[0]))
	if err != nil || fi.Size() != 2<<20 {
		t.Errorf("the temporary has %d bytes, %v", fi.Size(), err)
	}
	kill()
	if _, err := s.Stat(t.Context(), "b/1/data"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("stat: %v", err)
	}
	for info, err := range s.List(t.Context(), "") {
		t.Errorf("listed %s, %v", info.Name, err)
	}
	if left := temps(t, root); len(left) != 1 {
		t.Fatalf("temporaries after the kill: %q", left)
	}
	again := open(t, Options{Root: root})
	if left := temps(t, root); len(left) != 0 {
		t.Errorf("temporaries after the next open: %q", left)
	}
	put(t, again, "b/1/data", "whole")
}

// TestOpenLeavesWhatIsNotItsOwn: it removes what dead writers left, also that of one killed before its first byte, a
// moment ago.
func TestOpenLeavesWhatIsNotItsOwn(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, filepath.FromSlash(tempDir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"put-dead-1-00": "x", "put-dead-1-01": "", "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	open(t, Options{Root: root, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if left := temps(t, root); !slices.Equal(left, []string{"notes.txt"}) {
		t.Errorf("left: %q", left)
	}
	if !strings.Contains(log.String(), "count=2") {
		t.Errorf("logged %q", log.String())
	}
}

// A writer that was stopped before it could lock its temporary, and whose temporary was cleaned away, sees that.
func TestALockOnACleanedTemporaryDoesNotCount(t *testing.T) {
	root := t.TempDir()
	s := open(t, Options{Root: root})
	temp, err := s.newTemp()
	if err != nil {
		t.Fatal(err)
	}
	defer temp.discard()
	if !s.isAt(temp.f, temp.name) {
		t.Error("a new temporary is not at its name")
	}
	if err := os.Remove(filepath.Join(root, temp.name)); err != nil {
		t.Fatal(err)
	}
	if s.isAt(temp.f, temp.name) {
		t.Error("a removed temporary is taken for one that is there")
	}
	if err := os.WriteFile(filepath.Join(root, temp.name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s.isAt(temp.f, temp.name) {
		t.Error("another file of its name is taken for it")
	}
}

// Many handles are opened, and clean, while others put: no living temporary may be taken for a dead one.
func TestCleaningSparesLivingWriters(t *testing.T) {
	root := t.TempDir()
	s := open(t, Options{Root: root})
	stop := make(chan struct{})
	cleaned := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				cleaned <- nil
				return
			default:
				other, err := Open(Options{Root: root})
				if err != nil {
					cleaned <- err
					return
				}
				_ = other.Close()
			}
		}
	}()
	for i := range 300 {
		put(t, s, fmt.Sprintf("o/%d", i), "x")
	}
	close(stop)
	if err := <-cleaned; err != nil {
		t.Error(err)
	}
}
