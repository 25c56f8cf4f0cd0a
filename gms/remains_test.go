package gms

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A home is emptied only while nobody uses it; what was there is kept beside it, gossip keys stay, and the node has another
// identity afterwards.
func TestResetHome(t *testing.T) {
	dir := t.TempDir()
	if _, err := ResetHome(dir); !errors.Is(err, ErrNotFound) {
		t.Errorf("an empty home: %v", err)
	}
	h := mustOpenHome(t, dir)
	id := h.id
	if _, err := ResetHome(dir); !errors.Is(err, ErrHomeInUse) {
		t.Errorf("a home in use: %v", err)
	}
	err := errors.Join(h.remember(groupFile{Version: 1, Group: "test", ClusterID: strings.Repeat("0a", 16)}), h.close(),
		write("raft/log", "x")(dir), write("gossip.keys", "k")(dir), write("own.txt", "o")(dir))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := ResetHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"raft/log", "group.json", "node.key"} {
		if _, err := os.Stat(filepath.Join(kept, name)); err != nil {
			t.Errorf("not kept: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	for _, name := range []string{"gossip.keys", "own.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("not the node's identity: %v", err)
		}
	}
	again := mustOpenHome(t, dir)
	defer again.close()
	if again.id == id {
		t.Error("the home has the same identity")
	}
}

// Nothing is made, and nothing is changed, where there is no home or only half of one.
func TestRemainsThatAreNone(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	if _, err := OpenRemains(nowhere); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := os.Stat(nowhere); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
	dir := t.TempDir()
	h := mustOpenHome(t, dir)
	if err := errors.Join(h.remember(groupFile{Version: 1, Group: "test"}), h.close()); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRemains(dir); err == nil || !strings.Contains(err.Error(), "no log") {
		t.Errorf("a home without a log: %v", err)
	}
	mustOpenHome(t, dir).close() // it is let go of
}
