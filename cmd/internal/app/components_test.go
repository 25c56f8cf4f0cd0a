package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// until looks again and again, at each change of the group and at least each 20 ms, until ok is true.
func until(t *testing.T, a *App, what string, ok func() bool) {
	t.Helper()
	limit := time.After(time.Minute)
	for !ok() {
		select {
		case <-a.group.Cache().Changed():
		case <-time.After(20 * time.Millisecond): // what is looked at has no channel of its own
		case <-limit:
			t.Fatalf("not in a minute: %s", what)
		}
	}
}

// A component of the host's own, by configuration: its program is run for the items that its trigger wants, and for no
// others; paused it is not; and a person can look at all of that.
func TestHostComponent(t *testing.T) {
	c := config(t)
	out := filepath.Join(t.TempDir(), "out")
	script := filepath.Join(t.TempDir(), "export")
	text := "#!/bin/sh\ncat >> " + out + "\necho >> " + out + "\ncase $WORK_ITEM in bad) echo no such thing >&2; exit 3;; esac\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	c.Components = []configs.Component{{
		Name: "export", Exec: script, Past: []string{"received"}, Future: []string{"export"}, Types: []string{"order"}, Procedure: 2, Simultaneous: 2,
		Every: time.Minute, Limit: time.Minute, Grace: time.Second, BackOff: time.Hour, QuarantineAfter: 1,
	}}
	a, _ := start(t, c)
	ready(t, a)
	ctx, client := t.Context(), api.NewClient(c.Admin.Socket)
	defer client.Close()
	for _, id := range []string{"o1", "o2", "bad"} {
		if _, err := client.PutItem(ctx, api.PutItem{Type: "order", ID: id, Data: json.RawMessage(`{"n":1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	it, err := api.Get[api.Item](ctx, client, api.ItemPath(api.ItemQuery{Component: "export"}, "o1"))
	if err != nil || it.Wanted || !slices.Contains(it.Why, "there is no received yet") {
		t.Errorf("before it was received: %+v, %v", it, err)
	}
	if paused, err := client.PauseComponent(ctx, "export", true); err != nil || !paused.Paused {
		t.Fatalf("pause: %+v, %v", paused, err)
	}
	for _, id := range []string{"o1", "bad"} {
		if _, err := client.AppendEvent(ctx, id, api.AppendEvent{Type: "received"}); err != nil {
			t.Fatal(err)
		}
	}
	if tick, err := client.RunComponent(ctx, "export"); err != nil || tick.Code != 3 || !strings.Contains(tick.Problem, "paused") {
		t.Errorf("a tick while paused: %+v, %v", tick, err)
	}
	if _, err := client.PauseComponent(ctx, "export", false); err != nil {
		t.Fatal(err)
	}
	event := func(id string) (e api.Event) {
		it, err := api.Get[api.Item](ctx, client, api.ItemPath(api.ItemQuery{Component: "export"}, id))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range it.Events {
			if x.Type == "export" {
				e = x
			}
		}
		return e
	}
	until(t, a, "both were worked on", func() bool { return event("o1").Type != "" && event("bad").Type != "" })
	if e := event("o1"); !e.Success || e.Token == 0 || e.Agent != "export@n1" {
		t.Errorf("event of o1: %+v", e)
	}
	if e := event("bad"); e.Success || !strings.Contains(e.Details, "no such thing") {
		t.Errorf("event of bad: %+v", e)
	}
	if e := event("o2"); e.Type != "" {
		t.Errorf("o2 was not received, and was exported: %+v", e)
	}
	if given, err := lookAside(ctx, a.work); err != nil || len(given) != 1 || given[0].Item != "bad" || given[0].Failures != 1 || !strings.Contains(given[0].Why, "no such thing") {
		t.Errorf("given up: %+v, %v", given, err)
	}
	given, err := os.ReadFile(out)
	if err != nil || strings.Count(string(given), `"id":"o1"`) != 1 || !strings.Contains(string(given), `"data":{"n":1}`) {
		t.Errorf("the program was given %s, %v", given, err)
	}
	if n, err := client.ForgetEvents(ctx, "bad", api.ForgetEvents{Type: "export"}); err != nil || n.Events != 1 {
		t.Errorf("forget: %+v, %v", n, err)
	}
	until(t, a, "it was tried anew", func() bool { return event("bad").Type != "" })
	until(t, a, "the component counts", func() bool {
		list, err := api.Get[[]api.Component](ctx, client, api.PathComponents)
		return err == nil && slices.ContainsFunc(list, func(c api.Component) bool { return c.Name == "export" && c.Done == 1 && c.Failed == 2 })
	})
	until(t, a, "no claim is left", func() bool { return len(a.group.Claims()) == 0 })
}

// What an operator may do with claims, and what not.
func TestClaimsByHand(t *testing.T) {
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	ctx, client := t.Context(), api.NewClient(c.Admin.Socket)
	defer client.Close()
	held, err := a.group.Claim(ctx, "backup", "t1", 1)
	if err != nil {
		t.Fatal(err)
	}
	name := api.ClaimName{Component: "backup", Item: "t1", Token: held.Token + 1}
	if _, err := client.FreeClaim(ctx, name); api.ExitCode(err) != api.ExitFailed {
		t.Errorf("free of another token: %v", err)
	}
	name.Token = held.Token
	if got, err := client.QuarantineClaim(ctx, name); err != nil || got.State != "quarantined" {
		t.Errorf("quarantine: %+v, %v", got, err)
	}
	list, err := api.Get[[]api.Claim](ctx, client, api.PathClaims)
	list = slices.DeleteFunc(list, func(c api.Claim) bool { return c.Component != "backup" })
	if err != nil || len(list) != 1 || list[0].State != "quarantined" {
		t.Errorf("claims: %+v, %v", list, err)
	}
}

// Three nodes, one of whose clocks is an hour ahead: the schedule makes what is due by the others' clocks, and
// nothing of the hour that has not come; no node does it twice. The others name the node, and nothing is pruned early: a
// deletion that can be undone for half an hour is not begun by the node for which that is over.
func TestScheduleUnderAWrongClock(t *testing.T) {
	base := config(t)
	var nodes []*App
	var seeds []string
	for i := range 3 {
		c := base
		c.Node, c.Home = fmt.Sprintf("n%d", i+1), filepath.Join(base.Home, fmt.Sprint(i))
		c.Bootstrap, c.Seeds = []string{"n1", "n2", "n3"}, slices.Clone(seeds)
		c.Gossip.Bind, c.Cluster.Bind = freeAddr(t), freeAddr(t)
		c.Admin.Socket = fmt.Sprintf("%s%d", base.Admin.Socket, i)
		c.Schedules = []configs.Schedule{{Name: "often", Kind: "backup", Database: "shop", Cron: "* * * * *", Overlap: "queue", MaxQueued: 1000}}
		seeds = append(seeds, c.Gossip.Bind)
		a, err := New(c, "test", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			a.clock.wall = func() time.Time { return time.Now().Add(time.Hour) }
		}
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := a.Stop(ctx); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
		nodes = append(nodes, a)
	}
	for _, a := range nodes {
		ready(t, a)
	}
	wrong := nodes[2]
	until(t, wrong, "the wrong clock is noticed", func() bool { return wrong.clock.problem() != "" && wrong.clock.Settled() })
	for _, a := range nodes {
		if off := time.Until(a.clock.Now()).Abs(); off > 5*time.Second {
			t.Errorf("the group's time at %s is off by %s", a.cfg.Node, off)
		}
	}
	plan := func(a *App) pipeline.Planned {
		all, err := a.work.scheduler.Schedules(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		return all[0].Planned
	}
	until(t, wrong, "the schedule was looked at", func() bool { return !plan(wrong).Wake.IsZero() })
	if p := plan(wrong); time.Until(p.Wake) > 2*time.Minute || time.Until(p.Seen) > time.Second {
		t.Errorf("decided by the wrong clock: %+v", p)
	}
	tasks, err := wrong.work.ledger.Tasks(t.Context(), ledger.TaskFilter{})
	if err != nil || len(tasks) > 2 {
		t.Errorf("%d tasks in less than two minutes, %v", len(tasks), err)
	}
	until(t, nodes[0], "n1 names the node whose clock is wrong", func() bool {
		return slices.ContainsFunc(nodes[0].othersAlarms(), func(x api.Alarm) bool {
			return x.Kind == "clock" && x.From == "n3" && strings.Contains(x.Text, "ahead of the group's")
		})
	})
	undoable := ledger.Task{ID: "d1", Type: ledger.Delete, RunType: ledger.Internal, State: ledger.Planned, Created: time.Now().UTC(), MaxAttempts: 3,
		OnFailure: "rerun", Backup: "b1", Database: "shop", Storages: []string{"a"}, Flight: "backup/b1", NotBefore: time.Now().Add(30 * time.Minute).UTC()}
	if err := wrong.work.ledger.Plan(t.Context(), undoable); err != nil {
		t.Fatal(err)
	}
	until(t, wrong, "the wrong node has looked for deletions", func() bool { // another one may have the poll lock
		tick := wrong.work.runners["delete"].RunOnce(t.Context())
		if tick.Claimed > 0 {
			t.Fatalf("it has begun one: %+v", tick)
		}
		return tick.Err == nil
	})
	if task, err := wrong.work.ledger.Task(t.Context(), "d1"); err != nil || task.State != ledger.Planned || task.Attempt != 0 {
		t.Errorf("a deletion that can be undone: %+v, %v", task, err)
	}
}
