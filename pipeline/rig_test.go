package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded/embeddedtest"
	"github.com/fencepost/fencepost/pipeline/ledger/ledgertest"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a group of nodes in memory: one ledger, one database server, two storages. Its time is synctest's.
type rig struct {
	*testing.T
	store  *embeddedtest.Store
	led    *embedded.Ledger
	server *fakeServer
	disks  map[string]*mem.Storage
	nodes  []*node

	clock fakeClock

	mu    sync.Mutex
	locks map[string]*held
	stops []func() // of what runs beside the workers
}

// node is one worker with its run, locker and gate.
type node struct {
	r      *rig
	name   string
	run    string
	w      *Worker
	states *recorder

	mu     sync.Mutex
	held   context.Context
	close  context.CancelCauseFunc // what the node itself learns of the end of its run
	fenced chan struct{}           // closed when no fence stands
}

// inRig runs a test in a bubble with fake time.
func inRig(t *testing.T, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		store := embeddedtest.NewStore()
		led, err := embedded.New(embedded.Config{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, store: store, led: led, server: newServer(), disks: map[string]*mem.Storage{"one": mem.New(), "two": mem.New()}, locks: map[string]*held{}}
		defer func() {
			for _, stop := range r.stops {
				stop()
			}
			for _, n := range r.nodes {
				n.close(errors.New("test is over"))
				n.w.Stop()
			}
		}()
		test(r)
	})
}

// node makes a node that is not started. Faults are those of its own access to the storages.
func (r *rig) node(name string, edit func(*Config), faults map[string][]*storagetest.Fault) *node {
	r.Helper()
	n := &node{r: r, name: name, run: "run-" + name, fenced: make(chan struct{})}
	n.held, n.close = context.WithCancelCause(context.Background())
	close(n.fenced)
	r.store.OpenRun(n.run)
	n.states = &recorder{Ledger: r.led}
	zs, err := zstd.New(zstd.Options{Level: 1})
	r.must(err)
	procs, err := processor.NewRegistry(zs)
	r.must(err)
	cfg := Config{
		Ledger: n.states, Locks: n, Claims: n, Gate: n, Writer: "test",
		Catalog: Catalog{
			Sources: map[string]source.Source{"shop": r.server}, Storages: map[string]storage.Storage{},
			Processors: procs, Chain: []string{zstd.Name},
		},
	}
	for disk, st := range r.disks {
		cfg.Catalog.Storages[disk] = storagetest.Inject(st, faults[disk]...)
	}
	if edit != nil {
		edit(&cfg)
	}
	n.w, err = NewWorker(cfg)
	r.must(err)
	r.nodes = append(r.nodes, n)
	return n
}

// start makes a node and starts it.
func (r *rig) start(name string, edit func(*Config), faults map[string][]*storagetest.Fault) *node {
	r.Helper()
	n := r.node(name, edit, faults)
	r.must(n.w.Start(context.Background()))
	return n
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// TryClaim implements component.Claims.
func (n *node) TryClaim(_ context.Context, component, item string, roundTrip int) (Claim, error) {
	token, err := n.r.store.Claim(component, item, n.run)
	if errors.Is(err, ledgertest.ErrHeld) {
		return Claim{}, ErrBusy
	}
	return Claim{Component: component, Item: item, RoundTrip: roundTrip, Token: token}, err
}

// EndClaim implements component.Claims.
func (n *node) EndClaim(_ context.Context, c Claim, _ bool) error {
	n.r.store.Release(c.Component, c.Item, n.run, c.Token)
	return nil
}

// LockPoll implements component.Locks. A lock ends with the run of its holder.
func (n *node) LockPoll(ctx context.Context, name string) (component.Unlock, error) {
	return n.r.lock(ctx, component.PollLock(name), n.held)
}

// LockRun implements component.Locks.
func (n *node) LockRun(_ context.Context, name string, seat int) (component.Unlock, error) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	unlock, err := n.r.lock(now, component.RunLock(name, n.name, seat), n.held)
	if err != nil {
		return nil, ErrBusy
	}
	return unlock, nil
}

