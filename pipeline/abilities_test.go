package pipeline

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/processor"
)

func TestLacks(t *testing.T) {
	has := Abilities{
		Labels: []string{"big", "eu"}, Databases: map[string]int{"shop": 15, "old": 0}, Scratch: map[string]int{"spare": 14},
		Storages: []string{"a", "b"}, Away: []string{"b"},
	}
	for name, c := range map[string]struct {
		task ledger.Task
		want string
	}{
		"nothing":            {ledger.Task{Type: ledger.Create, Database: "shop", Storages: []string{"a"}}, ""},
		"its labels":         {ledger.Task{Type: ledger.Create, Database: "shop", Needs: ledger.Needs{Labels: []string{"eu", "big"}}}, ""},
		"another label":      {ledger.Task{Type: ledger.Create, Database: "shop", Needs: ledger.Needs{Labels: []string{"eu", "us"}}}, "has no label us"},
		"its programs":       {ledger.Task{Type: ledger.Restore, Database: "shop", Needs: ledger.Needs{Client: 15}}, ""},
		"newer programs":     {ledger.Task{Type: ledger.Restore, Database: "shop", Needs: ledger.Needs{Client: 16}}, "has client programs of version 15 at most, version 16 is needed"},
		"unknown programs":   {ledger.Task{Type: ledger.Create, Database: "old", Needs: ledger.Needs{Client: 16}}, ""},
		"another database":   {ledger.Task{Type: ledger.Create, Database: "books"}, "knows no database books"},
		"a scratch server":   {ledger.Task{Type: ledger.Verify, Database: "books", Scratch: "spare", Needs: ledger.Needs{Client: 15}}, "has client programs of version 14 at most, version 15 is needed"},
		"no scratch server":  {ledger.Task{Type: ledger.Verify, Database: "shop", Scratch: "shop"}, "knows no scratch server shop"},
		"bytes only":         {ledger.Task{Type: ledger.Verify, Database: "books", Storages: []string{"a"}}, ""},
		"another storage":    {ledger.Task{Type: ledger.Delete, Database: "books", Storages: []string{"a", "c"}}, "knows no storage c"},
		"enough storages":    {ledger.Task{Type: ledger.Create, Database: "shop", Storages: []string{"a", "b"}, Require: "any"}, ""},
		"enough it knows":    {ledger.Task{Type: ledger.Create, Database: "shop", Storages: []string{"a", "c"}, Require: "1"}, ""},
		"too few it knows":   {ledger.Task{Type: ledger.Create, Database: "shop", Storages: []string{"a", "c"}, Require: "2"}, "knows no storage c"},
		"too few storages":   {ledger.Task{Type: ledger.Create, Database: "shop", Storages: []string{"a", "b"}, Require: "all"}, "does not reach storage b"},
		"a storage far away": {ledger.Task{Type: ledger.Replicate, Database: "shop", Storages: []string{"b"}}, "does not reach storage b"},
		"all at once": {ledger.Task{Type: ledger.Create, Database: "books", Storages: []string{"c"}, Needs: ledger.Needs{Labels: []string{"us"}}},
			"knows no database books; knows no storage c; has no label us"},
	} {
		if got := strings.Join(has.Lacks(c.task), "; "); got != c.want {
			t.Errorf("%s: lacks %q, want %q", name, got, c.want)
		}
	}
}

// closing is a processor with a key that closes, and perhaps one that opens.
type closing struct {
	processor.Processor
	name  string
	opens bool
}

func (c closing) Name() string  { return c.name }
func (c closing) KitID() string { return "" }
func (c closing) Opens() bool   { return c.opens }

// TestNoIdentity: a node that has no key for what it makes itself is given no restore and no verification, and all else; of
// processors for older backups alone nothing is asked.
func TestNoIdentity(t *testing.T) {
	of := func(chain ...string) Abilities {
		known, err := processor.NewRegistry(closing{name: "lock"}, closing{name: "other", opens: true}, closing{name: "older"})
		if err != nil {
			t.Fatal(err)
		}
		return abilitiesOf(Catalog{Processors: known, Chain: chain}, nil)
	}
	for _, c := range []struct {
		has  Abilities
		kind ledger.TaskType
		want string
	}{
		{of("lock"), ledger.Restore, "has no key that opens what lock makes"}, {of("lock"), ledger.Verify, "has no key that opens what lock makes"},
		{of("lock"), ledger.Delete, ""}, {of("lock"), ledger.Replicate, ""}, {of("other"), ledger.Verify, ""}, {of(), ledger.Verify, ""},
	} {
		if got := strings.Join(c.has.Lacks(ledger.Task{Type: c.kind}), "; "); got != c.want && !(c.kind == ledger.Restore && strings.Contains(got, c.want)) {
			t.Errorf("%s, sealed %v: lacks %q, want %q", c.kind, c.has.Sealed, got, c.want)
		}
	}
	task := ledger.Task{ID: "t1", Type: ledger.Verify, State: ledger.Planned, Database: "shop"}
	if why := Waits(task, Around{Members: map[string]Abilities{"n1": of("lock"), "n2": of("other")}}); len(why) != 0 {
		t.Errorf("n2 could, and it waits: %q", why)
	}
	if why := Waits(task, Around{Members: map[string]Abilities{"n1": of("lock")}}); len(why) != 1 || why[0] != "n1 has no key that opens what lock makes" {
		t.Errorf("nobody could: %q", why)
	}
}

