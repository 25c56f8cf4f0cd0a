package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

const (
	fits   = 1 << 20 // what all blocks of three storages hold: the writer never waits
	floods = 8 << 20
)

// TestFanOutUnderFaults: one stream to three storages, each with its plan of faults. Who is left behind, when, and what
// that means for the whole.
func TestFanOutUnderFaults(t *testing.T) {
	type plan struct {
		size int
		need int
		at   map[string]func() *storagetest.Fault // storage → its fault
		lost string                               // storages left behind, "" = none
		fail bool                                 // the part is lost with them
		took time.Duration
	}
	put := storagetest.Put
	stallAt := func(n int64, open time.Duration) func() *storagetest.Fault {
		return func() *storagetest.Fault { return storagetest.StallAt(put, n, opening(open)) }
	}
	stallEnd := func(open time.Duration) func() *storagetest.Fault {
		return func() *storagetest.Fault { return storagetest.StallEnd(put, opening(open)) }
	}
	fail := func() *storagetest.Fault { return storagetest.Fail(put, errBoom) }
	breaks := func() *storagetest.Fault { return storagetest.Break(put, 300_000, errBoom) }
	lose := func() *storagetest.Fault { return storagetest.Lose(put, errBoom) }
	never := time.Duration(0)
	type on = map[string]func() *storagetest.Fault
	for i, p := range []plan{
		{floods, 3, on{}, "", false, 0},
		{floods, 2, on{"b": fail}, "b", false, 0},
		{floods, 2, on{"b": breaks}, "b", false, 0},
		{floods, 2, on{"c": lose}, "c", false, 0},
		{floods, 3, on{"b": breaks}, "b", true, 0},
		{floods, 1, on{"a": fail, "c": breaks}, "ac", false, 0},
		{floods, 1, on{"a": fail, "b": breaks, "c": lose}, "abc", true, 0},

		{floods, 2, on{"b": stallAt(1<<20, never)}, "b", false, time.Minute},
		{floods, 1, on{"b": stallAt(1<<20, never), "c": stallAt(1<<20, never)}, "bc", false, time.Minute},
		{floods, 1, on{"b": stallAt(1<<20, never), "c": stallAt(2<<20, never)}, "bc", false, 2 * time.Minute},
		{floods, 2, on{"b": stallAt(1<<20, 50*time.Second)}, "", false, 50 * time.Second},
		{floods, 3, on{"b": stallAt(1<<20, 5*time.Minute)}, "", false, 5 * time.Minute}, // as long as a service may ask to wait
		{floods, 3, on{"b": stallAt(1<<20, never)}, "b", true, 10 * time.Minute},
		{floods, 2, on{"a": fail, "b": stallAt(1<<20, 5*time.Minute)}, "a", false, 5 * time.Minute},

		{fits, 2, on{"b": stallAt(0, never)}, "b", false, time.Minute},
		{fits, 2, on{"b": stallAt(fits, never)}, "b", false, time.Minute},
		{fits, 3, on{"b": stallAt(fits, 5*time.Minute)}, "", false, 5 * time.Minute},
		{fits, 3, on{"b": stallAt(fits, never)}, "b", true, 10 * time.Minute},
		{fits, 2, on{"b": stallEnd(4 * time.Minute)}, "", false, 4 * time.Minute}, // a last step may take a while
		{fits, 2, on{"b": stallEnd(never)}, "b", false, 5 * time.Minute},
		{floods, 1, on{"b": stallEnd(never), "c": breaks}, "bc", false, 5 * time.Minute},
		{fits, 3, on{"b": stallEnd(never)}, "b", true, 10 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			var stores []storage.Storage
			var below []*mem.Storage
			print := fmt.Sprintf("plan %d: %d bytes, %d of 3 needed", i, p.size, p.need)
			for _, name := range []string{"a", "b", "c"} {
				below = append(below, mem.New())
				st := storagetest.Inject(below[len(below)-1])
				if p.at[name] != nil {
					st = storagetest.Inject(below[len(below)-1], p.at[name]())
					print += fmt.Sprintf("; %s: %v", name, st)
				}
				stores = append(stores, st)
			}
			u := newUpload(p.need, stores...)
			began := time.Now()
			o, err := u.part(t.Context(), "data", pour(p.size))
			if (err != nil) != p.fail || err == nil && o.StoredBytes != int64(p.size) {
				t.Errorf("%s\n%+v, %v", print, o, err)
			}
			if took := time.Since(began); took != p.took {
				t.Errorf("%s\ntook %s, want %s", print, took, p.took)
			}
			if limit := 3*blocksPerSink + blocksSpare; u.made > limit {
				t.Errorf("%s\n%d blocks", print, u.made)
			}
			for i, c := range u.copies {
				if lost := strings.Contains(p.lost, c.name); (c.err != nil) != lost && !p.fail {
					t.Errorf("%s\ncopy %s: %v", print, c.name, c.err)
				} else if info, err := below[i].Stat(t.Context(), ObjectPath("b", 1, "data")); !p.fail && !lost && (err != nil || info.Size != int64(p.size)) {
					t.Errorf("%s\n%s holds %+v, %v", print, c.name, info, err)
				}
			}
		})
	}
}

