package consensus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
)

var errDark = errors.New("the power is cut")

// unsynced is a file system that keeps what is written in memory until it is synced. When its power is cut, any part of that
// may have reached the disk, whole or torn, and files whose first sync has not come may be gone.
type unsynced struct {
	types.VFS

	mu    sync.Mutex
	rng   *rand.Rand
	open  map[string]*unsyncedFile
	armed chan<- struct{} // the power goes with the next sync, which says so here
	off   bool
	lost  int // writes that a cut has lost, or torn
	saved int // writes that were not synced, and were there all the same
}

type unsyncedFile struct {
	fs      *unsynced
	real    types.WritableFile
	path    string
	fresh   bool // it was made, and not synced yet
	pending []unsyncedWrite
}

type unsyncedWrite struct {
	off  int64
	data []byte
}

func newUnsynced(rng *rand.Rand) *unsynced {
	return &unsynced{VFS: fs.New(), rng: rng, open: map[string]*unsyncedFile{}}
}

func (u *unsynced) Create(dir, name string, size uint64) (types.WritableFile, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.off {
		return nil, errDark
	}
	f, err := u.VFS.Create(dir, name, size)
	return u.keep(f, err, filepath.Join(dir, name), true)
}

func (u *unsynced) OpenWriter(dir, name string) (types.WritableFile, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f, err := u.VFS.OpenWriter(dir, name)
	return u.keep(f, err, filepath.Join(dir, name), false)
}

func (u *unsynced) keep(f types.WritableFile, err error, path string, fresh bool) (types.WritableFile, error) {
	if err != nil {
		return nil, err
	}
	if u.open[path] != nil && len(u.open[path].pending) > 0 {
		return nil, fmt.Errorf("%s is opened twice", path)
	}
	u.open[path] = &unsyncedFile{fs: u, real: f, path: path, fresh: fresh}
	return u.open[path], nil
}

func (u *unsynced) Delete(dir, name string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.off {
		return errDark
	}
	delete(u.open, filepath.Join(dir, name))
	return u.VFS.Delete(dir, name)
}

func (f *unsyncedFile) WriteAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.off {
		return 0, errDark
	}
	f.pending = append(f.pending, unsyncedWrite{off, append([]byte(nil), p...)})
	return len(p), nil
}

// ReadAt sees what was written, like anybody who asks the system.
func (f *unsyncedFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n, err := f.real.ReadAt(p, off)
	for _, w := range f.pending {
		from, to := max(off, w.off), min(off+int64(len(p)), w.off+int64(len(w.data)))
		if from < to {
			copy(p[from-off:to-off], w.data[from-w.off:to-w.off])
			n = max(n, int(to-off))
		}
	}
	if n == len(p) {
		err = nil
	}
	return n, err
}

func (f *unsyncedFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.off {
		return errDark
	}
	if f.fs.armed != nil {
		f.fs.armed <- struct{}{}
		return errors.Join(errDark, f.fs.end())
	}
	for _, w := range f.pending {
		if _, err := f.real.WriteAt(w.data, w.off); err != nil {
			return err
		}
	}
	f.pending, f.fresh = nil, false
	return f.real.Sync()
}

func (f *unsyncedFile) Close() error { return f.real.Close() }

// arm has the power go in the middle of the next sync, which sends to went, with a capacity for it.
func (u *unsynced) arm(went chan<- struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.armed = went
}

// cut has it go now.
func (u *unsynced) cut() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.end()
}

// end: nothing is written any more, and of what was not synced the disk has what it happens to have. u.mu is held.
func (u *unsynced) end() error {
	if u.off {
		return nil
	}
	u.off = true
	var err error
	for _, f := range u.open {
		if f.fresh && u.rng.IntN(2) == 0 {
			u.lost += len(f.pending)
			err = errors.Join(err, os.Remove(f.path))
			continue
		}
		for _, w := range f.pending {
			n := len(w.data)
			switch u.rng.IntN(3) {
			case 0:
				n = 0
			case 1:
				n = u.rng.IntN(n + 1)
			}
			if n < len(w.data) {
				u.lost++
			} else {
				u.saved++
			}
			if _, wrote := f.real.WriteAt(w.data[:n], w.off); wrote != nil {
				err = errors.Join(err, wrote)
			}
		}
	}
	return err
}

// powered is a group whose disks lose what was not synced.
type powered struct {
	*cluster
	rng   *rand.Rand
	disks map[string]*unsynced
	news  chan struct{} // capacity 1: something was answered

	mu       sync.Mutex
	begun    int
	answered []string // proposals, as they were answered
}