// lock takes a lock of the group, and waits for it until ctx ends.
func (r *rig) lock(ctx context.Context, name string, holder context.Context) (component.Unlock, error) {
	for {
		r.mu.Lock()
		l, taken := r.locks[name]
		if !taken || l.holder.Err() != nil {
			l = &held{holder: holder, free: make(chan struct{})}
			r.locks[name] = l
			r.mu.Unlock()
			return func(context.Context) error {
				r.mu.Lock()
				defer r.mu.Unlock()
				if r.locks[name] == l {
					delete(r.locks, name)
				}
				close(l.free)
				return nil
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-l.free:
		case <-l.holder.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// held is a lock that somebody holds.
type held struct {
	holder context.Context // ends with the run
	free   chan struct{}
}

// Standing implements Gate.
func (n *node) Standing(ctx context.Context) (context.Context, error) {
	if n.held.Err() != nil {
		return nil, errors.New("run is closed")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	context.AfterFunc(n.held, func() { cancel(context.Cause(n.held)) })
	return ctx, nil
}

// Self implements Gate.
func (n *node) Self() Standing { return Standing{Node: n.name, Run: n.run} }

// AwaitHeld implements Gate.
func (n *node) AwaitHeld(ctx context.Context) error { return ctx.Err() }

// AwaitUnfenced implements Gate.
func (n *node) AwaitUnfenced(ctx context.Context, _ string) error {
	n.mu.Lock()
	fenced := n.fenced
	n.mu.Unlock()
	select {
	case <-fenced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// planner plans with the rig's names.
func (r *rig) planner(edit func(*PlannerConfig)) *Planner {
	r.Helper()
	cfg := PlannerConfig{Ledger: r.led, Catalog: Catalog{
		Sources:  map[string]source.Source{"shop": r.server},
		Storages: map[string]storage.Storage{"one": r.disks["one"], "two": r.disks["two"]},
	}}
	if edit != nil {
		edit(&cfg)
	}
	p, err := NewPlanner(cfg)
	r.must(err)
	return p
}

func (r *rig) backup(require string) ledger.Task {
	r.Helper()
	t, err := r.planner(nil).PlanBackup(r.Context(), BackupRequest{Database: "shop", Require: require})
	r.must(err)
	return t
}

// await waits until the task satisfies ok.
func (r *rig) await(id string, what string, ok func(ledger.Task) bool) ledger.Task {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
	defer cancel()
	hints := r.led.Watch(ctx)
	for {
		t, err := r.led.Task(ctx, id)
		if err == nil && ok(t) {
			return t
		}
		if pollErr := waitHint(ctx, hints); pollErr != nil {
			r.Fatalf("task never became %s: %+v (%v)", what, t, err)
		}
	}
}

func waitHint(ctx context.Context, hints <-chan struct{}) error {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-hints:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (r *rig) awaitState(id string, s ledger.State) ledger.Task {
	r.Helper()
	t := r.await(id, "final", func(t ledger.Task) bool { return t.State.Final() })
	if t.State != s {
		r.Fatalf("task is %s (%s), want %s", t.State, t.Error, s)
	}
	return t
}

// objects lists a disk, void manifests marked.
func (r *rig) objects(disk string) []string {
	r.Helper()
	var out []string
	for info, err := range r.disks[disk].List(r.Context(), "") {
		r.must(err)
		backup, token, part, ok := ParsePath(info.Name)
		if !ok {
			r.Fatalf("object %q is none of ours", info.Name)
		}
		if part == manifestName {
			m, err := readManifest(r.Context(), r.disks[disk], backup, token)
			r.must(err)
			if m.Manifest.Void {
				part = "void"
			}
		}
		out = append(out, fmt.Sprintf("%d/%s", token, part))
	}
	return out
}

// wantObjects compares a disk with what it should hold, in order of name.
func (r *rig) wantObjects(disk string, want ...string) {
	r.Helper()
	if got := r.objects(disk); strings.Join(got, " ") != strings.Join(want, " ") {
		r.Errorf("disk %s holds %q, want %q", disk, got, want)
	}
}

// wantWhole demands exactly one valid manifest of token on the disk, its parts, and no other data.
func (r *rig) wantWhole(disk string, token uint64) {
	r.Helper()
	got := slices.DeleteFunc(r.objects(disk), func(o string) bool { return strings.HasSuffix(o, "/void") })
	want := []string{fmt.Sprintf("%d/data", token), fmt.Sprintf("%d/database.sql", token), fmt.Sprintf("%d/manifest.json", token)}
	if !slices.Equal(got, want) {
		r.Errorf("disk %s holds %q, want %q", disk, got, want)
	}
}

// wantNoClaims lets everything come to rest and demands that no claim is left.
func (r *rig) wantNoClaims() {
	r.Helper()
	synctest.Wait()
	if n := r.store.Claims(); n != 0 {
		r.Errorf("%d claims are left", n)
	}
}

func (r *rig) wantEntry(id string, s ledger.BackupState) ledger.Backup {
	r.Helper()
	b, err := r.led.Backup(r.Context(), id)
	r.must(err)
	if b.State != s {
		r.Errorf("backup is %s, want %s", b.State, s)
	}
	return b
}

// recoverBy closes the dead node's run as the group sees it (the node itself may not know) and lets heir recover a task.
func (r *rig) recoverBy(heir, dead *node, t ledger.Task) (Verdict, Claim, error) {
	r.Helper()
	r.store.CloseRun(dead.run)
	g := r.fence(heir, dead, t)
	v, err := heir.w.Recover(r.Context(), g, heir.name)
	return v, Claim{Component: g.Component, Item: t.ID, RoundTrip: t.Attempt + 1, Token: g.Token}, err
}

// fence raises the fence and adopts the claim for heir.
func (r *rig) fence(heir, dead *node, t ledger.Task) ledger.Guard {
	r.Helper()
	c := Component(t.Type)
	f := &ledger.Fence{Component: c, Node: dead.name, Run: dead.run}
	f.Token = r.store.RaiseFence(c, dead.name, dead.run, heir.run)
	token, err := r.store.Adopt(c, t.ID, heir.run)
	r.must(err)
	return ledger.Guard{Run: heir.run, Component: c, Item: t.ID, Token: token, Fence: f}
}

// recorder notes the states that a node writes, and the errors it gets.
type recorder struct {
	ledger.Ledger
	mu     sync.Mutex
	states []ledger.State
	errs   []error
}

func (r *recorder) Write(ctx context.Context, g ledger.Guard, c ledger.Change) error {
	err := r.Ledger.Write(ctx, g, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.states); err == nil && (n == 0 || r.states[n-1] != c.Task.State) {
		r.states = append(r.states, c.Task.State)
	}
	if err != nil {
		r.errs = append(r.errs, err)
	}
	return err
}

func (r *recorder) seen() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.states)
}

// refused tells whether a write was refused with sentinel.
func (r *recorder) refused(sentinel error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.errs, func(err error) bool { return errors.Is(err, sentinel) })
}

// fakeClock is the bubble's time, which one may doubt.
type fakeClock struct{ doubt atomic.Value }

func (*fakeClock) Now() time.Time { return time.Now() }

func (c *fakeClock) Doubt() error {
	if node, _ := c.doubt.Load().(string); node != "" {
		return fmt.Errorf("the clock of %s is 1h0m0s off", node)
	}
	return nil
}