// opening is a gate that opens by itself after a time; never when it is 0.
func opening(after time.Duration) *storagetest.Gate {
	g := storagetest.NewGate()
	if after > 0 {
		time.AfterFunc(after, g.Release)
	}
	return g
}

// A storage that stalls while its manifest is made is left behind too, and the ledger says so.
func TestManifestStalls(t *testing.T) {
	inRig(t, func(r *rig) {
		never := storagetest.NewGate()
		r.start("n1", nil, faults{"two": {storagetest.Stall(storagetest.Put, never).On(manifestName)}})
		began := time.Now()
		task := r.awaitState(r.backup("any").ID, ledger.Completed)
		b := r.wantEntry(task.Backup, ledger.BackupCompleted)
		if b.Copies[0].State != "present" || b.Copies[1].State != "missing" || !strings.Contains(b.Copies[1].Error, "takes no data") {
			r.Errorf("copies: %+v", b.Copies)
		}
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			r.Errorf("took %s", took)
		}
		r.wantWhole("one", task.Token)
		r.wantClean(r.node("n2", nil, nil))
	})
	inRig(t, func(r *rig) {
		r.start("n1", nil, faults{"two": {storagetest.Stall(storagetest.Put, opening(5*time.Minute)).On(manifestName)}})
		task := r.awaitState(r.backup("all").ID, ledger.Completed)
		if task.Attempt != 1 {
			r.Errorf("attempt %d", task.Attempt)
		}
		r.wantWhole("two", task.Token)
		r.wantClean(r.node("n2", nil, nil))
	})
}

// Sources that end, fail or stall at any byte: no object and no manifest anywhere, however the storages are doing.
func TestNothingStoredOfASourceThatFails(t *testing.T) {
	for _, sent := range []int64{0, 64 << 10, 640 << 10, 700_000} {
		inRig(t, func(r *rig) {
			r.server.onWrite = func(_ context.Context, _ string, n int64) error { return errIf(n >= sent) }
			r.start("n1", nil, faults{"two": {storagetest.StallAt(storagetest.Put, 1000, opening(20*time.Second)).On("data")}})
			task := r.awaitState(r.backup("any").ID, ledger.Failed)
			if !strings.Contains(task.Error, "boom") {
				r.Errorf("error: %s", task.Error)
			}
			r.wantObjects("one")
			r.wantObjects("two")
			r.wantClean(r.node("n2", nil, nil))
		})
	}
	inRig(t, func(r *rig) { // one that never ends is cancelled
		r.server.onWrite = func(ctx context.Context, _ string, n int64) error {
			if n < 640<<10 {
				return nil
			}
			<-ctx.Done()
			return errors.New("pg_dump was ended")
		}
		r.start("n1", func(c *Config) { c.Limit = 5 * time.Minute }, nil)
		r.awaitState(r.backup("any").ID, ledger.Failed)
		r.wantObjects("one")
		r.wantObjects("two")
	})
}
