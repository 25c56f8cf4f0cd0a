package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

type faults = map[string][]*storagetest.Fault

var errBoom = errors.New("boom")

func permanent() error { return errors.Join(errBoom, storage.ErrPermanent) }

func TestCreate(t *testing.T) {
	inRig(t, func(r *rig) {
		n := r.start("n1", nil, nil)
		planned := r.backup("all")
		task := r.awaitState(planned.ID, ledger.Completed)
		if got := n.states.seen(); got != "[creating applying processors uploading completed]" {
			r.Errorf("states: %s", got)
		}
		b := r.wantEntry(task.Backup, ledger.BackupCompleted)
		if b.Token != task.Token || len(b.Copies) != 2 || b.Copies[0].State != "present" || b.Info.Database != "shop" || b.AsOf.IsZero() {
			r.Errorf("entry: %+v", b)
		}
		raw := patternOf(700_000)
		sum := sha256.Sum256(raw)
		if b.SHA256 != hex.EncodeToString(sum[:]) || task.Progress.Estimate != int64(len(raw)) || task.Progress.Read != b.RawBytes {
			r.Errorf("entry %+v, progress %+v", b, task.Progress)
		}
		for _, disk := range []string{"one", "two"} {
			r.wantWhole(disk, task.Token)
			if task.Progress.Stored[disk] != b.Copies[0].Bytes {
				r.Errorf("progress of %s: %+v", disk, task.Progress)
			}
		}
		checkContent(r, task, raw)
		r.wantNoClaims()
	})
}

// checkContent reads the object with the processor alone, as a person with the public tool would.
func checkContent(r *rig, task ledger.Task, raw []byte) {
	r.Helper()
	m, err := readManifest(r.Context(), r.disks["one"], task.Backup, task.Token)
	r.must(err)
	if len(m.Manifest.Processors) != 1 || m.Manifest.Processors[0] != zstd.Name || m.Manifest.Writer != "test" {
		r.Errorf("manifest: %+v", m.Manifest)
	}
	obj, _, err := r.disks["one"].Get(r.Context(), ObjectPath(task.Backup, task.Token, source.PartData))
	r.must(err)
	defer obj.Close()
	plain, err := zstd.Default().Unwrap(obj)
	r.must(err)
	defer plain.Close()
	got, err := io.ReadAll(plain)
	if err != nil || string(got) != string(raw) {
		r.Errorf("%d bytes come back, want %d (%v)", len(got), len(raw), err)
	}
}

// A source that fails leaves nothing stored, and says why.
func TestCreateSourceFails(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context, part string, sent int64) error{
		"at once":            func(_ context.Context, part string, sent int64) error { return errBoom },
		"after some blocks":  func(_ context.Context, part string, sent int64) error { return errIf(sent >= 600_000) },
		"at the very end":    func(_ context.Context, part string, sent int64) error { return errIf(sent == 700_000) },
		"in the second part": func(_ context.Context, part string, sent int64) error { return errIf(part == source.PartDatabase) },
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.server.onWrite = fail
				r.start("n1", nil, nil)
				task := r.awaitState(r.backup("all").ID, ledger.Failed)
				if !strings.Contains(task.Error, "boom") || task.Attempt != 1 {
					r.Errorf("task: %+v", task)
				}
				r.wantObjects("one")
				r.wantObjects("two")
				r.wantEntry(task.Backup, ledger.BackupGone)
				r.wantNoClaims()
			})
		})
	}
}

func errIf(yes bool) error {
	if yes {
		return errBoom
	}
	return nil
}

func TestCreateEmptyDump(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", nil)
		r.start("n1", nil, nil)
		task := r.awaitState(r.backup("all").ID, ledger.Failed)
		if !strings.Contains(task.Error, "empty") {
			r.Errorf("error: %s", task.Error)
		}
		r.wantObjects("one")
	})
}

func TestCreateSourceUnavailableIsTriedAgain(t *testing.T) {
	inRig(t, func(r *rig) {
		calls := 0
		r.server.onDump = func(context.Context) error {
			if calls++; calls < 3 {
				return source.ErrUnavailable
			}
			return nil
		}
		r.start("n1", nil, nil)
		began := time.Now()
		task := r.awaitState(r.backup("all").ID, ledger.Completed)
		if task.Attempt != 3 || task.Error != "" {
			r.Errorf("task: %+v", task)
		}
		if took := time.Since(began); took < 15*time.Second {
			r.Errorf("two waits of 5 s and 10 s took %s", took)
		}
		r.wantWhole("one", task.Token)
	})
}

func TestCreateSourceStaysUnavailable(t *testing.T) {
	inRig(t, func(r *rig) {
		var calls atomic.Int32
		r.server.onDump = func(context.Context) error { calls.Add(1); return source.ErrUnavailable }
		r.start("n1", nil, nil)
		r.start("n2", nil, nil)
		task := r.awaitState(r.backup("all").ID, ledger.Failed)
		if n := calls.Load(); n != 3 || task.Attempt != 3 || task.Hint == "" {
			r.Errorf("%d attempts, task %+v", n, task)
		}
		r.wantEntry(task.Backup, ledger.BackupGone)
	})
}

