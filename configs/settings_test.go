package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// whole is a text of settings with something of everything.
const whole = `
servers:
  - name: pg1
    dsn: file:/etc/fencepost/pg1.dsn
    exclude: ["scratch_*", postgres]
    max_dumps: 2
    rpo: 30h
    needs: [eu]
    labels: [team-a]
    schedule: {cron: "0 22 * * *", zone: Europe/Berlin, storages: [cloud], spread: 4h, windows: ["22:00-06:00"]}
    retention: {last: 3, daily: 7, max_percent: 50}
databases:
  - name: shop
    dsn: postgres://backup@db:5432/shop?sslmode=verify-full
    dbname: Shop
    rpo: 0s
  - name: pg1.books
    dsn: env:BOOKS
storages:
  - name: disk
    kind: local
    path: /srv/backups
  - name: cloud
    kind: s3
    endpoint: https://s3.example.org
    bucket: backups
    access_key: AKIAEXAMPLE
    secret_key: command:/usr/bin/pass show s3
    lock: {mode: governance, days: 30}
schedules:
  - name: weekly
    kind: verify
    database: pg1.other
    cron: "@weekly"
retention:
  - database: shop
    last: 2
    min_keep: 2
bindings:
  - name: team-a
    user: ann
    labels: [team-a]
    as: [source]
approvals:
  - name: delete
  - name: restore
    within: 2h
hooks:
  - name: chat
    url: file:/etc/fencepost/chat.url
    template: "{{.Title}}\n\"{{.Cause}}\""
mails:
  - name: ops
    server: smtp.example.org:587
    from: fencepost@example.org
    to: [ops@example.org, night@example.org]
    user: fencepost
    password: env:SMTP_PASSWORD
rules:
  - name: default
    after: 5m
  - name: backup
    severity: critical
    after: 0s
    repeat: 6h
    to: [ops]
heartbeats:
  - name: watchdog
    url: file:/etc/fencepost/watchdog.url
    every: 30s
users:
  - name: ann
    role: operator
    password: file:/root/ann.password
  - name: bob
    role: viewer
    disabled: true
`

func loaded(t testing.TB, text string) Settings {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := LoadSettings(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// objects are those of s in a form that can be compared.
func objects(s Settings) (out []string) {
	for _, o := range s.Objects() {
		out = append(out, o.Kind+" "+o.Name+" "+string(o.Spec))
	}
	return out
}

// TestSettingsThereAndBack: as objects, as a text and as files of one kind each they stay what they are.
func TestSettingsThereAndBack(t *testing.T) {
	s := loaded(t, whole)
	want := objects(s)
	if len(want) != 15 {
		t.Fatalf("%d objects: %s", len(want), want)
	}
	if slices.ContainsFunc(want, func(o string) bool { return strings.HasPrefix(o, "user ") }) || s.Text("user") != "users:\n  - name: ann\n    role: operator\n    password: \"file:/root/ann.password\"\n  - name: bob\n    role: viewer\n    disabled: true\n" {
		t.Errorf("users: %s", s.Text("user"))
	}
	again, err := FromObjects(s.Objects())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, objects(again)); d != "" {
		t.Error("through objects:", d)
	}
	if back := loaded(t, s.Text()); cmp.Diff(want, objects(back)) != "" || back.Text() != s.Text() {
		t.Error("through a text:", cmp.Diff(want, objects(back)), back.Text(), s.Text())
	}
	dir := t.TempDir()
	for _, kind := range Kinds() {
		if err := os.WriteFile(filepath.Join(dir, kind+".yaml"), []byte(s.Text(kind)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	apart, err := LoadSettings(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, objects(apart)); d != "" {
		t.Error("through a directory:", d)
	}
	if strings.Contains(strings.Join(want, "\n"), `"min_keep":1`) {
		t.Error("a default is said:", want)
	}
}

// TestSettingsText: whatever is in a field comes back.
func TestSettingsText(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ -~]{1,12}`)
		s := Settings{Databases: []Database{{
			Name: "a", DSN: NewDSN("file:/x" + rapid.StringMatching(`[a-zA-Z0-9 :#'"\\{}-]{0,9}`).Draw(t, "dsn")), DBName: word.Draw(t, "dbname"), Jobs: rapid.IntRange(0, 32).Draw(t, "jobs"),
			RPO: time.Duration(rapid.IntRange(1, 8760).Draw(t, "hours")) * time.Hour,
		}}, Servers: []Server{{Name: "s", DSN: NewDSN("env:A"), Include: []string{word.Draw(t, "include")}, Exclude: []string{}, RPO: time.Hour,
			Schedule: Schedule{Cron: "@daily", Windows: []string{word.Draw(t, "window")}}, Retention: Retention{MinKeep: 1, MaxPercent: 25, Last: 1_000_00}}}}
		path := filepath.Join(dir, "s.yaml")
		if err := os.WriteFile(path, []byte(s.Text()), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := LoadSettings(path)
		if err != nil {
			t.Fatalf("%v in %s", err, s.Text())
		}
		if d := cmp.Diff(objects(s), objects(got)); d != "" {
			t.Fatal(d, s.Text())
		}
		back, err := FromObjects(s.Objects())
		if err != nil || !slices.Equal(objects(back), objects(s)) {
			t.Fatal(err, objects(back))
		}
	})
}

func TestSettingsRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"servers:\n  - name: pg1\n", "server pg1: dsn: is missing"},
		{"servers:\n  - {name: pg1, dsn: 'postgres://u:hush@h/d'}\n", "server pg1: dsn: holds a password"},
		{"servers:\n  - {name: pg1, dsn: 'host=h dbname=d PASSWORD = hush'}\n", "server pg1: dsn: holds a password"},
		{"databases:\n  - {name: a, dsn: 'postgres://u@h/d?password=hush'}\n", "database a: dsn: holds a password"},
		{"servers:\n  - {name: pg1, dsn: 'env:A', schedule: {cron: '@daily', storages: [x]}}\n", `server pg1: schedule.storages[0]: is "x", which is none of storages`},
		{"servers:\n  - {name: pg1, dsn: 'env:A', schedule: {spread: 1h}}\n", "server pg1: schedule.cron: is missing"},
		{"servers:\n  - {name: pg1, dsn: 'env:A', schedule: {cron: '@daily', database: a}}\n", "server pg1: schedule.database: does not belong to the schedule of a server"},
		{"servers:\n  - {name: pg1, dsn: 'env:A', retention: {database: a}}\n", "server pg1: retention.database: does not belong"},
		{"servers:\n  - {name: pg1, dsn: 'env:A', include: []}\n", "server pg1: include: is empty"},
		{"servers:\n  - {name: pg1, dsn: 'env:A', max_dumps: -1}\n", "server pg1: max_dumps: is -1, want 0 to 1000"},
		{"servers:\n  - {name: a.server.whose.name.is.much.too.long, dsn: 'env:A'}\n", "want at most 30"},
		{"servers:\n  - {name: a, dsn: 'env:A'}\n  - {name: a, dsn: 'env:A'}\n", `server a: name: is "a", as servers[0] is`},
		{"servers:\n  - {name: a, dsm: 'env:A'}\n", "servers[0].dsm: unknown key: did you mean servers[0].dsn?"},
		{"bindings:\n  - {name: b, labels: [x]}\n", "binding b: user: is missing"},
		{"bindings:\n  - {name: b, user: ann}\n", "binding b: labels: is empty"},
		{"bindings:\n  - {name: b, user: ann, labels: [x], role: admin}\n", `binding b: role: is "admin", want one of operator`},
		{"bindings:\n  - {name: b, user: ann, labels: [x], as: [all]}\n", `binding b: as[0]: is "all"`},
		{"bindings:\n  - {name: b, user: ann, labels: [x], as: []}\n", "binding b: as: is empty"},
		{"schedules:\n  - {name: n, database: pg1.x, cron: '@daily'}\n", `schedule n: database: is "pg1.x", which is none of databases`},
		{"storages:\n  - {name: n, kind: s3, endpoint: 'https://h', bucket: abc, access_key: k, secret_key: hush}\n", "storage n: secret_key: holds the secret itself"},
		{"approvals:\n  - {name: everything}\n", `approval everything: name: is "everything", want one of delete, restore, storage, ledger, node`},
		{"approvals:\n  - {name: delete}\n  - {name: delete, within: 2h}\n", `approval delete: name: is "delete", as approvals[0] is`},
		{"approvals:\n  - {name: delete, within: 1s}\n", "approval delete: within: is 1s, want 1m0s to 720h0m0s"},
		{"hooks:\n  - {name: chat, url: 'https://hush@h/x'}\n", "hook chat: url: holds the secret itself"},
		{"mails:\n  - {name: ops, server: 'h:25', from: a@b, to: [c@d], user: u, password: hush}\n", "mail ops: password: holds the secret itself"},
		{"hooks:\n  - {name: ops, url: 'env:U'}\nmails:\n  - {name: ops, server: 'h:25', from: a@b, to: [c@d]}\n", `mail ops: name: is "ops", as hooks[0] is`},
		{"rules:\n  - {name: everything}\n", `rule everything: name: is "everything", want one of default, approval, audit, backup`},
		{"rules:\n  - {name: backup}\n  - {name: backup}\n", `rule backup: name: is "backup", as rules[0] is`},
		{"rules:\n  - {name: backup, severity: loud}\n", `rule backup: severity: is "loud", want one of warning, critical, none`},
		{"rules:\n  - {name: backup, after: 2h}\n", "rule backup: after: is 2h0m0s, want 0s to 1h0m0s"},
		{"rules:\n  - {name: backup, after: soon}\n", "rules[0].after: want a duration with its unit"},
		{"rules:\n  - {name: backup, repeat: 1m}\n", "rule backup: repeat: is 1m0s, want 1h0m0s to 8760h0m0s"},
		{"rules:\n  - {name: backup, to: [ops]}\n", `rule backup: to[0]: is "ops", which is none of hooks and mails`},
		{"heartbeats:\n  - {name: dog}\n", "heartbeat dog: url: is missing"},
		{"heartbeats:\n  - {name: dog, url: 'https://hush@h/x'}\n", "heartbeat dog: url: holds the secret itself"},
		{"heartbeats:\n  - {name: dog, url: 'env:U', every: 1s}\n", "heartbeat dog: every: is 1s, want 10s to 24h0m0s"},
		{"heartbeats:\n  - {name: dog, url: 'env:U'}\n  - {name: dog, url: 'env:V'}\n", `heartbeat dog: name: is "dog", as heartbeats[0] is`},
		{"users:\n  - {name: ann, role: root}\n", `user ann: role: is "root", want one of viewer, operator, admin`},
		{"users:\n  - {name: Ann, role: viewer}\n", `user Ann: name: is "Ann", want 1 to 63`},
		{"users:\n  - {name: ann, role: viewer}\n  - {name: ann, role: admin}\n", `user ann: name: is "ann", as users[0] is`},
		{"users:\n  - {name: ann, role: viewer, password: hush}\n", "user ann: password: holds the secret itself"},
	} {
		path := filepath.Join(t.TempDir(), "s.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LoadSettings(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s\nsays %v\nwant %s", c.text, err, c.want)
		}
	}
	_, err := FromObjects([]Object{{"shelf", "x", []byte(`{}`)}, {"server", "y", []byte(`[]`)}})
	if err == nil || !strings.Contains(err.Error(), "shelf x: is of no known kind: want storage, server") || !strings.Contains(err.Error(), "server y: is no object") {
		t.Error(err)
	}
	if _, err := LoadSettings(t.TempDir()); err == nil || !strings.Contains(err.Error(), "ends in .yaml or .yml") {
		t.Error(err)
	}
}

