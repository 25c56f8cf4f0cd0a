package app

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	"github.com/fencepost/fencepost/pipeline/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config is a single node with one database that nobody serves and two local storages.
func config(t testing.TB) configs.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "fp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := configs.Default()
	c.Node, c.Home, c.Profile = "n1", filepath.Join(dir, "home"), "lan"
	c.Gossip.Bind, c.Cluster.Bind, c.Admin.Socket = freeAddr(t), freeAddr(t), filepath.Join(dir, "sock")
	c.Databases = []configs.Database{{Name: "shop", DSN: configs.NewDSN("postgres://u:secret@127.0.0.1:1/shop?connect_timeout=1")}}
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		c.Storages = append(c.Storages, configs.Storage{Name: name, Kind: "local", Path: path})
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// lastPort counts ports that tests were given. They lie below the range from which the system takes those of outgoing
// connections: one that was free a moment ago stays so.
var lastPort atomic.Int64

func freeAddr(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := 10000 + (os.Getpid()*997+int(lastPort.Add(1)))%20000
		address := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		l.Close()
		u, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		u.Close()
		return address
	}
	t.Fatal("no free port")
	return ""
}

// start runs a node until the test ends or stop is called.
func start(t *testing.T, c configs.Config) (a *App, stop func()) {
	t.Helper()
	a, err := New(c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := a.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	t.Cleanup(stop)
	return a, stop
}

// settled waits until the node is ready or has failed.
func settled(t *testing.T, a *App) error {
	t.Helper()
	limit := time.After(time.Minute)
	for a.stateNow() != "ready" {
		select {
		case <-a.Done():
			return a.Err()
		case <-a.group.Changed():
		case <-a.group.Cache().Changed():
		case <-time.After(20 * time.Millisecond): // the state of the app has no channel of its own
		case <-limit:
			t.Fatalf("not ready in a minute: %s", a.stateNow())
		}
	}
	return nil
}

func ready(t *testing.T, a *App) {
	t.Helper()
	if err := settled(t, a); err != nil {
		t.Fatal(err)
	}
}

func TestSingleNodeAnswersOnItsSocket(t *testing.T) {
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	client := api.NewClient(c.Admin.Socket)
	s, err := client.Status(t.Context())
	if err != nil || s.State != "ready" || s.Lease != "held" || s.Leader != "n1" || len(s.Problems) != 0 {
		t.Errorf("status %+v, %v", s, err)
	}
	v, err := client.View(t.Context())
	if err != nil || v.Stale || len(v.Members) != 1 || v.Members[0].JoinedAt == nil || strings.Join(v.Members[0].Components, " ") != "backup delete discover prune replicate restore schedule sweep tidy verify" {
		t.Errorf("view %+v, %v", v, err)
	}
	if _, err := client.CreateBackup(t.Context(), api.CreateBackup{Database: "nope"}); api.ExitCode(err) != api.ExitFailed || !strings.Contains(err.Error(), `unknown database "nope"`) {
		t.Errorf("backup of an unknown database: %v", err)
	}
	if _, err := client.Task(t.Context(), "nope"); err == nil || api.ExitCode(err) != api.ExitFailed {
		t.Errorf("an unknown task: %v", err)
	}
}

// TestUnreachableDatabase: the task says why in one sentence without the password, and nothing is stored.
func TestUnreachableDatabase(t *testing.T) {
	c := config(t)
	c.Backup.MaxAttempts = 1
	a, _ := start(t, c)
	ready(t, a)
	client := api.NewClient(c.Admin.Socket)
	task, err := client.CreateBackup(t.Context(), api.CreateBackup{Database: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	task, err = client.WaitTask(ctx, task.ID, nil)
	if err != nil || task.State != "failed" || task.Error == "" || strings.Contains(task.Error, "secret") || strings.ContainsAny(task.Error, "\n\r") {
		t.Errorf("task %+v, %v", task, err)
	}
	backups, err := client.Backups(ctx, api.BackupFilter{})
	if err != nil || len(backups) != 0 {
		t.Errorf("backups %+v, %v", backups, err)
	}
}

func TestRestartKeepsTasksAndStorages(t *testing.T) {
	c := config(t)
	c.Backup.MaxAttempts = 1
	a, stop := start(t, c)
	ready(t, a)
	task, err := api.NewClient(c.Admin.Socket).CreateBackup(t.Context(), api.CreateBackup{Database: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	cluster, epoch := a.group.ClusterID(), a.group.Epoch()
	stop()
	b, _ := start(t, c)
	ready(t, b)
	if b.group.ClusterID() != cluster || b.group.Epoch() <= epoch {
		t.Errorf("cluster %s epoch %d after cluster %s epoch %d", b.group.ClusterID(), b.group.Epoch(), cluster, epoch)
	}
	if got, err := api.NewClient(c.Admin.Socket).Task(t.Context(), task.ID); err != nil || got.ID != task.ID {
		t.Errorf("task after the restart: %+v, %v", got, err)
	}
}

// TestStorages: a storage of another group, one that lost its owner object, and another folder under a known name stop
// the node with a hint, and nothing is written there.
func TestStorages(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, c configs.Config)
		want  error
	}{
		{"foreign", func(t *testing.T, c configs.Config) {
			replaceOwner(t, c.Storages[1].Path, "cluster", strings.Repeat("ab", 16))
		}, storage.ErrForeign},
		{"not mounted", func(t *testing.T, c configs.Config) {
			if err := os.RemoveAll(filepath.Join(c.Storages[1].Path, "_fencepost")); err != nil {
				t.Fatal(err)
			}
		}, storage.ErrNoOwner},
		{"another", func(t *testing.T, c configs.Config) {
			replaceOwner(t, c.Storages[1].Path, "storage", strings.Repeat("cd", 16))
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := config(t)
			a, stop := start(t, c)
			ready(t, a)
			stop()
			test.spoil(t, c)
			before := tree(t, c.Storages[1].Path)
			b, _ := start(t, c)
			err := settled(t, b)
			if err == nil || !strings.Contains(err.Error(), "storage b") || HintOf(err, "") == "" || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("started with a bad storage: %v, hint %q", err, HintOf(err, ""))
			}
			if after := tree(t, c.Storages[1].Path); after != before {
				t.Errorf("the bad storage was changed:\n%s\n%s", before, after)
			}
		})
	}
}

// replaceOwner writes another value into the owner object's field.
func replaceOwner(t *testing.T, root, field, value string) {
	t.Helper()
	path := filepath.Join(root, "_fencepost", "owner.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte(`"`+field+`": "`)) + len(field) + 5
	copy(data[at:], value)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func tree(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %x\n", path, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestStartFailsWhole(t *testing.T) {
	c := config(t)
	taken, err := net.Listen("tcp", c.Cluster.Bind)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err == nil || !strings.Contains(HintOf(err, ""), "cluster.bind") {
		t.Errorf("a taken port: %v, hint %q", err, HintOf(err, ""))
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	b, _ := start(t, c) // the home and the other port were given back
	ready(t, b)
}

// TestGuardsOfTheCacheStore: the conditions of the embedded ledger are the log's own.
func TestGuardsOfTheCacheStore(t *testing.T) {
	a, _ := start(t, config(t))
	ready(t, a)
	ctx, s := t.Context(), components.Store(a.group)
	_, run := a.group.Self()
	claim, err := a.group.Claim(ctx, "backup", "task1", 1)
	if err != nil {
		t.Fatal(err)
	}
	held := embedded.Condition{Kind: embedded.ClaimHeld, Component: "backup", Item: "task1", Run: run, Token: claim.Token}
	other := hex.EncodeToString(make([]byte, 16))
	commit := func(c embedded.Condition) error {
		return s.Commit(ctx, embedded.Txn{Conditions: []embedded.Condition{c}, Puts: []embedded.Put{{Key: "task/task1", Value: []byte("x")}}})
	}
	for name, test := range map[string]struct {
		c     embedded.Condition
		holds bool
	}{
		"claim held":         {held, true},
		"claim, other token": {embedded.Condition{Kind: embedded.ClaimHeld, Component: "backup", Item: "task1", Run: run, Token: claim.Token - 1}, false},
		"run open":           {embedded.Condition{Kind: embedded.RunOpen, Run: run}, true},
		"run unknown":        {embedded.Condition{Kind: embedded.RunOpen, Run: other}, false},
		"fence not raised":   {embedded.Condition{Kind: embedded.FenceHeld, Component: "backup", Node: "n1", Run: other, Token: 1}, false},
		"absent key":         {embedded.Condition{Kind: embedded.VersionIs, Key: "task/none"}, true},
		"wrong version":      {embedded.Condition{Kind: embedded.VersionIs, Key: "task/none", Version: 7}, false},
	} {
		err := commit(test.c)
		var failed *embedded.ConditionError
		if test.holds && err != nil || !test.holds && (!errors.As(err, &failed) || failed.Condition != test.c) {
			t.Errorf("%s: %v", name, err)
		}
	}
	item, err := s.Get(ctx, "task/task1")
	if err != nil || string(item.Value) != "x" || item.Version == 0 {
		t.Errorf("read back %+v, %v", item, err)
	}
	if err := commit(embedded.Condition{Kind: embedded.VersionIs, Key: "task/task1", Version: item.Version}); err != nil {
		t.Errorf("compare and swap: %v", err)
	}
	list, err := s.List(ctx, "task/")
	if err != nil || len(list) != 1 || list[0].Key != "task/task1" {
		t.Errorf("list %+v, %v", list, err)
	}
}

func TestTranslate(t *testing.T) {
	for _, test := range []struct {
		err  error
		code api.Code
	}{
		{fmt.Errorf("x: %w", ledger.ErrNotFound), api.CodeNotFound},
		{fmt.Errorf("x: %w", ledger.ErrUnavailable), api.CodeUnavailable},
		{fmt.Errorf("x: %w", gms.ErrLeaseExpired), api.CodeLeaseLost},
		{fmt.Errorf("x: %w", &gms.HolderError{Node: "n2"}), api.CodeBusy},
		{hint(errors.New("x"), "do y"), api.CodeFailed},
	} {
		got := translate(test.err)
		if got == nil || got.Code != test.code {
			t.Errorf("%v: %+v, want %s", test.err, got, test.code)
		}
	}
	if got := translate(errors.New("x")); got != nil {
		t.Errorf("an unknown error became %+v", got)
	}
}
