package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// fill writes a file for which a disk has no more room.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 1<<20); len(block) > 0 && err == nil; {
		if _, err = f.Write(block); err != nil && len(block) > 1 {
			block, err = block[:len(block)/2], nil // to the last byte
		}
	}
	if closed := f.Close(); !errors.Is(err, syscall.ENOSPC) || closed != nil {
		t.Fatalf("the disk is not full: %v, %v", err, closed)
	}
}

// TestFullHome: the disk of a node's home is full where its log begins another segment: the node gives up the room that it kept
// for that, ends in order, waits and says so in one line, and goes on when there is room, as the page says. Then it is killed
// while the disk is full: its warden waits, says so in one line, and goes on likewise. Nothing that was answered is lost.
func TestFullHome(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 1, watched: true})
	home := filepath.Join(c.dir, "n1")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	seen := c.startOn("n1", home, "32m")
	filler := filepath.Join(seen, "filler")
	log := func() string {
		text, err := os.ReadFile(filepath.Join(c.dir, "n1.log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	data, answered := json.RawMessage(`"`+strings.Repeat("x", 16000)+`"`), []string{}
	put := func() error {
		id := fmt.Sprintf("i%03d", len(answered))
		_, err := c.client("n1").PutItem(c.ctx, api.PutItem{ID: id, Type: "file", Data: data})
		if err == nil {
			answered = append(answered, id)
		}
		return err
	}
	makeRoom := func() {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}

	reserved := func(want bool) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(seen, "*", "reserve"))
		if err != nil || (len(found) == 1) != want {
			t.Errorf("the reserve of the log is %q, wanted is %t: %v", found, want, err)
		}
	}

	reserved(true)
	const nodeWaits = "app: the disk of the home is full: the node starts when there is room"
	fill(t, filler)
	var refused error
	for i := 0; i < 700 && refused == nil; i++ {
		refused = put()
	}
	t.Logf("%d items were put until the disk was full: %v", len(answered), refused)
	c.until("n1 waits for room", func() bool { return strings.Contains(log(), nodeWaits) })
	reserved(false)
	if !strings.Contains(log(), "its reserve is given up, to end in order") {
		t.Error("it does not say that it gives its reserve up")
	}
	rehearsal{c: c, hands: map[string]func(){"lvextend -r -L +1G /dev/data/fencepost": makeRoom}}.follow("home-full")
	c.ready("n1")
	reserved(true)

	const wardenWaits = "warden: the disk of the home is full: it goes on when there is room"
	if err := put(); err != nil {
		t.Error(err)
	}
	fill(t, filler)
	if err := syscall.Kill(c.processOf("n1"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.until("the warden waits for room", func() bool { return strings.Contains(log(), wardenWaits) })
	makeRoom()
	c.until("n1 is there again", func() bool { return strings.Contains(log(), "there is room on the disk of the home again\"") })
	c.ready("n1")
	for _, line := range []string{nodeWaits, wardenWaits} {
		if n := strings.Count(log(), line); n != 1 {
			t.Errorf("it said %d times that %s", n, line)
		}
	}
	for _, bad := range []string{"panic", "could not leave in order"} {
		if strings.Contains(log(), bad) {
			t.Errorf("the log has %q", bad)
		}
	}
	items, err := api.Get[[]api.Item](c.ctx, c.client("n1"), api.ItemsPath(api.ItemQuery{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range answered {
		if !slices.ContainsFunc(items, func(it api.Item) bool { return it.ID == id }) {
			t.Errorf("item %s is lost", id)
		}
	}
}
