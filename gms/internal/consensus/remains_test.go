package consensus

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What one of three homes holds becomes all that there is: its node leads alone, from a log that goes on behind what was
// rewritten. It is the same whether the home has a snapshot or only a log, and when the rewriting was interrupted after the
// snapshot was written and is done again.
func TestRemainsGoOnAlone(t *testing.T) {
	for name, x := range map[string]struct{ snapshots, interrupted bool }{
		"log only": {}, "snapshot and log": {snapshots: true}, "interrupted": {interrupted: true}, "interrupted, with a snapshot": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t).onDisk()
			defer func() { c.stop() }()
			if x.snapshots {
				c.edit = func(cfg *Config) {
					cfg.SnapshotThreshold, cfg.TrailingLogs = 20, 5
					cfg.Timing.SnapshotInterval = 50 * time.Millisecond
				}
			}
			leader := c.form(abc...)
			var want []string
			var last uint64
			for i := range 60 {
				want = append(want, fmt.Sprint(i))
				last = c.propose(leader, fmt.Sprint(i))
			}
			c.applied(last, abc...)
			cfg := c.nodes["a"].cfg
			c.stop()

			held := &tape{}
			r, err := OpenRemains(cfg.Dir, held)
			if err != nil {
				t.Fatal(err)
			}
			if got := held.String(); got != strings.Join(want, ",") || r.Last() < last || len(r.Servers()) != 3 {
				t.Fatalf("the remains end at %d of %d, with %d servers, and hold %s", r.Last(), last, len(r.Servers()), got)
			}
			log := filepath.Join(cfg.Dir, "log")
			if x.interrupted { // the log comes back, as if it had not been removed yet
				if err := os.CopyFS(log+".kept", os.DirFS(log)); err != nil {
					t.Fatal(err)
				}
			}
			alone := []Server{{ID: cfg.ServerID, Address: "a", Voter: true}}
			if err := r.Rewrite([]byte("first"), alone); err != nil {
				t.Fatal(err)
			}
			r.Close()
			want = append(want, "first")
			if x.interrupted {
				if err := os.RemoveAll(log); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(log+".kept", log); err != nil {
					t.Fatal(err)
				}
				held = &tape{}
				if r, err = OpenRemains(cfg.Dir, held); err != nil {
					t.Fatal(err)
				}
				if got := held.String(); got != strings.Join(want, ",") || !slices.Equal(r.Servers(), alone) {
					t.Fatalf("after the interruption they hold %s, servers %v", got, r.Servers())
				}
				if err := r.Rewrite([]byte("second"), alone); err != nil {
					t.Fatal(err)
				}
				r.Close()
				want = append(want, "second")
			}

			n := c.make("a")
			if err := n.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := c.leader("a"); got != "a" {
				t.Fatalf("%q leads", got)
			}
			want = append(want, "after")
			c.applied(c.propose("a", "after"), "a")
			if got := c.tapes["a"].String(); got != strings.Join(want, ",") {
				t.Errorf("it has applied %s, want %s", got, strings.Join(want, ","))
			}
			if got := n.Configuration(); !slices.Equal(got.Servers, alone) {
				t.Errorf("servers %v", got.Servers)
			}
		})
	}
}

// Where no log is, nothing is made of it.
func TestNoRemains(t *testing.T) {
	if _, err := OpenRemains(t.TempDir(), &tape{}); err == nil || !strings.Contains(err.Error(), "no log") {
		t.Errorf("an empty directory: %v", err)
	}
}
