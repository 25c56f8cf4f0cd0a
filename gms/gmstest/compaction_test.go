package gmstest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
)

// compacting makes snapshots often and keeps a short log.
func compacting(threshold, trailing uint64) Option {
	return func(o *options) {
		o.trailing = trailing
		WithConfig(func(_ string, c *gms.Config) { c.SnapshotThreshold = threshold })(o)
	}
}

// Snapshots under load: members write all the time, snapshots are made each 100 entries, a voter and one that only follows
// are cut off for so long that they come back by a snapshot, and one is killed and reads its own. The observer compares the
// hashes of all replicas at every index; at the end all have the same entries, and the latest of each writer.
func TestSnapshotsUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := Cluster(t, 5, compacting(100, 20))
		awaitVoters(w, 3)
		ctx, cancel := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		wrote := make(map[string]int)
		var mu sync.Mutex
		leader := w.Leader()
		for _, name := range []string{leader, w.Others(leader)[0]} {
			writers.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					k := gms.Key{Component: "work", Member: name, Key: fmt.Sprint(i % 50)}
					if _, err := w.Node(name).Group.Cache().Commit(ctx, gms.Txn{Puts: []gms.Put{{Key: k, Value: fmt.Append(nil, i)}}}); err == nil {
						mu.Lock()
						wrote[name] = i
						mu.Unlock()
					}
					select {
					case <-time.After(100 * time.Millisecond):
					case <-ctx.Done():
					}
				}
			})
		}
		away := w.Others(leader)[2:]
		before := map[string]uint64{}
		for _, name := range away {
			before[name] = w.Node(name).Group.Health().Applied
		}
		w.Partition(away[:1], away[1:])
		Advance(3 * time.Minute) // snapshots are looked for each 30 to 60 s
		w.Heal()
		t.Logf("all stand again after %v", w.AwaitView(w.Names()...))
		killed := w.Others(leader)[1]
		w.Kill(killed)
		Advance(time.Minute)
		w.Start(killed)
		w.AwaitView(w.Names()...)
		cancel()
		writers.Wait()
		for _, n := range w.Living() {
			must(t, n.Group.Sync(t.Context()))
			h := n.Group.Health()
			if h.Snapshot == 0 || h.First <= 1 {
				t.Errorf("%s keeps entries %d to %d, its last snapshot is of %d", n.Name, h.First, h.Last, h.Snapshot)
			}
			for name, last := range wrote {
				e, err := n.Group.Cache().GetLocal(gms.Key{Component: "work", Member: name, Key: fmt.Sprint(last % 50)})
				if err != nil || string(e.Value) != fmt.Sprint(last) {
					t.Errorf("%s has %q of %s, %v; the last was %d", n.Name, e.Value, name, err, last)
				}
			}
		}
		for _, name := range away {
			if first := w.Node(name).Group.Health().First; first <= before[name] {
				t.Errorf("%s went on from its own log, which begins at %d; it was cut off at %d", name, first, before[name])
			}
		}
		t.Logf("%v writes", wrote)
	})
}
