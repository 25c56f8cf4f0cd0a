package configs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// load writes text into a file and loads it with the given environment.
func load(t *testing.T, text string, environ ...string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadWith(path, environ)
}

// lines are the problems of err without the file's name.
func lines(t *testing.T, err error) []string {
	t.Helper()
	var invalid *Error
	if !errors.As(err, &invalid) {
		t.Fatalf("error %v (%T), want an *Error", err, err)
	}
	var out []string
	for _, p := range invalid.Problems {
		if strings.Contains(p.String(), "\n") {
			t.Errorf("a problem of more than one line: %q", p)
		}
		out = append(out, p.String())
	}
	return out
}

var cmpDSN = cmp.Options{
	cmp.Comparer(func(a, b DSN) bool { return a.raw == b.raw }),
	cmp.Comparer(func(a, b Secret) bool { return a.raw == b.raw }),
}

func TestLoadMinimal(t *testing.T) {
	got, err := load(t, "node: n1\n")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Node = "n1"
	if diff := cmp.Diff(&want, got, cmpDSN); diff != "" {
		t.Fatalf("defaults differ (-want +got):\n%s", diff)
	}
}

func TestLoadEverything(t *testing.T) {
	got, err := load(t, `
node: n2
home: /srv/n2
group: shop
bootstrap: [n1, n2]
seeds: ["127.0.0.1:1", "[::1]:2"]
labels: [big, eu]
profile: local
gossip: {bind: "127.0.0.1:0", advertise: "127.0.0.1:9"}
cluster: {bind: "[::1]:7"}
admin: {socket: /srv/n2.sock, bind: "[::1]:8", certificate_file: /c, key_file: /k, hosts: [backup.example.org], session_idle: 1m, session_max: 2h}
audit: {file: /srv/audit, syslog: true}
raft: {voters: 5, followers: 1, reap_after: 1h, snapshot_threshold: 64}
evidence: {refused: false}
recovery: {selector: successor, fence_ttl: 2s, max_attempts: 1}
backup: {require: 2, max_concurrent: 1, rate_limit: 20MiB, on_failure: revert, max_attempts: 7, time_limit: 3h, stall_after: 20s, delete_delay: 0s}
restore: {keep_old: 0s, start_within: 1m, jobs: 4}
stop: {grace: 0}
processors:
  - {kind: zstd, level: 4}
  - {kind: gzip, precedence: 5, restore_only: true}
  - {kind: age, recipients: [age1x, "ssh-ed25519 y"], recipients_file: /r, identity_file: /i}
databases:
  - {name: shop, dsn: "postgres://u:p%40ss@127.0.0.1:5432/Shop", yield: warn, needs: [eu], max_dumps: 2}
  - {name: lab, dsn: "env:FENCEPOST_LAB", scratch: true, rpo: 1h}
storages:
  - {name: a, kind: local, path: /srv/a, min_free: 2GiB}
  - {name: b, kind: mem}
  - {name: e, kind: dropbox, app_key: k, refresh_token: "file:/t"}
  - {name: f, kind: dropbox, app_key: k, refresh_token: "file:/u", folder: "Fence post/x", part_size: 48MiB, endpoint: "http://127.0.0.1:9"}
  - {name: c, kind: s3, endpoint: "http://127.0.0.1:9", bucket: bkt, access_key: id, secret_key: "env:S3_SECRET"}
  - name: d
    kind: s3
    endpoint: https://s3.example.org
    region: here
    bucket: bkt
    prefix: a/b
    access_key: env:FENCEPOST_S3_ID
    secret_key: file:/k
    path_style: true
    part_size: 64MiB
    lock: {mode: compliance, days: 7}
schedules:
  - {name: nightly, database: shop, cron: "30 2 * * *", zone: Europe/Berlin, missed: all, within: 2h, overlap: queue, max_queued: 7, spread: 5m, windows: ["22:00-06:00"], storages: [a]}
  - {name: weekly, kind: verify, database: shop, cron: "@weekly", scratch: lab, disabled: true}
retention:
  - {database: shop, last: 1, hourly: 2, daily: 3, weekly: 4, monthly: 5, yearly: 6, max_age: 1h, min_keep: 2, max_percent: 50, unverified: true, zone: UTC}
components:
  - {name: export, exec: /bin/x, args: [a], past: [p], past_failed: [q], future: [f], old: [o], types: [t], procedure: 1, simultaneous: 3, every: 2s, limit: 3s, grace: 4s, back_off: 5s, quarantine_after: 6, orphans: adopt}
log: {level: debug, format: json}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Node: "n2", Home: "/srv/n2", Group: "shop", Role: RoleCore, Bootstrap: []string{"n1", "n2"},
		Labels: []string{"big", "eu"}, Seeds: []string{"127.0.0.1:1", "[::1]:2"}, Profile: ProfileLocal,
		Gossip: Port{"127.0.0.1:0", "127.0.0.1:9"}, Cluster: Port{Bind: "[::1]:7"},
		Admin:    Admin{"/srv/n2.sock", "[::1]:8", "/c", "/k", []string{"backup.example.org"}, time.Minute, 2 * time.Hour},
		Audit:    Audit{"/srv/audit", true},
		Raft:     Raft{5, 1, time.Hour, 64},
		Recovery: Recovery{SelectorSuccessor, 2 * time.Second, 1},
		Backup:   Backup{2, 1, 20 << 20, Revert, 7, 3 * time.Hour, 20 * time.Second, 0},
		Restore:  Restore{0, time.Minute, 4},
		Processors: []Processor{
			{Kind: "zstd", Level: 4, Precedence: 100},
			{Kind: "gzip", Level: 6, Precedence: 5, RestoreOnly: true},
			{Kind: "age", Precedence: 50, Recipients: []string{"age1x", "ssh-ed25519 y"}, RecipientsFile: "/r", IdentityFile: "/i"},
		},
		Databases: []Database{
			{Name: "shop", DSN: NewDSN("postgres://u:p%40ss@127.0.0.1:5432/Shop"), Yield: "warn", Needs: []string{"eu"}, MaxDumps: 2, RPO: 26 * time.Hour},
			{Name: "lab", DSN: NewDSN("env:FENCEPOST_LAB"), Scratch: true, RPO: time.Hour},
		},
		Storages: []Storage{
			{Name: "a", Kind: "local", Path: "/srv/a", MinFree: 2 << 30}, {Name: "b", Kind: "mem"},
			{Name: "e", Kind: "dropbox", AppKey: "k", RefreshToken: NewSecret("file:/t"), PartSize: 8 << 20},
			{Name: "f", Kind: "dropbox", AppKey: "k", RefreshToken: NewSecret("file:/u"), Folder: "Fence post/x", PartSize: 48 << 20,
				Endpoint: "http://127.0.0.1:9"},
			{Name: "c", Kind: "s3", Endpoint: "http://127.0.0.1:9", Region: "us-east-1", Bucket: "bkt",
				AccessKey: NewSecret("id"), SecretKey: NewSecret("env:S3_SECRET"), PartSize: 8 << 20},
			{Name: "d", Kind: "s3", Endpoint: "https://s3.example.org", Region: "here", Bucket: "bkt", Prefix: "a/b",
				AccessKey: NewSecret("env:FENCEPOST_S3_ID"), SecretKey: NewSecret("file:/k"), PathStyle: true, PartSize: 64 << 20,
				Lock: Lock{Mode: "compliance", Days: 7}},
		},
		Schedules: []Schedule{
			{Name: "nightly", Kind: "backup", Database: "shop", Storages: []string{"a"}, Cron: "30 2 * * *", Zone: "Europe/Berlin", Missed: "all",
				Within: 2 * time.Hour, Overlap: "queue", MaxQueued: 7, Spread: 5 * time.Minute, Windows: []string{"22:00-06:00"}},
			{Name: "weekly", Kind: "verify", Database: "shop", Cron: "@weekly", Scratch: "lab", Disabled: true},
		},
		Retention: []Retention{{"shop", 1, 2, 3, 4, 5, 6, time.Hour, 2, 50, true, "UTC"}},
		Components: []Component{{
			"export", "/bin/x", []string{"a"}, []string{"p"}, []string{"q"}, []string{"f"}, []string{"o"}, []string{"t"}, 1, 3,
			2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, 6, OrphansAdopt,
		}},
		Notify: Default().Notify,
		Log:    Log{"debug", "json"},
	}
	if diff := cmp.Diff(want, got, cmpDSN); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	renderedIsRead(t, got)
}

func TestEnvironmentWins(t *testing.T) {
	got, err := load(t, "node: n1\nraft: {voters: 5, followers: 2}\nseeds: ['127.0.0.1:1']\n",
		"FENCEPOST_RAFT_VOTERS=7", "FENCEPOST_EVIDENCE_REFUSED=false", "FENCEPOST_RECOVERY_FENCE_TTL=5s",
		"FENCEPOST_SEEDS=127.0.0.1:8, 127.0.0.1:9", "FENCEPOST_BACKUP_RATE_LIMIT=3MB", "FENCEPOST_BACKUP_REQUIRE=any",
		"FENCEPOST_GROUP=", "PATH=/bin", "FENCEPOST_SOCKET=/x", "FENCEPOST_CONFIG=/y", "FENCEPOST_LONG=1")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Node, want.Raft.Voters, want.Raft.Followers, want.Evidence.Refused = "n1", 7, 2, false
	want.Recovery.FenceTTL, want.Seeds = 5*time.Second, []string{"127.0.0.1:8", "127.0.0.1:9"}
	want.Backup.RateLimit, want.Backup.Require = 3e6, RequireAny
	if diff := cmp.Diff(&want, got, cmpDSN); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

// TestEveryFieldFromEnvironment holds that no field was left out of the reader's defaults
// or of the list of variables.
func TestEveryFieldFromEnvironment(t *testing.T) {
	for _, f := range leaves(reflect.TypeFor[Config](), "") {
		if f.list() {
			continue
		}
		_, ps, err := read(writeFile(t, "node: n1\n"), []string{variable(f.path) + "=\x01"})
		if err != nil {
			t.Fatal(err)
		}
		anyText := f.typ.Kind() == reflect.String || f.typ.Kind() == reflect.Slice || f.typ == reflect.TypeFor[DSN]() || f.typ == reflect.TypeFor[Secret]() // checked by Validate
		if anyText != (len(ps) == 0) {
			t.Errorf("%s: problems %v", variable(f.path), ps)
		}
		if len(ps) > 0 && ps[0].Path != f.path {
			t.Errorf("%s: problem at %s, want %s", variable(f.path), ps[0].Path, f.path)
		}
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadRefuses(t *testing.T) {
	const n = "node: n1\n"
	cases := []struct {
		name, text string
		environ    []string
		want       []string // one beginning per problem, in order
	}{
		{"unknown key", n + "raft: {voterz: 3}", nil, []string{"raft.voterz: unknown key: did you mean raft.voters?"}},
		{"unknown section", n + "rafd: {voters: 3}", nil, []string{"rafd: unknown key: did you mean raft?"}},
		{"key in the wrong place", n + "voters: 3", nil, []string{"voters: unknown key: did you mean raft.voters?"}},
		{"key of nothing", n + "stop: {colour: red}", nil, []string{"stop.colour: unknown key: known here are grace"}},
		{"unknown key in a list", n + "storages: [{name: a, kind: mem, paht: /x}]", nil, []string{"storages[0].paht: unknown key: did you mean storages[0].path?"}},
		{"two unknown keys", n + "a1: 1\nb1: 2", nil, []string{"a1: unknown key", "b1: unknown key"}},
		{"section is a number", n + "raft: 5", nil, []string{"raft: want a section"}},
		{"section is a list", n + "raft: [5]", nil, []string{"raft: want a section"}},
		{"list is a section", n + "storages: {a: {kind: mem}}", nil, []string{"storages: want a list"}},
		{"entry is a text", n + "storages: [a]", nil, []string{"storages[0]: want a section"}},
		{"list is a text", n + "databases: shop", nil, []string{"databases: want a list"}},
		{"text is a number", "node: 12", nil, []string{"node: want a text: put it in quotes"}},
		{"number is a text", n + "raft: {voters: three}", nil, []string{"raft.voters: want a whole number"}},
		{"number is a fraction", n + "raft: {voters: 3.5}", nil, []string{"raft.voters: want a whole number"}},
		{"number is a list", n + "raft: {voters: [3]}", nil, []string{"raft.voters: want one value"}},
		{"duration without unit", n + "stop: {grace: 30}", nil, []string{"stop.grace: want a duration with its unit"}},
		{"size with another unit", n + "backup: {rate_limit: 20 bananas}", nil, []string{"backup.rate_limit: want a number of bytes"}},
		{"size too large", n + "backup: {rate_limit: 9999999999TiB}", nil, []string{"backup.rate_limit: want a number of bytes"}},
		{"require nothing", n + "backup: {require: 0}", nil, []string{"backup.require: want all, any, or a number"}},
		{"seed is a number", n + "seeds: [7946]", nil, []string{"seeds[0]: want a text"}},
		{"key twice", n + "group: a\ngroup: b", nil, []string{"yaml: "}},
		{"no yaml", "node: [", nil, []string{"yaml: line 1"}},
		{"a rule broken", "raft: {voters: 4}", nil, []string{"node: is missing", "raft.voters: is 4, want an odd number"}},

		{"unknown variable", n, []string{"FENCEPOST_RAFT_VOTER=3"}, []string{"FENCEPOST_RAFT_VOTER: unknown environment variable: did you mean FENCEPOST_RAFT_VOTERS?"}},
		{"far variable", n, []string{"FENCEPOST_WHATEVER_THIS_IS=3"}, []string{"FENCEPOST_WHATEVER_THIS_IS: unknown environment variable: unset it"}},
		{"variable for a list", n, []string{"FENCEPOST_DATABASES=x"}, []string{"FENCEPOST_DATABASES: the list databases comes from the file only"}},
		{"bad variable", n, []string{"FENCEPOST_RAFT_VOTERS=many"}, []string{"raft.voters: want a whole number"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.text, c.environ...)
			got := lines(t, err)
			if len(got) != len(c.want) {
				t.Fatalf("problems %q, want %d", got, len(c.want))
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("problem %q, want one that begins %q", got[i], c.want[i])
				}
			}
		})
	}
}

func TestEmptySectionKeepsDefaults(t *testing.T) {
	got, err := load(t, "node: n1\nraft:\nstorages:\nseeds:\n")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	if got.Raft != want.Raft || len(got.Storages) != 0 || len(got.Seeds) != 0 {
		t.Fatalf("got %+v", got)
	}
}

func TestLoadWithoutFile(t *testing.T) {
	_, err := LoadWith(filepath.Join(t.TempDir(), "none.yaml"), nil)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "fencepost init") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error %v", err)
	}
	if _, err := LoadWith(t.TempDir(), nil); err == nil {
		t.Fatal("a directory was read as a file")
	}
}

// TestReferencedVariable: a dsn may refer to a variable with our prefix.
func TestReferencedVariable(t *testing.T) {
	const text = "node: n1\ndatabases: [{name: shop, dsn: 'env:FENCEPOST_SHOP_DSN'}]\n"
	if _, err := load(t, text, "FENCEPOST_SHOP_DSN=postgres://u:secret@h/d"); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t, "node: n1\nledger: {dsn: 'env:FENCEPOST_TASKS_DSN'}\n", "FENCEPOST_TASKS_DSN=postgres://u:secret@h/d"); err != nil {
		t.Fatal(err)
	}
	if c, err := load(t, "node: n1\n", "FENCEPOST_LEDGER_DSN=host=h dbname=d password=secret"); err != nil || !c.Ledger.DSN.Given() || strings.Contains(c.Ledger.DSN.String(), "secret") {
		t.Fatal(c, err)
	}
	const keys = "node: n1\nstorages: [{name: a, kind: s3, endpoint: 'https://h', bucket: bkt, access_key: 'env:FENCEPOST_ID', secret_key: 'env:FENCEPOST_KEY'}]\n"
	if _, err := load(t, keys, "FENCEPOST_ID=x", "FENCEPOST_KEY=secret"); err != nil {
		t.Fatal(err)
	}
	const box = "node: n1\nstorages: [{name: a, kind: dropbox, app_key: k, refresh_token: 'env:FENCEPOST_BOX'}]\n"
	if _, err := load(t, box, "FENCEPOST_BOX=secret"); err != nil {
		t.Fatal(err)
	}
	_, err := load(t, text, "FENCEPOST_SHOP_DSM=postgres://u:secret@h/d")
	if got := lines(t, err); len(got) != 1 || strings.Contains(got[0], "secret") {
		t.Fatalf("problems %q", got)
	}
}

// TestExampleIsDefault holds node.example.yaml equal to Default: every key is in it, with
// its default and with a comment above it.
func TestExampleIsDefault(t *testing.T) {
	const path = "node.example.yaml"
	got, ps, err := read(path, nil)
	if err != nil || len(ps) > 0 {
		t.Fatal(err, ps)
	}
	want := Default()
	if diff := cmp.Diff(&want, got, cmpDSN); diff != "" {
		t.Errorf("the example differs from the defaults (-default +example):\n%s", diff)
	}
	v, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	inFile := v.AllKeys()
	for _, f := range leaves(reflect.TypeFor[Config](), "") {
		if !slices.Contains(inFile, f.path) {
			t.Errorf("%s is not in the example", f.path)
		}
	}
	if len(inFile) != len(leaves(reflect.TypeFor[Config](), "")) {
		t.Errorf("keys %v in the example", inFile)
	}
}

// TestErrorNamesFile: what an operator sees.
func TestErrorNamesFile(t *testing.T) {
	path := writeFile(t, "raft: {voters: 4}\n")
	_, err := LoadWith(path, nil)
	want := path + ": node: is missing: give this node a name, such as n1\n" +
		path + ": raft.voters: is 4, want an odd number from 1 to 7: an even one survives no more than the odd one below it"
	if err == nil || err.Error() != want {
		t.Fatalf("error\n%v\nwant\n%s", err, want)
	}
}
