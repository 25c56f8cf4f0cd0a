package admin

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/audit"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// patience is far above what anything here takes.
const patience = 30 * time.Second

// fake is a backend whose content a test sets.
type fake struct {
	mu       sync.Mutex
	tasks    map[string]api.Task
	filter   api.TaskFilter // of the last list
	err      error          // answered by everything when set
	restores []api.RestoreBackup
	watchers []chan struct{}
	watching chan struct{} // receives when somebody begins to wait
	reads    int
	fences   []api.Fence
}

func newFake() *fake {
	return &fake{tasks: map[string]api.Task{}, watching: make(chan struct{}, 100)}
}

func (f *fake) set(t api.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks[t.ID] = t
	for _, w := range f.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (f *fake) watch(ctx context.Context) <-chan struct{} {
	w := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers = append(f.watchers, w)
	f.watching <- struct{}{}
	return w
}

func (f *fake) Status(context.Context) (api.Status, error) {
	return api.Status{Node: "n1", Problems: []string{}}, f.err
}

func (f *fake) Overview(context.Context) (api.Overview, error) {
	return api.Overview{Status: api.Status{Node: "n1"}, Health: api.HealthWell}, f.err
}

func (f *fake) View(context.Context) (api.View, error) {
	return api.View{Version: 7, Leader: "n1", Members: []api.Member{{Node: "n1", Leader: true}, {Node: "n2"}}}, f.err
}

func (f *fake) Fences(context.Context) ([]api.Fence, error) { return f.fences, f.err }

func (f *fake) Recoveries(context.Context) ([]api.Recovery, error) {
	return []api.Recovery{{Component: "backup", Node: "n2", Run: "ab", State: "released", Token: 1 << 52, Steps: []api.Step{{What: "closed"}}}}, f.err
}

func (f *fake) Tasks(_ context.Context, filter api.TaskFilter) ([]api.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filter = filter
	var out []api.Task
	for _, t := range f.tasks {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b api.Task) int { return b.Created.Compare(a.Created) })
	return out, f.err
}

func (f *fake) TaskLog(_ context.Context, id string) (api.TaskLog, error) {
	return api.TaskLog{Task: id, Lines: []api.LogLine{{Text: "said of " + id}}}, nil
}

func (f *fake) Task(_ context.Context, id string) (api.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if t, ok := f.tasks[id]; ok || f.err != nil {
		return t, f.err
	}
	return api.Task{}, &api.Error{Code: api.CodeNotFound, Message: "there is no task " + id}
}

func (f *fake) Cancel(ctx context.Context, id string) (api.Task, error) {
	t, err := f.Task(ctx, id)
	t.CancelRequested = true
	return t, err
}

func (f *fake) Backups(_ context.Context, filter api.BackupFilter) ([]api.Backup, error) {
	return []api.Backup{{ID: "b1", Database: filter.Database}}, f.err
}

func (f *fake) Backup(_ context.Context, id string) (api.Backup, error) {
	return api.Backup{ID: id}, f.err
}

func (f *fake) CreateBackup(_ context.Context, r api.CreateBackup) (api.Task, error) {
	return api.Task{ID: "t9", Type: "create", Database: r.Database, Storages: r.Storages}, f.err
}

func (f *fake) Restore(_ context.Context, r api.RestoreBackup) (api.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restores = append(f.restores, r)
	return api.Task{ID: "t10", Type: "restore", Backup: r.Backup, Target: r.Target}, f.err
}

func (f *fake) restored() []api.RestoreBackup {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.restores)
}

// fail has everything answer err; nil ends that.
func (f *fake) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fake) PreviewRestore(_ context.Context, r api.RestoreBackup) (api.RestorePlan, error) {
	return api.RestorePlan{Backup: api.Backup{ID: "b1"}, Database: r.Database, Target: r.Target, Clients: []string{"ann"}}, f.err
}

func (f *fake) Undo(_ context.Context, task string) (api.Task, error) {
	return api.Task{ID: task, Type: "restore", Undo: "shop__was_1"}, f.err
}