func TestWaits(t *testing.T) {
	shop := Abilities{Databases: map[string]int{"shop": 15}}
	labelled := Abilities{Databases: map[string]int{"shop": 15}, Labels: []string{"eu"}}
	task := ledger.Task{ID: "t2", Type: ledger.Create, State: ledger.Planned, Database: "shop", Flight: "create/shop", Needs: ledger.Needs{Labels: []string{"eu"}}}
	begun := ledger.Task{ID: "t1", Type: ledger.Create, State: ledger.Uploading, Flight: "create/shop"}
	for name, c := range map[string]struct {
		task   ledger.Task
		around Around
		want   []string
	}{
		"somebody can":      {task, Around{Members: map[string]Abilities{"n1": shop, "n2": labelled}}, nil},
		"nobody can":        {task, Around{Members: map[string]Abilities{"n2": {}, "n1": shop}}, []string{"n1 has no label eu", "n2 knows no database shop, and has no label eu"}},
		"one is not known":  {task, Around{Members: map[string]Abilities{"n1": shop}, Unknown: true}, nil},
		"nobody is there":   {task, Around{}, []string{"no member carries out tasks"}},
		"another has begun": {task, Around{Active: []ledger.Task{begun, task}, Members: map[string]Abilities{"n2": labelled}}, []string{"task t1 (create) has begun, and they go one at a time"}},
		"a busy server": {ledger.Task{ID: "t3", Type: ledger.Create, State: ledger.Planned, Database: "shop", Server: "h:1", MaxDumps: 1},
			Around{Active: []ledger.Task{{ID: "t1", Type: ledger.Create, State: ledger.Uploading, Server: "h:1"}}, Members: map[string]Abilities{"n1": shop}},
			[]string{"server h:1 makes as many dumps as it may: 1"}},
		"drained":             {task, Around{Members: map[string]Abilities{"n2": {}}, Drained: []string{"n3"}}, []string{"n2 knows no database shop, and has no label eu", "n3 is drained"}},
		"paused":              {task, Around{Paused: true, Members: map[string]Abilities{"n2": labelled}}, []string{"component backup is paused"}},
		"it has begun itself": {begun, Around{}, nil},
		"it is cancelled":     {ledger.Task{Type: ledger.Create, State: ledger.Planned, CancelBy: "ann"}, Around{}, nil},
	} {
		if got := Waits(c.task, c.around); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// labels gives a node labels.
func labels(l ...string) func(*Config) {
	return func(c *Config) {
		a := AbilitiesOf(context.Background(), c.Catalog, l)
		c.Abilities = func() Abilities { return a }
	}
}

// Of ten backups that need a label each is made by the one node of three that carries it.
func TestNeedsDecideWhoClaims(t *testing.T) {
	inRig(t, func(r *rig) {
		r.start("n1", nil, nil)
		r.start("n2", labels("eu"), nil)
		r.start("n3", labels("us"), nil)
		p := r.planner(func(c *PlannerConfig) { c.Labels = map[string][]string{"shop": {"eu"}} })
		for range 10 {
			task, err := p.PlanBackup(r.Context(), BackupRequest{Database: "shop"})
			r.must(err)
			if done := r.awaitState(task.ID, ledger.Completed); done.Node != "n2" || done.Attempt != 1 {
				r.Errorf("done by %s in attempt %d", done.Node, done.Attempt)
			}
		}
		_, err := p.PlanBackup(r.Context(), BackupRequest{Database: "shop", Labels: []string{strings.Repeat("x", 100)}})
		wantRequestError(r, err, "labels", "see labels")
	})
}

// A restore that nobody can do expires in its time, by whoever looks: it does not wait for ever. It names the programs
// that made the backup.
func TestARestoreThatNobodyCanDoExpires(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.version = "16.3"
		r.start("n1", nil, nil)
		made := r.awaitState(r.backup("all").ID, ledger.Completed)
		p := r.planner(nil)
		task, err := p.PlanRestore(r.Context(), RestoreRequest{Backup: made.Backup, Target: "copy", Labels: []string{"gpu"}})
		r.must(err)
		if task.Needs.Client != 16 {
			r.Errorf("needs %+v", task.Needs)
		}
		r.must(pause(r.Context(), 14*time.Minute))
		if row, err := r.led.Task(r.Context(), task.ID); err != nil || row.State != ledger.Planned || row.Attempt != 0 {
			r.Errorf("before its time: %+v, %v", row, err)
		}
		r.awaitState(task.ID, ledger.Failed)
		if _, there := r.server.get("copy"); there {
			r.Error("it was restored")
		}
		again, err := p.PlanBackup(r.Context(), BackupRequest{Database: "shop"})
		r.must(err)
		if again.Needs.Client != 16 {
			r.Errorf("the next backup needs %+v", again.Needs)
		}
	})
}
