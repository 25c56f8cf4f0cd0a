package main

import (
	"context"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	node "github.com/fencepost/fencepost/cmd/internal/app"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// daemon is a node of its own with one database and one storage; it returns a client and its gossip address.
func daemon(t *testing.T, dsn string) (*api.Client, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	shelf := filepath.Join(dir, "shelf")
	if err := os.Mkdir(shelf, 0o700); err != nil {
		t.Fatal(err)
	}
	c := configs.Default()
	c.Node, c.Home, c.Profile = "n1", filepath.Join(dir, "home"), "lan"
	c.Gossip.Bind, c.Cluster.Bind, c.Admin.Socket = freeAddress(t), freeAddress(t), filepath.Join(dir, "sock")
	c.Databases = []configs.Database{{Name: "shop", DSN: configs.NewDSN(dsn)}}
	c.Storages = []configs.Storage{{Name: "shelf", Kind: "local", Path: shelf}}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	a, err := node.New(c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := a.Stop(ctx); err != nil {
			t.Errorf("stop the daemon: %v", err)
		}
	})
	client := api.NewClient(c.Admin.Socket)
	t.Cleanup(client.Close)
	return client, c.Gossip.Bind
}

// A step of a stranger's module, the README's, is a member of the daemon's group: it exports a table after each backup, once,
// and when the one that does so is killed, another does.
func TestOutsideComponent(t *testing.T) {
	server := pg.Server(t)
	dsn := server.Database(t)
	named, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	database := strings.TrimPrefix(named.Path, "/")
	server.Exec(t, database, `CREATE TABLE orders (customer text, total int); INSERT INTO orders VALUES ('ann', 12), ('bob', 30)`)
	bin, err := pgtest.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	module := outside(t)
	goTool(t, module, "vet", "./export")
	program := filepath.Join(module, "export-orders")
	goTool(t, module, "build", "-o", program, "./export")

	client, address := daemon(t, dsn)
	out := t.TempDir()
	exporters := map[string]*process{}
	for _, name := range []string{"csv1", "csv2"} {
		p := &process{}
		p.cmd = exec.CommandContext(t.Context(), program, name, filepath.Join(t.TempDir(), "home"), address)
		p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = out, p, p
		p.cmd.Env = append(os.Environ(), "PGHOST=127.0.0.1", "PGPORT="+strconv.Itoa(server.Port), "PGUSER="+pgtest.Superuser,
			"PGPASSWORD="+server.Password, "PGDATABASE="+database)
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s says: %s", name, p.log.String())
			}
		})
		exporters[name] = p
	}
	first := exported(t, client, out)
	victim := strings.TrimPrefix(first, "csv@")
	if err := exporters[victim].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = exporters[victim].cmd.Wait() // killed
	delete(exporters, victim)
	if second := exported(t, client, out); second == first {
		t.Errorf("exported by %s, which is dead", second)
	}
	for name, p := range exporters {
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%s, told to end: %v: %s", name, err, p.log.String())
		}
	}
}

// exported makes a backup, waits for what follows it, and tells who has done that.
func exported(t *testing.T, client *api.Client, dir string) (agent string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	task, err := client.CreateBackup(ctx, api.CreateBackup{Database: "shop"})
	for api.ExitCode(err) != api.ExitOK { // the daemon comes up, or the group has just lost a member
		select {
		case <-again.C:
			task, err = client.CreateBackup(ctx, api.CreateBackup{Database: "shop"})
		case <-ctx.Done():
			t.Fatalf("no backup: %v", err)
		}
	}
	if task, err = client.WaitTask(ctx, task.ID, nil); err != nil || task.State != "completed" {
		t.Fatalf("backup: %+v, %v", task, err)
	}
	for {
		it, err := api.Get[api.Item](ctx, client, api.ItemPath(api.ItemQuery{}, task.Backup))
		if err == nil && len(it.Events) == 2 && it.Events[1].Success {
			got, err := os.ReadFile(filepath.Join(dir, task.Backup+".csv"))
			if err != nil || string(got) != "customer,total\nann,12\nbob,30\n" {
				t.Errorf("exported: %q, %v", got, err)
			}
			return it.Events[1].Agent
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("not exported: %+v, %v", it, err)
		}
	}
}