func (f *fake) backend() Backend {
	store := &kept.Memory{}
	who := accounts.New(accounts.Config{Store: store})
	return Backend{Accounts: who, Trail: audit.New(store, "n1", time.Now), Kept: store, Members: f, Recoveries: f, Operator: f, Drains: f, Keyring: f, Notifier: f, Reloader: f, Usage: f, Tasks: f, Backups: f, Requests: f, Keeping: f, Storages: f, Settings: f, Ledgers: f, GroupStates: f, Recurring: f, Autonomous: f, Watch: f.watch}
}

// serve runs a server over f, and a client of it.
func serve(t *testing.T, b Backend) (*Server, *api.Client, string) {
	t.Helper()
	socket := shortSocket(t)
	s := NewServer(socket, NewHandler(b), slog.New(slog.DiscardHandler))
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	c := api.NewClient(socket)
	t.Cleanup(func() {
		c.Close()
		stop(t, s)
	})
	return s, c, socket
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.Stop(ctx)
	if ctx.Err() != nil {
		t.Error("the server did not stop in time")
	}
}

// shortSocket is a path that is short enough whatever the test is called.
func shortSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "a.sock")
}

// raw sends one request as text and gives the whole answer.
func raw(t *testing.T, socket, request string) string {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "%s", request)
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (f *fake) RetryRecovery(_ context.Context, r api.RecoveryName) (api.Recovery, error) {
	return api.Recovery{Component: r.Component, Run: r.Run, State: api.FenceAppointed}, f.err
}

func (f *fake) DropRecovery(_ context.Context, r api.DropRecovery) (api.Recovery, error) {
	return api.Recovery{Component: r.Component, Run: r.Run, State: "dropped", Problem: r.Why}, f.err
}

func (f *fake) RaiseFence(_ context.Context, w api.FenceName) (api.Fence, error) {
	return api.Fence{Component: w.Component, Node: w.Node, Token: 7, State: api.FenceMaintenance}, f.err
}

func (f *fake) ForgetNode(_ context.Context, n api.NodeName) (api.Node, error) {
	return api.Node{Node: n.Node, State: api.NodeForgotten}, f.err
}

func (f *fake) Drain(_ context.Context, node string) (api.Drain, error) {
	return api.Drain{Node: node, State: api.DrainIdle, Tasks: []api.DrainTask{}}, f.err
}

func (f *fake) DrainNode(_ context.Context, n api.NodeName) (api.Drain, error) {
	return api.Drain{Node: n.Node, State: api.DrainBusy, Tasks: []api.DrainTask{}}, f.err
}

func (f *fake) Removal(_ context.Context, node string) (api.Removal, error) {
	return api.Removal{Node: node, State: api.RemovalNone, Drain: api.Drain{Node: node, Tasks: []api.DrainTask{}}, Storages: []api.BoundStorage{{Name: "disk", Backups: 2, Only: 1}}}, f.err
}

func (f *fake) RemoveNode(ctx context.Context, n api.NodeName) (api.Removal, error) {
	r, err := f.Removal(ctx, n.Node)
	r.State = api.RemovalDraining
	return r, err
}

func (f *fake) UndrainNode(_ context.Context, n api.NodeName) (api.Drain, error) {
	return api.Drain{Node: n.Node, State: api.DrainNone, Tasks: []api.DrainTask{}}, f.err
}

func (f *fake) MayRestart(_ context.Context, node string) (api.MayRestart, error) {
	return api.MayRestart{Node: node, Why: []string{"no"}}, f.err
}

func (f *fake) ReplaceNode(_ context.Context, n api.NodeName) (api.Node, error) {
	return api.Node{Node: n.Node, State: api.NodeReplaceable}, f.err
}

func (f *fake) Upgrade(context.Context) (api.Upgrade, error) {
	return api.Upgrade{Protocol: 1, Next: 2, Programs: []api.Program{{Node: "n/3", Version: "v1", Protocol: 2, Here: true}}, Against: []string{}}, f.err
}

func (f *fake) FinalizeUpgrade(_ context.Context, r api.FinalizeUpgrade) (api.Upgrade, error) {
	return api.Upgrade{Protocol: 2, Next: 2, Programs: []api.Program{}, Against: r.Without}, f.err
}

func (f *fake) Rebase(_ context.Context, r api.Rebase) (api.Numbers, error) {
	return api.Numbers{Base: r.Above + 1, Position: r.Above + 2, Token: r.Above + 1, Before: 5}, f.err
}

