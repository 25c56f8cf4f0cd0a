package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
	"github.com/fencepost/fencepost/configs"
)

func at() time.Time { return time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC) }

func newKeeper(edit func(*Config)) (*Keeper, *kept.Memory) {
	store := &kept.Memory{}
	c := Config{Store: store, Now: at}
	if edit != nil {
		edit(&c)
	}
	return New(c), store
}

func setting(kind, name, spec string) api.Setting {
	return api.Setting{Kind: kind, Name: name, Spec: json.RawMessage(spec)}
}

func usual() []api.Setting {
	return []api.Setting{
		setting("storage", "disk", `{"name":"disk","kind":"local","path":"/srv/backups"}`),
		setting("server", "pg1", `{"name":"pg1","dsn":"env:PG1","max_dumps":2,"schedule":{"cron":"@daily","storages":["disk"]},"retention":{"last":3}}`),
		setting("database", "shop", `{"name":"shop","dsn":"env:SHOP"}`),
		setting("schedule", "nightly", `{"name":"nightly","database":"shop","cron":"@daily"}`),
		setting("retention", "shop", `{"database":"shop","daily":7}`),
	}
}

// changed says what was changed, shortly.
func changed(a api.AppliedSettings) string {
	var out []string
	for _, c := range a.Changes {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.Change, c.Kind, c.Name, strings.Join(c.Keys, ","))))
	}
	return fmt.Sprintf("%d: %s; %d same, %d left", a.Version, strings.Join(out, "; "), a.Same, a.Left)
}

func want(t *testing.T, got api.AppliedSettings, err error, text string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if changed(got) != text {
		t.Errorf("%s\nwant %s", changed(got), text)
	}
}

