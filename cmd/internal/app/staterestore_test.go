package app

import (
	"cmp"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/cli"
	"github.com/fencepost/fencepost/cmd/internal/groupstate"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// sshKey is a recipient and the file of its identity.
func sshKey(t *testing.T) (recipient, identity string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), write(t, "id", string(pem.EncodeToMemory(block)))
}

// write makes a file that nobody else reads.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// settle makes a file's settings the group's.
func settle(t *testing.T, client *api.Client, text string) {
	t.Helper()
	s, err := configs.LoadSettings(write(t, "settings.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	var want api.ApplySettings
	for _, o := range s.Objects() {
		want.Settings = append(want.Settings, api.Setting(o))
	}
	if _, err := client.ApplySettings(t.Context(), want); err != nil {
		t.Fatal(err)
	}
}

// storesState has the group's state be stored in a storage now, whoever else is about to.
func storesState(t *testing.T, a *App, name string) {
	t.Helper()
	w, err := (jobs{a}).now()
	if err != nil {
		t.Fatal(err)
	}
	until(t, a, "the state is stored", func() bool {
		err := a.storeState(t.Context(), w, name, a.storesNow()[name])
		if err != nil && !errors.Is(err, gms.ErrBusy) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// TestALostGroupIsMadeAnew: a group with settings, a user, a pinned backup and a disabled schedule loses every home. A new one,
// whose file names nothing, takes its state over from one storage: all is as it was, its backups are believed, and restored
// without a word. It is refused where it must be, once more changes nothing, and what the group has of its own stays.
func TestALostGroupIsMadeAnew(t *testing.T) {
	pg := pgtest.New(t, pgtest.Options{})
	pg.NamedDatabase(t, "shop")
	pg.Exec(t, "shop", `CREATE TABLE goods AS SELECT generate_series(1, 100) AS id`)
	dsn, disk, far := write(t, "dsn", pg.DSN("shop")+"\n"), t.TempDir(), t.TempDir()
	recipient, identity := sshKey(t)

	c := config(t)
	c.Databases, c.Storages = nil, []configs.Storage{{Name: "far", Kind: "local", Path: far}}
	c.Processors = []configs.Processor{{Kind: "zstd", Level: 2, Precedence: 100}, {Kind: "age", Precedence: 50, Recipients: []string{recipient}, IdentityFile: identity}}
	a, stop := start(t, c)
	ready(t, a)
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	settle(t, client, `
storages: [{name: disk, kind: local, path: `+disk+`}]
databases: [{name: shop, dsn: "file:`+dsn+`"}]
schedules: [{name: nightly, database: shop, cron: "@daily"}]
retention: [{database: shop, last: 3}]
hooks: [{name: chat, url: "file:/etc/fencepost/chat.url"}]
`)
	until(t, a, "the storage of the settings is open", func() bool { return a.storesNow()["disk"] != nil && len(a.outfitNow().cfg.Databases) == 1 })
	if _, err := client.AddUser(t.Context(), api.AddUser{Name: "ann", Role: api.RoleAdmin, Password: "correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	id, yes := backs(t, a), true
	if _, err := client.MarkBackup(t.Context(), id, api.MarkBackup{Pinned: &yes}); err != nil {
		t.Fatal(err)
	}
	until(t, a, "the schedule is disabled", func() bool { _, err := client.EnableSchedule(t.Context(), "nightly", false); return err == nil })
	settings, err := client.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	storesState(t, a, "disk")
	storesState(t, a, "disk")
	until(t, a, "the status tells of it", func() bool {
		o, err := client.Overview(t.Context())
		return err == nil && slices.ContainsFunc(o.GroupState, func(c api.GroupCopy) bool { return c.Storage == "disk" && c.Object != "" && len(c.Without) == 0 })
	})
	lost, signers := a.group.ClusterID(), filepath.Join(t.TempDir(), offline.SignersName)
	stop()
	if err := errors.Join(os.Rename(filepath.Join(c.Home, offline.SignersName), signers), os.RemoveAll(c.Home)); err != nil { // a kit has it
		t.Fatal(err)
	}

	states, err := os.ReadDir(filepath.Join(disk, filepath.FromSlash(storage.GroupFolder)))
	if err != nil || len(states) < 2 {
		t.Fatalf("%v, %v", states, err)
	}
	newest, older := storage.GroupFolder+"/"+states[len(states)-1].Name(), storage.GroupFolder+"/"+states[len(states)-2].Name()

	c.Storages = nil
	b, _ := start(t, c)
	ready(t, b)
	read := offline.GroupStateOptions{StorageOptions: offline.StorageOptions{Storage: "disk", Config: write(t, "n.yaml", `
node: n9
home: /nonexistent
gossip: {bind: "127.0.0.1:1"}
cluster: {bind: "127.0.0.1:2"}
storages: [{name: disk, kind: local, path: `+disk+`}]
processors: [{kind: zstd}, {kind: age, restore_only: true, identity_file: `+identity+`}]
`)}, Cluster: b.group.ClusterID()}
	hinted := func(err error) string { return HintOf(err, "") }
	if _, err := offline.ReadGroupState(t.Context(), read); err == nil || !strings.Contains(err.Error(), "not on the list of signers") || !strings.Contains(hinted(err), "--accept-foreign") {
		t.Errorf("without the list of signers: %v", err)
	}
	read.Signers = signers
	state, err := offline.ReadGroupState(t.Context(), read)
	if err != nil || state.Object != newest || state.Cluster != lost {
		t.Fatalf("%+v, %v", state, err)
	}

	// The newest is cut: the next older one is named, and taken only when a person says so.
	path := filepath.Join(disk, filepath.FromSlash(newest))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "argon2id") || strings.Contains(string(text), "nightly") {
		t.Error("the state can be read without the key")
	}
	if err := os.WriteFile(path, text[:len(text)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := offline.ReadGroupState(t.Context(), read); !errors.Is(err, groupstate.ErrDamaged) || !strings.Contains(hinted(err), "--object "+older) || strings.Contains(err.Error(), "\n") {
		t.Errorf("damaged: %v, %s", err, hinted(err))
	}
	read.Object = older
	if state, err = offline.ReadGroupState(t.Context(), read); err != nil || state.Object != older {
		t.Fatalf("%+v, %v", state, err)
	}

	want := api.RestoreGroup{From: "disk", Object: state.Object, Cluster: state.Cluster, Secrets: state.Packed}
	plan, err := client.PlanRestoreGroup(t.Context(), want)
	if err != nil || len(plan.Entered) != 6 || len(plan.Against) != 0 || plan.Done || plan.Cluster != b.group.ClusterID() {
		t.Fatalf("%+v, %v", plan, err)
	}
	if s, err := client.Settings(t.Context()); err != nil || len(s.Settings) != 0 {
		t.Errorf("a plan has changed the settings: %+v, %v", s, err)
	}
	taken, err := offline.TakeOverStorages(t.Context(), read.StorageOptions, state.Cluster, plan.Cluster)
	if err != nil || fmt.Sprint(taken) != "[{disk true }]" {
		t.Fatalf("%+v, %v", taken, err)
	}
	if state, err = offline.ReadGroupState(t.Context(), read); err != nil { // interrupted here, it is begun again
		t.Fatal(err)
	}
	got, err := client.RestoreGroup(t.Context(), want)
	if err != nil || got.Done || got.Backups != 1 || got.Marks != 1 || len(got.Waiting) != 0 || len(got.Left) != 1 || !strings.HasPrefix(got.Left[0], "storage far: node n1 does not have it yet") {
		t.Fatalf("%+v, %v", got, err)
	}
	asBefore(t, client, b, settings, id)
	var out, complaint strings.Builder
	code := cli.Main(t.Context(), []string{"--socket", c.Admin.Socket, "group", "restore", "--from", "disk", "--config", read.Config, "--signers", signers, "--object", filepath.Base(older)},
		cli.Env{Stdout: &out, Stderr: &complaint, Getenv: func(string) string { return "" }, Now: time.Now})
	if code != api.ExitFailed || !strings.Contains(out.String(), "entered:         0, and 6 were there") || !strings.Contains(out.String(), "Left: storage far: node n1 does not have it yet") ||
		!strings.Contains(complaint.String(), "not all could be done yet") {
		t.Errorf("once more, by the command: %d\n%s%s", code, out.String(), complaint.String())
	}
	asGolden(t, c.Admin.Socket, map[string]string{"CONFIG": read.Config, "SIGNERS": signers, "OBJECT": filepath.Base(older)})

	// What the group has of its own is not replaced unless that is said, and never removed.
	if _, err := client.AddUser(t.Context(), api.AddUser{Name: "bob", Role: api.RoleViewer, Password: "another horse battery"}); err != nil {
		t.Fatal(err)
	}
	var refused *api.Error
	if _, err := client.RestoreGroup(t.Context(), want); !errors.As(err, &refused) || refused.Code != api.CodeConflict || !strings.Contains(refused.Message, "user bob") {
		t.Errorf("over a user: %v", err)
	}
	want.Over = true
	if _, err := client.RestoreGroup(t.Context(), want); err != nil {
		t.Error(err)
	}
	if users, err := client.Users(t.Context()); err != nil || len(users) != 2 {
		t.Errorf("%+v, %v", users, err)
	}
	if _, err := client.RemoveUser(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	settle(t, client, "approvals: [{name: delete}]\n")
	if _, err := client.RestoreGroup(t.Context(), want); !errors.As(err, &refused) || !strings.Contains(refused.Message, "a second person") {
		t.Errorf("around the second person: %v", err)
	}
	trail, err := client.Audit(t.Context(), api.AuditFilter{})
	asked := slices.IndexFunc(trail, func(r api.AuditRecord) bool { return r.Action == "group.restore" && r.Phase == "asked" })
	if err != nil || asked < 0 || !strings.Contains(string(trail[asked].Request), `"secrets":"***"`) || !strings.Contains(string(trail[asked].Request), lost) {
		t.Errorf("%+v, %v", trail, err)
	}
}

// asBefore is what a group has that was made anew.
func asBefore(t *testing.T, client *api.Client, b *App, before api.Settings, id string) {
	t.Helper()
	now, err := client.Settings(t.Context())
	if err != nil || fmt.Sprint(now.Settings) != fmt.Sprint(before.Settings) {
		t.Errorf("settings %v, were %v, %v", now, before, err)
	}
	if _, err := b.accounts.LogIn(t.Context(), "ann", "correct horse battery", "127.0.0.1"); err != nil {
		t.Errorf("log in: %v", err)
	}
	if got, err := client.Backup(t.Context(), id); err != nil || !got.Pinned {
		t.Errorf("the pinned backup: %+v, %v", got, err)
	}
	if s, err := api.Get[[]api.Schedule](t.Context(), client, api.PathSchedules); err != nil || len(s) != 1 || !s[0].Disabled {
		t.Errorf("schedules %+v, %v", s, err)
	}
	task, err := client.Restore(t.Context(), api.RestoreBackup{Backup: id, Target: "copy"})
	if err != nil {
		t.Fatal(err)
	}
	if got := ends(t, b, task.ID); got != api.Completed {
		done, err := client.Task(t.Context(), task.ID)
		t.Errorf("the restore is %s: %+v, %v", got, done, err)
	}
}

// TestStateIsStoredByItself: a group's state comes into each storage soon after it has formed, by its one writer, and again
// after a change; a storage that does not take it is told of when that has lasted, and its age when it is old.
func TestStateIsStoredByItself(t *testing.T) {
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	until(t, a, "both storages have it", func() bool { return a.copyIn("a").Object != "" && a.copyIn("b").Object != "" })
	for _, name := range []string{"a", "b"} {
		if got := a.copyIn(name); !slices.Equal(got.Without, []string{"users", "tokens"}) || got.Problem != "" {
			t.Errorf("%s: %+v", name, got)
		}
		if list, err := groupstate.List(t.Context(), a.storesNow()[name]); err != nil || len(list) != 1 || list[0].Name != a.copyIn(name).Object {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	first := a.copyIn("a")
	if first.Due(a.stateDigest(), time.Time{}, first.At.Add(2*time.Minute)) {
		t.Error("it is due, and nothing has changed")
	}
	a.touchState(t.Context())
	if !first.Due(a.stateDigest(), time.Time{}, first.At.Add(2*time.Minute)) {
		t.Error("it is not due, and something was pinned")
	}

	// A writer that was held up under an older token makes an older object, and what the group knows stays.
	if err := a.noteState(t.Context(), "a", func(c groupstate.Copy) groupstate.Copy { c.Token--; c.Object = "late"; return c }); err != nil {
		t.Fatal(err)
	}
	if got := a.copyIn("a"); got.Object == "late" {
		t.Errorf("%+v", got)
	}
}

// TestStateAlarms: old, and failing for a while; critical when no storage has a good one. A failure of a moment is none.
func TestStateAlarms(t *testing.T) {
	now := time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
	good := groupstate.Copy{Format: 1, Object: "x", At: now.Add(-time.Hour)}
	old := groupstate.Copy{Format: 1, Object: "x", At: now.Add(-groupstate.TooOld), Problem: "no answer", Since: now.Add(-time.Hour)}
	failing := groupstate.Copy{Format: 1, Problem: "disk full", Since: now.Add(-groupstate.LateAfter)}
	hiccup := groupstate.Copy{Format: 1, Object: "x", At: now.Add(-time.Hour), Problem: "no answer", Since: now.Add(-time.Minute)}
	for _, c := range []struct {
		copies []placedCopy
		want   string
	}{
		{nil, ""},
		{[]placedCopy{{"a", good}, {"b", hiccup}}, ""},
		{[]placedCopy{{"a", good}, {"b", failing}}, "warning b: the group's own state could not be stored in storage b: disk full"},
		{[]placedCopy{{"a", old}, {"b", failing}}, "critical a: the group's own state was last stored in storage a on 2026-03-28 00:00:00Z: no answer; " +
			"critical b: the group's own state could not be stored in storage b: disk full"},
	} {
		var got []string
		for _, x := range stateAlarms(c.copies, now) {
			got = append(got, fmt.Sprintf("%s %s: %s", x.Severity, x.About, x.Text))
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s\nwant %s", text, c.want)
		}
	}
}

// TestWriterOf: the leader, or the first.
func TestWriterOf(t *testing.T) {
	for _, c := range []struct {
		nodes  []string
		leader string
		want   string
	}{{nil, "n1", ""}, {[]string{"n3", "n2"}, "n1", "n2"}, {[]string{"n3", "n2"}, "n3", "n3"}, {[]string{"n3"}, "", "n3"}} {
		if got := writerOf(c.nodes, c.leader); got != c.want {
			t.Errorf("%v, %s leads: %s", c.nodes, c.leader, got)
		}
	}
}

// asGolden compares what the command prints as JSON with its golden file, in which names stand for what is drawn.
func asGolden(t *testing.T, socket string, names map[string]string) {
	t.Helper()
	const path = "../cli/testdata/e2e/state.txt"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	about, rest, _ := strings.Cut(string(text), "\n$ fencepost ")
	command, _, _ := strings.Cut(rest, "\n")
	args := append([]string{"--socket", socket}, strings.Fields(command)...)
	for i := range args {
		args[i] = cmp.Or(names[args[i]], args[i])
	}
	var out strings.Builder
	cli.Main(t.Context(), args, cli.Env{Stdout: &out, Stderr: io.Discard, Getenv: func(string) string { return "" }, Now: time.Now})
	got := regexp.MustCompile(`[0-9a-f]{32}`).ReplaceAllString(out.String(), "ID")
	got = regexp.MustCompile(`"made": "[^"]*"`).ReplaceAllString(got, `"made": "TIME"`)
	got = regexp.MustCompile(`"high": [0-9]+`).ReplaceAllString(got, `"high": TOKEN`)
	for name, is := range names {
		got = strings.ReplaceAll(got, is, name)
	}
	if got = about + "\n$ fencepost " + command + "\n" + got; got != string(text) {
		t.Errorf("%s is\n%s", path, got)
	}
}