func (f *fake) LowerFence(_ context.Context, w api.LowerFence) (api.Fence, error) {
	if w.Force {
		return api.Fence{Component: w.Component, Node: w.Node, Token: w.Token, State: api.FenceAppointed, Problem: w.Why}, f.err
	}
	return api.Fence{Component: w.Component, Node: w.Node, Token: w.Token, State: api.FenceLowered}, f.err
}

func (f *fake) CheckStorage(_ context.Context, name string, r api.CheckStorage) ([]api.Finding, error) {
	return []api.Finding{{Storage: name, Kind: "partial", Backup: "b1", Token: 5, Problem: "x", Fixable: true, Fixed: r.Fix}}, nil
}

func (f *fake) RebuildCatalog(_ context.Context, r api.RebuildCatalog) ([]api.Backup, error) {
	return []api.Backup{{ID: "b1", State: "completed"}}, nil
}

func (f *fake) DeleteBackup(_ context.Context, id string, r api.DeleteBackup) (api.Task, error) {
	return api.Task{ID: "d1", Type: "delete", State: "planned", Backup: id, NotBefore: notBefore(r.Now)}, nil
}

func (f *fake) UndeleteBackup(_ context.Context, id string) (api.Backup, error) {
	return api.Backup{ID: id, State: "completed"}, nil
}

func (f *fake) MarkBackup(_ context.Context, id string, r api.MarkBackup) (api.Backup, error) {
	b := api.Backup{ID: id, State: "completed", MarkedBy: "ann"}
	if r.Pinned != nil {
		b.Pinned = *r.Pinned
	}
	if r.Accepted != nil {
		b.Accepted = *r.Accepted
	}
	if r.Note != nil {
		b.Note = *r.Note
	}
	return b, nil
}

func (f *fake) VerifyBackup(_ context.Context, id string, r api.VerifyBackup) (api.Task, error) {
	return api.Task{ID: "v1", Type: "verify", State: "planned", Backup: id, Storages: r.Storages, Target: r.Scratch}, nil
}

func (f *fake) ReplicateBackup(_ context.Context, id string, r api.ReplicateBackup) (api.Task, error) {
	return api.Task{ID: "r1", Type: "replicate", State: "planned", Backup: id, Storages: r.Storages}, nil
}

// notBefore is when a delete goes.
func notBefore(now bool) *time.Time {
	if now {
		return nil
	}
	at := time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC)
	return &at
}

func (f *fake) Keyring(context.Context) (api.Keyring, error) { return api.Keyring{Version: 3}, f.err }

func (f *fake) AddGossipKey(_ context.Context, k api.AddKey) (api.Keyring, error) {
	return api.Keyring{Version: uint64(len(k.Key))}, f.err
}

func (f *fake) Rekey(ctx context.Context) (api.Keyring, error) {
	return f.UseGossipKey(ctx, api.KeyName{Fingerprint: "ab"})
}

func (f *fake) UseGossipKey(_ context.Context, k api.KeyName) (api.Keyring, error) {
	return api.Keyring{Keys: []api.KeyringKey{{Fingerprint: k.Fingerprint, InUse: true}}}, f.err
}

func (f *fake) RemoveGossipKey(_ context.Context, k api.KeyName) (api.Keyring, error) {
	return api.Keyring{Keys: []api.KeyringKey{{Fingerprint: k.Fingerprint}}}, f.err
}

func (f *fake) TryStorage(_ context.Context, name string) (api.Tried, error) {
	return api.Tried{Name: name, Node: "n1", Good: true, Found: "all is well", Steps: []api.TryStep{{Step: "write", TookMS: 3}}}, nil
}

func (f *fake) TryDatabase(_ context.Context, name string) (api.Tried, error) {
	return api.Tried{Name: name, Node: "n1", Found: "connection refused", Hint: "look at its dsn"}, nil
}

func (f *fake) Manifest(_ context.Context, id, storage string) (api.Manifest, error) {
	return api.Manifest{Backup: id, Token: 69, Storage: storage, Object: id + "/0000000000000069/manifest.json", Manifest: []byte(`{"format":2,"backup":"b1"}`)}, nil
}