// TestApply: all or nothing, twice is once, what is not named stays but with prune, and a plan is only that.
func TestApply(t *testing.T) {
	k, store := newKeeper(nil)
	ctx := t.Context()
	all := api.ApplySettings{Settings: usual()}
	const added = "add storage disk; add server pg1; add database shop; add schedule nightly; add retention shop; 0 same, 0 left"
	got, err := k.Plan(ctx, all)
	want(t, got, err, "0: "+added)
	if r := store.Local(HeadKey); r.Version != 0 {
		t.Fatal("a plan was kept")
	}
	got, err = k.Apply(ctx, all)
	want(t, got, err, "1: "+added)
	got, err = k.Apply(ctx, all)
	want(t, got, err, "1: ; 5 same, 0 left")
	export, err := k.Settings(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got, err = k.Apply(ctx, api.ApplySettings{Settings: export.Settings, Prune: true})
	want(t, got, err, "1: ; 5 same, 0 left")

	spelled := setting("database", "shop", `{"rpo":"26h0m0s","dsn":"env:SHOP","jobs":0,"name":"shop","needs":[]}`) // defaults that are said are the same
	got, err = k.Apply(ctx, api.ApplySettings{Settings: []api.Setting{spelled}})
	want(t, got, err, "1: ; 1 same, 4 left")
	other := setting("database", "shop", `{"name":"shop","dsn":"env:OTHER","jobs":4}`)
	got, err = k.Apply(ctx, api.ApplySettings{Settings: []api.Setting{other}, Version: 1})
	want(t, got, err, "2: change database shop dsn,jobs; 0 same, 4 left")
	got, err = k.Apply(ctx, api.ApplySettings{Settings: []api.Setting{setting("storage", "disk", `{"name":"disk","kind":"local","path":"/srv/backups"}`)}, Prune: true})
	want(t, got, err, "3: remove server pg1; remove database shop; remove schedule nightly; remove retention shop; 1 same, 0 left")
}

// TestRefused: what makes no sense changes nothing, and says why.
func TestRefused(t *testing.T) {
	busy := &api.Error{Code: api.CodeBusy, Message: "task t1 is at work with it"}
	k, _ := newKeeper(func(c *Config) {
		c.Taken = func() map[string]string { return map[string]string{"database here": "n2"} }
		c.Busy = func(_ context.Context, kind, name string) error {
			if kind == "storage" {
				return busy
			}
			return nil
		}
	})
	if _, err := k.Apply(t.Context(), api.ApplySettings{Settings: usual()}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code api.Code
		want string
		ask  api.ApplySettings
	}{
		{api.CodeUsage, `retention lost: database: is "lost", which is none of databases`, api.ApplySettings{Settings: []api.Setting{setting("retention", "lost", `{"database":"lost","last":1}`)}}},
		{api.CodeUsage, "database x.dns: unknown key", api.ApplySettings{Settings: []api.Setting{setting("database", "x", `{"name":"x","dns":"env:X"}`)}}},
		{api.CodeUsage, "its spec has another name", api.ApplySettings{Settings: []api.Setting{setting("database", "x", `{"name":"y","dsn":"env:X"}`)}}},
		{api.CodeUsage, "database x is there twice", api.ApplySettings{Settings: []api.Setting{setting("database", "x", `{"name":"x","dsn":"env:X"}`), setting("database", "x", `{"name":"x","dsn":"env:X"}`)}}},
		{api.CodeUsage, "holds a password", api.ApplySettings{Settings: []api.Setting{setting("database", "x", `{"name":"x","dsn":"postgres://u:hush@h/d"}`)}}},
		{api.CodeUsage, "is of no known kind", api.ApplySettings{Settings: []api.Setting{setting("shelf", "x", `{}`)}}},
		{api.CodeConflict, "database here is in the file of node n2", api.ApplySettings{Settings: []api.Setting{setting("database", "here", `{"name":"here","dsn":"env:X"}`)}}},
		{api.CodeConflict, "of version 1, not 7", api.ApplySettings{Settings: usual(), Version: 7}},
		{api.CodeUsage, `server pg1: schedule.storages[0]: is "disk"`, api.ApplySettings{Settings: usual()[1:], Prune: true}},
		{api.CodeBusy, "task t1 is at work", api.ApplySettings{Settings: usual()[2:], Prune: true}},
	} {
		_, err := k.Apply(t.Context(), c.ask)
		var e *api.Error
		if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(e.Message, c.want) || strings.Contains(e.Message, "hush") {
			t.Errorf("%v, want %s %s", err, c.code, c.want)
		}
	}
	if _, err := k.Remove(t.Context(), "database", "lost"); err == nil || err.(*api.Error).Code != api.CodeNotFound {
		t.Error(err)
	}
	if _, err := k.Remove(t.Context(), "database", "shop"); err == nil || !strings.Contains(err.Error(), "schedule nightly: database") {
		t.Errorf("what another names was removed: %v", err)
	}
	got, err := k.Remove(t.Context(), "schedule", "nightly")
	want(t, got, err, "2: remove schedule nightly; 4 same, 0 left")
}

// TestTwoAtOnce: of two who change settings at the same time both get what they wanted.
func TestTwoAtOnce(t *testing.T) {
	k, _ := newKeeper(nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := fmt.Sprint("d", i)
			if _, err := k.Apply(context.Background(), api.ApplySettings{Settings: []api.Setting{setting("database", name, `{"name":"`+name+`","dsn":"env:X"}`)}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := k.Settings(t.Context())
	if err != nil || len(got.Settings) != 8 || got.Version != 8 {
		t.Errorf("%d settings of version %d, %v", len(got.Settings), got.Version, err)
	}
}

// TestSeen: of two who have opened the same setting the second is told of what the first has done, and undoes nothing of it;
// how the JSON was written makes no difference, nor does what became of other settings.
func TestSeen(t *testing.T) {
	k, _ := newKeeper(nil)
	shop := func(spec, tag string) error {
		_, err := k.Apply(t.Context(), api.ApplySettings{Settings: []api.Setting{setting("database", "shop", spec)}, Seen: []api.SeenSetting{{Kind: "database", Name: "shop", Tag: tag}}})
		return err
	}
	refused := func(err error, says string) {
		t.Helper()
		var e *api.Error
		if !errors.As(err, &e) || e.Code != api.CodeConflict || !strings.Contains(e.Message, says) {
			t.Errorf("%v, and it should say %q", err, says)
		}
	}
	const first, second = `{"name":"shop","dsn":"env:SHOP"}`, `{"name":"shop","dsn":"env:A&B"}`
	refused(shop(first, api.SpecTag([]byte(first))), "was removed")
	if err := shop(first, api.NoSetting); err != nil {
		t.Fatal(err)
	}
	refused(shop(second, api.NoSetting), "there is a database shop already")
	seen := api.SpecTag([]byte(` { "dsn": "env:SHOP", "name": "shop" } `))
	if _, err := k.Apply(t.Context(), api.ApplySettings{Settings: []api.Setting{setting("storage", "disk", `{"name":"disk","kind":"local","path":"/srv/backups"}`)}}); err != nil {
		t.Fatal(err)
	}
	if err := shop(second, seen); err != nil {
		t.Fatal(err)
	}
	refused(shop(`{"name":"shop","dsn":"env:OTHER"}`, seen), "somebody has changed database shop")
	if err := shop(first, api.SpecTag([]byte(`{"name":"shop","dsn":"env:A\u0026B"}`))); err != nil {
		t.Error(err)
	}
}

// TestAnything: whatever was there, after an apply with prune there is what was asked for, and a plan has said so.
func TestAnything(t *testing.T) {
	draw := func(t *rapid.T, label string) []api.Setting {
		var list []api.Setting
		for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 6, rapid.ID[int]).Draw(t, label) {
			list = append(list, setting("database", fmt.Sprint("d", n), fmt.Sprintf(`{"name":"d%d","dsn":"env:X%d"}`, n, rapid.IntRange(0, 1).Draw(t, "dsn"))))
		}
		return list
	}
	rapid.Check(t, func(t *rapid.T) {
		k, _ := newKeeper(nil)
		for i := range 3 {
			ask := api.ApplySettings{Settings: draw(t, fmt.Sprint("set", i)), Prune: true}
			plan, err1 := k.Plan(t.Context(), ask)
			done, err2 := k.Apply(t.Context(), ask)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if d := cmp.Diff(plan.Changes, done.Changes); d != "" {
				t.Fatal(d)
			}
			now, err := k.Settings(t.Context())
			if err != nil || len(now.Settings) != len(ask.Settings) {
				t.Fatalf("%d settings, want %d, %v", len(now.Settings), len(ask.Settings), err)
			}
			again, err := k.Apply(t.Context(), ask)
			if err != nil || len(again.Changes) != 0 {
				t.Fatal(again, err)
			}
		}
	})
}

// TestFound: new databases are known from then on, those that are gone alarm until they are forgotten or back, and a server
// that does not answer changes nothing of them.
func TestFound(t *testing.T) {
	k, _ := newKeeper(nil)
	ctx := t.Context()
	if _, err := k.Apply(ctx, api.ApplySettings{Settings: usual()}); err != nil {
		t.Fatal(err)
	}
	note := func(names []string, problem error) State {
		t.Helper()
		if err := k.Note(ctx, "pg1", "n1", names, problem); err != nil {
			t.Fatal(err)
		}
		s, err := k.State(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	shown := func(s State) string {
		var out []string
		for _, f := range s.Found {
			text := f.Name()
			if !f.Gone.IsZero() {
				text += " gone"
			}
			out = append(out, text)
		}
		for _, a := range s.Alarms() {
			out = append(out, a.Kind+":"+a.About)
		}
		return strings.Join(out, ", ")
	}
	for i, c := range []struct {
		names []string
		err   error
		want  string
	}{
		{[]string{"a", "b", "postgres", "a__fp_7_ab"}, nil, "pg1.a, pg1.b"},
		{nil, errors.New("connection refused"), "pg1.a, pg1.b, server:pg1"},
		{[]string{"a", "c"}, nil, "pg1.a, pg1.b gone, pg1.c, vanished:pg1.b"},
		{[]string{"a", "b", "c"}, nil, "pg1.a, pg1.b, pg1.c"},
		{[]string{"a"}, nil, "pg1.a, pg1.b gone, pg1.c gone, vanished:pg1.b, vanished:pg1.c"},
	} {
		if got := shown(note(c.names, c.err)); got != c.want {
			t.Errorf("look %d: %s, want %s", i, got, c.want)
		}
	}
	for name, code := range map[string]api.Code{"pg1.a": api.CodeConflict, "pg1.x": api.CodeNotFound} {
		var e *api.Error
		if err := k.Forget(ctx, name); !errors.As(err, &e) || e.Code != code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := k.Forget(ctx, "pg1.b"); err != nil {
		t.Fatal(err)
	}
	usual := usual()
	usual[1].Spec = json.RawMessage(`{"name":"pg1","dsn":"env:PG1","exclude":["c*"]}`)
	if _, err := k.Apply(ctx, api.ApplySettings{Settings: usual}); err != nil {
		t.Fatal(err)
	}
	if got := shown(note([]string{"a"}, nil)); got != "pg1.a" {
		t.Errorf("what is not wanted any more is known: %s", got)
	}
	if err := k.Note(ctx, "pg9", "n1", []string{"x"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Remove(ctx, "server", "pg1"); err != nil {
		t.Fatal(err)
	}
	s, err := k.State(ctx)
	if err != nil || len(s.Found) != 0 || len(s.Looks) != 0 || len(s.Alarms()) != 0 {
		t.Errorf("what was known of a server stays: %+v, %v", s, err)
	}
}

// TestOfALaterVersion: what is not understood is told of and left alone, and the rest counts.
func TestOfALaterVersion(t *testing.T) {
	k, store := newKeeper(nil)
	if _, err := k.Apply(t.Context(), api.ApplySettings{Settings: usual()}); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		onePrefix + "gate/x": `{"format":1,"spec":{}}`, onePrefix + "database/y": `{"format":1,"spec":{"name":"y","dsn":"env:Y","colour":"red"}}`, onePrefix + "database/z": `{"format":2}`,
	} {
		if err := store.Commit(t.Context(), kept.Put(key, json.RawMessage(value), 0)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := k.State(t.Context())
	if err != nil || len(s.Problems) != 3 || len(s.Settings.Objects()) != 5 {
		t.Fatalf("%d problems, %d objects, %v", len(s.Problems), len(s.Settings.Objects()), err)
	}
	if _, err := k.Apply(t.Context(), api.ApplySettings{Prune: true}); err == nil || !strings.Contains(err.Error(), "does not understand") {
		t.Errorf("settings of a later version were changed: %v", err)
	}
	if cfg, problems := (&configs.Config{}).With(s.Settings); len(problems) != 0 || len(cfg.Databases) != 1 {
		t.Error(problems, cfg.Databases)
	}
}

// TestBeforeAnUpgradeIsFinalized: a setting that came with a later protocol than the group writes is refused, with its name, also
// when it is only planned; what is there already may be removed.
func TestBeforeAnUpgradeIsFinalized(t *testing.T) {
	writes := uint32(1)
	k, store := newKeeper(func(c *Config) { c.Writes = func() uint32 { return writes } })
	if _, err := k.Apply(t.Context(), api.ApplySettings{Settings: usual()}); err != nil {
		t.Fatal(err)
	}
	writes = 0 // as if all that there is came later
	more := api.ApplySettings{Settings: []api.Setting{setting("database", "books", `{"name":"books","dsn":"env:BOOKS"}`)}}
	for what, do := range map[string]func(context.Context, api.ApplySettings) (api.AppliedSettings, error){"applied": k.Apply, "planned": k.Plan} {
		var refused *api.Error
		if _, err := do(t.Context(), more); !errors.As(err, &refused) || refused.Code != api.CodeConflict || !strings.Contains(refused.Message, "database books: it came with protocol 1, and the group writes 0 still") || !strings.Contains(refused.Hint, "upgrade finalize") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := k.Apply(t.Context(), api.ApplySettings{Settings: usual()}); err != nil {
		t.Errorf("what is there already: %v", err)
	}
	if _, err := k.Remove(t.Context(), "schedule", "nightly"); err != nil {
		t.Errorf("what is removed: %v", err)
	}
	if r := store.Local(onePrefix + "storage/disk"); r.Version == 0 {
		t.Error("a setting is gone")
	}
}