// TestPowerCutsLoseNothingThatWasAnswered: the power of one node, of two, or of all is cut under load, again and again. What
// was answered stays, once; and all replicas have the same.
func TestPowerCutsLoseNothingThatWasAnswered(t *testing.T) {
	t.Parallel()
	rounds, seed := 6, rand.Uint64()
	if os.Getenv("FENCEPOST_LONG") != "" {
		rounds = 100
	}
	if text := os.Getenv("FENCEPOST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("repeat it with: FENCEPOST_SEED=%d go test -run TestPowerCuts ./gms/internal/consensus", seed)
	p := &powered{cluster: newCluster(t).onDisk(), rng: rand.New(rand.NewPCG(seed, 8)), disks: map[string]*unsynced{}, news: make(chan struct{}, 1)}
	defer p.stop()
	p.edit = func(cfg *Config) {
		p.disks[cfg.Address] = newUnsynced(rand.New(rand.NewPCG(p.rng.Uint64(), 9)))
		cfg.Stores = diskStores{files: p.disks[cfg.Address], segment: 8 << 10} // small, so that segments end and begin under the cuts, too
		cfg.SnapshotThreshold, cfg.TrailingLogs, cfg.Timing.SnapshotInterval = 200, 50, 50*time.Millisecond
	}
	p.form(abc...)
	lost, saved := 0, 0
	for range rounds {
		rest := p.burst(20 + p.rng.IntN(200))
		var victims []string
		for _, i := range p.rng.Perm(len(abc))[:1+p.rng.IntN(len(abc))] {
			victims = append(victims, abc[i])
		}
		went := make(chan struct{}, len(victims))
		for _, name := range victims {
			p.disks[name].arm(went)
		}
		<-went                         // there is load: somebody syncs
		for _, name := range victims { // all of them before anybody comes back
			if err := p.disks[name].cut(); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range victims {
			p.nodes[name].Stop()
			lost, saved = lost+p.disks[name].lost, saved+p.disks[name].saved
		}
		rest()
		for _, name := range victims {
			p.start(name)
		}
		p.applied(p.propose(p.leader(abc...), "round"), abc...)
		p.judge()
	}
	t.Logf("%d of %d entries were answered, in %d rounds; %d writes lost or torn, %d there unsynced", len(p.answered), p.begun, rounds, lost, saved)
	if lost+saved == 0 {
		t.Error("no cut has met a write: the test proves nothing")
	}
}

// burst has writers propose to the leader, until n proposals were answered. They go on until rest is called.
func (p *powered) burst(n int) (rest func()) {
	p.t.Helper()
	deadline, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	for before := p.count(); ; {
		leader := p.nodes[p.leader(abc...)]
		ctx, stop := context.WithCancel(p.t.Context())
		var writers sync.WaitGroup
		for range 4 {
			writers.Go(func() { p.write(ctx, leader) })
		}
		over := make(chan struct{})
		go func() { writers.Wait(); close(over) }()
		for ended := false; !ended; {
			if p.count() >= before+n {
				return func() { stop(); <-over }
			}
			select {
			case <-p.news:
			case <-over: // it leads no more
				ended = true
			case <-deadline.Done():
				p.t.Fatalf("only %d of %d proposals are answered", p.count()-before, n)
			}
		}
		stop()
	}
}

func (p *powered) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.answered)
}

// write proposes one entry after the other to a node, until it fails, or ctx ends.
func (p *powered) write(ctx context.Context, to *Node) {
	for {
		p.mu.Lock()
		p.begun++
		entry := strconv.Itoa(p.begun)
		p.mu.Unlock()
		if _, _, err := to.Propose(ctx, []byte(entry)); err != nil {
			return
		}
		p.mu.Lock()
		p.answered = append(p.answered, entry)
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
}

// judge compares the replicas, and what they have with what was answered.
func (p *powered) judge() {
	p.t.Helper()
	first := p.tapes["a"].String()
	for _, name := range abc {
		if p.tapes[name].String() != first {
			p.t.Errorf("%s has another history than a", name)
		}
	}
	times := map[string]int{}
	for entry := range strings.SplitSeq(first, ",") {
		times[entry]++
	}
	for _, entry := range p.answered {
		if times[entry] != 1 {
			p.t.Errorf("%s was answered, and is there %d times", entry, times[entry])
		}
	}
}