func TestCreateOneStorageFails(t *testing.T) {
	for name, f := range map[string]func() *storagetest.Fault{
		"at once":      func() *storagetest.Fault { return storagetest.Fail(storagetest.Put, errBoom) },
		"in the data":  func() *storagetest.Fault { return storagetest.Break(storagetest.Put, 100_000, errBoom).On("data") },
		"part two":     func() *storagetest.Fault { return storagetest.Fail(storagetest.Put, errBoom).On("database.sql") },
		"the manifest": func() *storagetest.Fault { return storagetest.Fail(storagetest.Put, permanent()).On(manifestName) },
	} {
		t.Run(name+" any", func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.start("n1", nil, faults{"two": {f()}})
				task := r.awaitState(r.backup("any").ID, ledger.Completed)
				r.wantWhole("one", task.Token)
				b := r.wantEntry(task.Backup, ledger.BackupCompleted)
				if b.Copies[0].State != "present" || b.Copies[1].State != "missing" || !strings.Contains(b.Copies[1].Error, "boom") {
					r.Errorf("copies: %+v", b.Copies)
				}
				for _, o := range r.objects("two") {
					if strings.HasSuffix(o, manifestName) {
						r.Errorf("the failed storage has a valid manifest: %s", o)
					}
				}
				r.wantClean(r.node("n2", nil, nil))
			})
		})
		t.Run(name+" all", func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.start("n1", nil, faults{"two": {f()}})
				task := r.awaitState(r.backup("all").ID, ledger.Failed)
				if !strings.Contains(task.Error, "storage two") || !strings.Contains(task.Error, "boom") {
					r.Errorf("error: %s", task.Error)
				}
				for _, disk := range []string{"one", "two"} {
					for _, o := range r.objects(disk) {
						if !strings.HasSuffix(o, "/void") {
							r.Errorf("left in %s: %s", disk, o)
						}
					}
				}
				r.wantEntry(task.Backup, ledger.BackupGone)
				r.wantClean(r.node("n2", nil, nil))
			})
		})
	}
}

// A storage that takes nothing is left behind; the other one gets everything.
func TestCreateStorageStalls(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(8<<20))
		gate := storagetest.NewGate()
		r.start("n1", func(c *Config) { c.StallAfter = time.Minute; c.Catalog.Chain = nil }, faults{"two": {storagetest.StallAt(storagetest.Put, 1<<20, gate)}})
		task := r.awaitState(r.backup("any").ID, ledger.Completed)
		r.wantWhole("one", task.Token)
		r.wantObjects("two")
		b := r.wantEntry(task.Backup, ledger.BackupCompleted)
		if !strings.Contains(b.Copies[1].Error, "takes no data for 1m0s") {
			r.Errorf("copies: %+v", b.Copies)
		}
	})
}

// A slow storage slows the whole down and is not lost.
func TestCreateSlowStorage(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(8<<20))
		gate := storagetest.NewGate()
		r.start("n1", func(c *Config) { c.StallAfter = time.Minute; c.Catalog.Chain = nil }, faults{"two": {storagetest.StallAt(storagetest.Put, 1<<20, gate).On("data")}})
		began := time.Now()
		id := r.backup("any").ID
		<-gate.Reached()
		time.AfterFunc(50*time.Second, gate.Release)
		task := r.awaitState(id, ledger.Completed)
		if time.Since(began) < 50*time.Second {
			r.Error("nobody waited for the slow storage")
		}
		r.wantWhole("one", task.Token)
		r.wantWhole("two", task.Token)
	})
}

func TestCreateLostAnswers(t *testing.T) {
	inRig(t, func(r *rig) {
		r.start("n1", nil, faults{"one": {storagetest.Lose(storagetest.Put, errBoom).On(manifestName).Times(1)}})
		task := r.awaitState(r.backup("all").ID, ledger.Completed)
		r.wantWhole("one", task.Token)
		if task.Attempt != 1 {
			r.Errorf("attempt %d", task.Attempt)
		}
	})
	inRig(t, func(r *rig) {
		r.start("n1", nil, faults{"two": {storagetest.Do(storagetest.Put, func(context.Context, string) error {
			r.store.LoseAnswers(1) // of the last write
			return nil
		}).On(manifestName)}})
		task := r.awaitState(r.backup("all").ID, ledger.Completed)
		r.wantWhole("two", task.Token)
		r.wantEntry(task.Backup, ledger.BackupCompleted)
	})
}

// A ledger that is down never ends a task.
func TestCreateLedgerDown(t *testing.T) {
	inRig(t, func(r *rig) {
		r.start("n1", nil, faults{"two": {storagetest.Do(storagetest.Put, func(context.Context, string) error {
			r.store.SetDown(true)
			time.AfterFunc(10*time.Minute, func() { r.store.SetDown(false) })
			return nil
		}).On(manifestName)}})
		task := r.awaitState(r.backup("all").ID, ledger.Completed)
		if task.Attempt != 1 {
			r.Errorf("attempt %d", task.Attempt)
		}
		r.wantWhole("two", task.Token)
	})
}

func TestProgressIsWrittenAtIntervals(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(10<<20))
		r.start("n1", func(c *Config) { c.RateLimit = 1 << 20 }, nil)
		began := time.Now()
		id := r.backup("all").ID
		half := r.await(id, "half done", func(t ledger.Task) bool { return t.Progress.Read >= 5<<20 })
		if p := half.Progress; half.State != ledger.Uploading || p.Estimate != 10<<20 || p.Processed <= 0 || p.Stored["one"] > p.Processed {
			r.Errorf("half: %+v", half)
		}
		if rate := half.Progress.Rate; rate < 900<<10 || rate > 1200<<10 {
			r.Errorf("half: %d bytes a second", rate)
		}
		r.awaitState(id, ledger.Completed)
		if took := time.Since(began); took < 9*time.Second || took > 13*time.Second {
			r.Errorf("10 MiB at 1 MiB/s took %s", took)
		}
	})
}
