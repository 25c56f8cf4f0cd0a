package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// applied runs fencepost apply and gives its answer.
func (c *cluster) applied(by string, args ...string) (out api.AppliedSettings) {
	c.t.Helper()
	s := run(c.t, command, append([]string{"--socket", c.socket(by), "apply", "-o", "json"}, args...)...)
	if s.code != 0 || json.Unmarshal([]byte(s.out), &out) != nil {
		c.t.Fatalf("apply %q: %+v", args, s)
	}
	return out
}

// settingsFile writes a file of a directory of settings.
func (c *cluster) settingsFile(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, "settings", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// known is a database as a node knows it; ok is false when it does not.
func (c *cluster) known(by, name string) (d api.Database, ok bool) {
	all, err := c.client(by).Databases(c.ctx)
	if err != nil {
		return d, false
	}
	i := slices.IndexFunc(all, func(d api.Database) bool { return d.Name == name })
	if i < 0 {
		return d, false
	}
	return all[i], true
}

// TestServersOwnDatabases: storages and a server that only the group's settings name. Its databases are found, scheduled and
// backed up on whichever node; a new one too; one that is gone alarms on every node and keeps its backups. What was exported
// is no change when it is applied, and a node that was away knows all of it when it comes back.
func TestServersOwnDatabases(t *testing.T) {
	t.Parallel()
	server := pg.Server(t)
	prefix := fmt.Sprintf("own%d_", os.Getpid())
	for _, name := range []string{"shop", "books"} {
		server.NamedDatabase(t, prefix+name)
	}
	server.Exec(t, prefix+"shop", bulk("goods", 1))
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"own": database(t)}})
	c.up()
	dsn := filepath.Join(c.dir, "pg.dsn")
	if err := os.WriteFile(dsn, []byte(server.DSN("postgres")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.settingsFile("places.yaml", "storages:\n- {name: shared, kind: local, path: "+c.dir+"/shared}\n")
	if err := os.Mkdir(filepath.Join(c.dir, "shared"), 0o700); err != nil {
		t.Fatal(err)
	}
	one := "servers:\n- name: pg\n  dsn: file:" + dsn + "\n  include: [\"" + prefix + "*\"]\n  max_dumps: 1\n  schedule: {cron: \"0 3 * * *\", storages: [shared], spread: 2h}\n  retention: {last: 3}\n"
	c.settingsFile("servers.yaml", one)
	dir := filepath.Join(c.dir, "settings")

	if plan := c.applied("n1", "-f", dir, "--plan"); len(plan.Changes) != 2 || plan.Version != 0 {
		t.Fatalf("plan: %+v", plan)
	}
	if done := c.applied("n1", "-f", dir); len(done.Changes) != 2 || done.Version != 1 {
		t.Fatalf("apply: %+v", done)
	}
	if again := c.applied("n2", "-f", dir, "--prune"); len(again.Changes) != 0 || again.Same != 2 {
		t.Fatalf("the same again: %+v", again)
	}
	shop, books := "pg."+prefix+"shop", "pg."+prefix+"books"
	for _, node := range c.names {
		c.until(node+" knows the databases of the server", func() bool {
			a, ok1 := c.known(node, shop)
			_, ok2 := c.known(node, books)
			return ok1 && ok2 && a.From == api.FromServer && len(a.Schedules) == 1 && a.Retained && a.MaxDumps == 1
		})
	}
	made := func(name string) {
		t.Helper()
		if s := run(t, command, "--socket", c.socket("n2"), "schedule", "run", name, "--wait"); s.code != 0 {
			t.Fatalf("%s: %+v", name, s)
		}
	}
	made(shop)
	made(books)
	backups := func(name string) []api.Backup {
		t.Helper()
		list, err := c.client("n2").Backups(c.ctx, api.BackupFilter{Database: name}) // who waited for them
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := backups(shop); len(got) != 1 || len(got[0].Storages) != 1 || got[0].Storages[0].Storage != "shared" {
		t.Errorf("backups: %+v", got)
	}

	// A new database is backed up by its server's policy from tonight on.
	server.NamedDatabase(t, prefix+"New")
	if s := run(t, command, "--socket", c.socket("n3"), "server", "look", "pg"); s.code != 0 {
		t.Fatalf("look: %+v", s)
	}
	var fresh string
	c.until("the node that will run it knows the schedule of the new database", func() bool {
		all, err := api.Get[[]api.Schedule](c.ctx, c.client("n2"), api.PathSchedules)
		if err != nil {
			return false
		}
		i := slices.IndexFunc(all, func(s api.Schedule) bool { return strings.Contains(s.Name, strings.ToLower(prefix)+"new.") })
		if i >= 0 {
			fresh = all[i].Name
		}
		return i >= 0 && len(all[i].Next) > 0 && time.Until(all[i].Next[0].Start) <= 26*time.Hour
	})
	made(fresh)

	// One that is gone alarms, and keeps its backups.
	server.Exec(t, "postgres", "DROP DATABASE "+prefix+"books")
	if s := run(t, command, "--socket", c.socket("n1"), "server", "look", "pg"); s.code != 0 {
		t.Fatalf("look: %+v", s)
	}
	for _, node := range c.names {
		c.until(node+" alarms about the database that is gone", func() bool {
			o, err := c.client(node).Overview(c.ctx)
			return err == nil && slices.ContainsFunc(o.Alarms, func(a api.Alarm) bool { return a.Kind == "vanished" && a.About == books })
		})
	}
	if d, ok := c.known("n2", books); !ok || d.Gone == nil || len(d.Schedules) != 0 || d.Retained {
		t.Errorf("gone: %+v", d)
	}
	if len(backups(books)) != 1 {
		t.Error("the backups of a database that is gone are gone")
	}
	s := run(t, command, "--socket", c.socket("n2"), "restore", books, "--as", prefix+"back", "--yes", prefix+"back", "--wait")
	if s.code != 0 {
		t.Fatalf("restore of a database that is gone: %+v", s)
	}
	server.Exec(t, "postgres", "DROP DATABASE "+prefix+"back")

	// A name is in one place.
	c.settingsFile("taken.yaml", "databases:\n- {name: own, dsn: env:OWN}\n")
	run(t, command, "--socket", c.socket("n1"), "apply", "-f", dir).complains(t, 1, "database own is in the file of node")
	if err := os.Remove(filepath.Join(dir, "taken.yaml")); err != nil {
		t.Fatal(err)
	}

	// What was exported is no change, also for a node that was away.
	c.kill("n3")
	c.start("n3")
	c.ready("n3")
	out := filepath.Join(c.dir, "exported")
	if s := run(t, command, "--socket", c.socket("n3"), "export", "-f", out); s.code != 0 {
		t.Fatalf("export: %+v", s)
	}
	if again := c.applied("n3", "-f", out, "--prune"); len(again.Changes) != 0 {
		t.Errorf("what was exported: %+v", again)
	}
	c.until("the node that was away knows the databases", func() bool { _, ok := c.known("n3", fresh); return ok })

	// Without the server its databases are nobody's, and their backups stay.
	c.settingsFile("servers.yaml", "servers: []\n")
	if gone := c.applied("n2", "-f", dir, "--prune"); len(gone.Changes) != 1 || gone.Changes[0].Change != api.SettingRemoved {
		t.Fatalf("prune: %+v", gone)
	}
	for _, node := range c.names {
		c.until(node+" knows the server's databases no more", func() bool {
			all, err := c.client(node).Databases(c.ctx)
			return err == nil && len(all) == 1
		})
	}
	if len(backups(shop)) != 1 || len(backups(books)) != 1 || len(backups(fresh)) != 1 {
		t.Error("backups went with the settings")
	}
	c.clean("n1", "a", "b", "shared")
}

// TestTwoHundredDatabases: twenty servers of ten databases each, all due in the same minute. Every one has its backup, no
// server makes more dumps at the same time than it may, starts are spread, and applying it all again changes nothing.
func TestTwoHundredDatabases(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (two hundred databases)")
	}
	const servers, each, most = 20, 10, 2
	var addresses []string
	for i := range servers {
		addresses = append(addresses, fmt.Sprintf("127.0.0.%d", i+1))
	}
	server := pgtest.New(t, pgtest.Options{Settings: map[string]string{"listen_addresses": strings.Join(addresses, ",")}})
	const prefix = "many_"
	for i := range servers {
		for j := range each {
			server.NamedDatabase(t, fmt.Sprintf("%s%02d_%d", prefix, i, j))
		}
	}
	c := newCluster(t, options{nodes: 3, profile: "patient", watched: true, lasting: 40 * time.Minute, extra: "backup: {max_concurrent: 8}\n", level: "info"})
	c.up()
	if err := os.Mkdir(filepath.Join(c.dir, "shared"), 0o700); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "storages:\n- {name: shared, kind: local, path: %s/shared}\nservers:\n", c.dir)
	for i := range servers {
		// The servers are one; another address of it is another server to max_dumps.
		file := filepath.Join(c.dir, fmt.Sprintf("pg%02d.dsn", i))
		if err := os.WriteFile(file, []byte(strings.Replace(server.DSN("postgres"), "127.0.0.1", addresses[i], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "- {name: pg%02d, dsn: \"file:%s\", include: [\"%s%02d_*\"], max_dumps: %d, schedule: {cron: \"@hourly\", spread: 1m, missed: skip, storages: [shared]}}\n", i, file, prefix, i, most)
	}
	c.settingsFile("all.yaml", text.String())
	began := time.Now()
	if done := c.applied("n1", "-f", filepath.Join(c.dir, "settings")); len(done.Changes) != servers+1 {
		t.Fatalf("apply: %d changes", len(done.Changes))
	}
	for _, node := range c.names {
		c.until(node+" knows all databases", func() bool {
			all, err := c.client(node).Databases(c.ctx)
			return err == nil && len(all) == servers*each
		})
	}
	t.Logf("all nodes knew %d databases of %d servers after %s", servers*each, servers, time.Since(began).Round(time.Millisecond))
	schedules, err := api.Get[[]api.Schedule](c.ctx, c.client("n2"), api.PathSchedules)
	if err != nil || len(schedules) != servers*each {
		t.Fatalf("%d schedules, %v", len(schedules), err)
	}
	starts := map[time.Time]int{}
	for _, s := range schedules {
		starts[s.Next[0].Start]++
	}
	if len(starts) < 20 {
		t.Errorf("%d schedules begin at %d moments", len(schedules), len(starts))
	}
	began = time.Now()
	var all sync.WaitGroup
	turn := make(chan struct{}, 2)
	for i, s := range schedules {
		all.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			for c.ctx.Err() == nil { // on a busy machine the group may say "not now": who asks asks again
				_, err := c.client(c.names[i%3]).RunSchedule(c.ctx, s.Name)
				var said *api.Error
				if err == nil {
					return
				}
				if !errors.As(err, &said) || said.Code != api.CodeUnavailable {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d backups were planned in %s", len(schedules), time.Since(began).Round(time.Millisecond))
	highest := 0
	c.until("every database has its backup", func() bool {
		active, err := c.client("n1").Tasks(c.ctx, api.TaskFilter{Active: true, Internal: true})
		if err != nil {
			return false
		}
		running, busy := map[string]int{}, 0
		for _, task := range active {
			if task.State != "planned" && task.Type == "create" {
				running[strings.SplitN(task.Database, ".", 2)[0]]++
				busy++
			}
		}
		for name, n := range running {
			if n > most {
				t.Errorf("server %s makes %d dumps at the same time", name, n)
			}
		}
		highest = max(highest, busy)
		return len(active) == 0
	})
	took := time.Since(began)
	for _, s := range schedules {
		list, err := c.client("n3").Backups(c.ctx, api.BackupFilter{Database: s.Database, Limit: 1})
		if err != nil || len(list) != 1 || list[0].State != "completed" {
			t.Errorf("%s: %+v, %v", s.Database, list, err)
		}
	}
	t.Logf("%d backups took %s, %d of them at the same time at most", len(schedules), took.Round(time.Second), highest)
	began = time.Now()
	if _, err := c.client("n1").Overview(c.ctx); err != nil {
		t.Error(err)
	}
	t.Logf("an overview of them took %s", time.Since(began).Round(time.Millisecond))
	if again := c.applied("n2", "-f", filepath.Join(c.dir, "settings"), "--prune"); len(again.Changes) != 0 {
		t.Errorf("the same again: %+v", again)
	}
}