// TestNamesOnServers: no two databases of a server have one name, and all are names.
func TestNamesOnServers(t *testing.T) {
	for dbname, want := range map[string]string{"shop": "pg1.shop", "a.b": "pg1.a.b"} {
		if got := NameOn("pg1", dbname); got != want {
			t.Errorf("%s is %s, want %s", dbname, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		server := rapid.StringMatching(`[a-z][a-z0-9_-]{0,29}`).Draw(t, "server")
		name := rapid.StringMatching(`[A-Ca-c/. é-]{1,31}`)
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		x, y := NameOn(server, a), NameOn(server, b)
		if !itemName.MatchString(x) || !strings.HasPrefix(x, server+".") {
			t.Fatalf("%q is no name of %q", x, a)
		}
		if (a == b) != (x == y) {
			t.Fatalf("%q and %q are %q and %q", a, b, x, y)
		}
	})
}

func TestWants(t *testing.T) {
	s := Server{Include: []string{"app_*", "?x"}, Exclude: []string{"app_tmp*"}}
	for name, want := range map[string]bool{
		"app_shop": true, "app_a/b\nc": true, "ax": true, "x": false, "aax": false, "App_shop": false, "app_tmp7": false, "postgres": false,
		"app_shop__fp_77": false, "app_shop__was_77": false,
	} {
		if got := s.Wants(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
	if usual := loaded(t, "servers: [{name: a, dsn: 'env:A'}]").Servers[0]; !usual.Wants("shop") || usual.Wants("postgres") {
		t.Errorf("by default: %+v", usual)
	}
}

// TestExpand: databases of a server have its policy; what is gone keeps its backups; what is said of a name itself wins.
func TestExpand(t *testing.T) {
	s := loaded(t, whole)
	at := time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
	got := s.Expand([]Found{
		{Server: "pg1", DBName: "other", Since: at}, {Server: "pg1", DBName: "Lost", Since: at, Gone: at}, {Server: "pg1", DBName: "books", Since: at},
		{Server: "pg1", DBName: "scratch_7", Since: at}, {Server: "pg9", DBName: "x", Since: at},
	})
	var lines []string
	for _, d := range got.Databases {
		lines = append(lines, fmt.Sprint("database ", d.Name, " ", d.DBName, " ", d.RPO, " ", d.MaxDumps, d.Needs, d.Labels))
	}
	for _, x := range got.Schedules {
		lines = append(lines, fmt.Sprint("schedule ", x.Name, " ", x.Kind, " ", x.Database, " ", x.Cron, " ", x.Spread))
	}
	for _, r := range got.Retention {
		lines = append(lines, fmt.Sprint("retention ", r.Database, " ", r.Last, " ", r.MaxPercent))
	}
	want := []string{
		"database shop Shop 0s 0 [] []", "database pg1.books  26h0m0s 0 [] []", "database pg1.other other 30h0m0s 2 [eu] [team-a]",
		"database " + NameOn("pg1", "Lost") + " Lost 0s 2 [eu] [team-a]", "database pg1.scratch_7 scratch_7 30h0m0s 2 [eu] [team-a]",
		"schedule weekly verify pg1.other @weekly 0s", "schedule pg1.other backup pg1.other 0 22 * * * 4h0m0s", "retention shop 2 25", "retention pg1.other 3 50",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
	if len(s.Databases) != 2 || len(s.Schedules) != 1 {
		t.Error("the settings themselves were changed")
	}
}

// TestFileWins: what a node's file names itself counts there, and is told of.
func TestFileWins(t *testing.T) {
	s := loaded(t, whole)
	c := Default()
	c.Databases = []Database{{Name: "shop", DSN: NewDSN("env:OWN")}}
	c.Storages = []Storage{{Name: "here", Kind: "local", Path: "/srv/backups"}, {Name: "cloud", Kind: "mem"}}
	c.Schedules = []Schedule{{Name: "weekly"}}
	c.Retention = []Retention{{Database: "shop", Last: 9}}
	got, problems := c.With(s)
	if len(got.Databases) != 2 || got.Databases[0].DSN != NewDSN("env:OWN") || len(got.Storages) != 2 || len(got.Schedules) != 1 || len(got.Retention) != 1 || got.Retention[0].Last != 9 {
		t.Errorf("%+v", got)
	}
	var about []string
	for _, p := range problems {
		about = append(about, p.Path)
	}
	if d := cmp.Diff([]string{"database shop", "storage disk", "storage cloud", "schedule weekly", "retention shop"}, about); d != "" {
		t.Error(d, problems)
	}
	if len(c.Databases) != 1 {
		t.Error("the file's own was changed")
	}
	var invalid *Error
	if err := s.Validate(); errors.As(err, &invalid) {
		t.Error(err)
	}
}

// TestHowIsTold: an event has its own rule, or the settings' default, or what a node's file says, which counts when it says
// anything; and the file's heartbeat is one among others.
func TestHowIsTold(t *testing.T) {
	s := loaded(t, whole)
	usual, own := Default().Notify, Default().Notify
	own.After, own.Heartbeat.URL = time.Second, NewSecret("env:BEAT")
	for _, c := range []struct {
		file     Notify
		settings *Settings
		event    string
		want     time.Duration // after
	}{
		{usual, &s, "backup", 0}, {usual, &s, "failed", 5 * time.Minute}, {usual, &Settings{}, "failed", time.Minute},
		{own, &s, "backup", 0}, {own, &s, "failed", time.Second}, {own, &Settings{}, "failed", time.Second},
	} {
		if got := c.settings.Rule(c.file, c.event); got.After != c.want {
			t.Errorf("%s after %v, want %v", c.event, got.After, c.want)
		}
	}
	beats := func(file Notify) (names []string) {
		for _, b := range s.Beats(file) {
			names = append(names, b.Name)
		}
		return names
	}
	if got := append(beats(usual), beats(own)...); !slices.Equal(got, []string{"watchdog", "watchdog", FileBeat}) {
		t.Errorf("heartbeats %s", got)
	}
	s.Heartbeats[0].Name = FileBeat
	c := Default()
	c.Notify = own
	_, problems := c.With(s)
	var about []string
	for _, p := range problems {
		about = append(about, p.Path)
	}
	if got := beats(own); !slices.Equal(got, []string{FileBeat}) || s.Beats(own)[0].URL != own.Heartbeat.URL || !slices.Equal(about, []string{"rule default", "heartbeat " + FileBeat}) {
		t.Errorf("heartbeats %s, problems %v", got, problems)
	}
}

// TestSettingsExample: the example is rendered from the documentation of the fields, and says nothing by itself.
func TestSettingsExample(t *testing.T) {
	const file = "settings.example.yaml"
	want := RenderSettings(Settings{})
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("run go test ./configs -update: %s", d)
	}
	if s, err := LoadSettings(file); err != nil || len(s.Objects()) != 0 {
		t.Error(err, s.Objects())
	}
}
