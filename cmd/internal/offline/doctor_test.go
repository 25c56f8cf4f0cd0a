package offline

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// exam finds what was said of a thing.
func exam(t *testing.T, all []Exam, what, about string) Exam {
	t.Helper()
	i := slices.IndexFunc(all, func(e Exam) bool { return e.What == what && strings.Contains(e.About, about) })
	if i < 0 {
		t.Fatalf("nothing is said of %s %s in %+v", what, about, all)
	}
	return all[i]
}

// patient writes the configuration of a node and returns its path.
func patient(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDoctorOfAHealthyNode: a real server with a real client program, a writable storage, free ports: nothing fails, and
// nothing stays behind in the storage.
func TestDoctorOfAHealthyNode(t *testing.T) {
	db := pgtest.New(t, pgtest.Options{})
	disk, home := t.TempDir(), t.TempDir()
	for _, dir := range []string{disk, home} {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(secret, []byte(db.DSN("postgres")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := patient(t, "node: n1\nhome: "+home+"\ngossip: {bind: '127.0.0.1:0'}\ncluster: {bind: '127.0.0.1:0'}\n"+
		"databases: [{name: shop, dsn: 'file:"+secret+"'}]\nstorages: [{name: disk, kind: local, path: "+disk+"}]\n")
	all := Examine(t.Context(), DoctorOptions{Config: config})
	for _, e := range all {
		if e.State == ExamFailed {
			t.Errorf("%+v", e)
		}
	}
	if e := exam(t, all, "database", "shop"); e.State != ExamOK || !strings.Contains(e.Found, "server 1") {
		t.Errorf("%+v", e)
	}
	if e := exam(t, all, "clock", "shop"); e.State != ExamOK {
		t.Errorf("%+v", e)
	}
	if e := exam(t, all, "key file", "databases[0].dsn"); e.State != ExamOK {
		t.Errorf("%+v", e)
	}
	err := filepath.WalkDir(disk, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "lock" { // every opening of a directory makes that
			t.Errorf("left in the storage: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if e := exam(t, Examine(t.Context(), DoctorOptions{Config: config, Reading: true}), "storage", "disk"); e.State != ExamOK || e.Found != "nobody's yet" {
		t.Errorf("%+v", e)
	}
	if e := exam(t, Examine(t.Context(), DoctorOptions{Config: config, Running: true, Reading: true}), "port", "gossip"); e.State != ExamSkipped {
		t.Errorf("%+v", e)
	}
}

// TestDoctorFindsWhatIsWrong: each thing that is wrong is named, with how it is mended.
func TestDoctorFindsWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	loose := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(loose, []byte("postgres://u:hunter2@127.0.0.1:1/shop?connect_timeout=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(loose, 0o644); err != nil { // whatever the umask
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	config := patient(t, "node: n1\nhome: "+home+"\nbootstrap: [n1]\nseeds: ['127.0.0.1:1']\ngossip: {bind: '"+taken.Addr().String()+"', advertise: '127.0.0.9:7946'}\ncluster: {bind: '127.0.0.1:0'}\n"+
		"databases: [{name: shop, dsn: 'file:"+loose+"'}]\nstorages: [{name: disk, kind: local, path: /nowhere/at/all}, {name: ram, kind: mem}]\n")
	all := Examine(t.Context(), DoctorOptions{Config: config})
	for _, want := range []struct{ what, about, state, hint string }{
		{"key file", "databases[0].dsn", ExamFailed, "chmod 600"},
		{"home", home, ExamWarning, "chmod 700"},
		{"port", "/tcp", ExamFailed, "ss -lnp"},
		{"address", "127.0.0.9", ExamWarning, "ip address"},
		{"seed", "127.0.0.1:1", ExamWarning, "firewall"},
		{"database", "shop", ExamFailed, ""},
		{"storage", "disk", ExamFailed, "must be there, be mounted"},
		{"storage", "ram", ExamWarning, ""},
	} {
		e := exam(t, all, want.what, want.about)
		if e.State != want.state || !strings.Contains(e.Hint, want.hint) || e.Found == "" || e.Hint == "" {
			t.Errorf("%+v, want %s with %q", e, want.state, want.hint)
		}
		if strings.Contains(e.Found+e.Hint, "hunter2") {
			t.Errorf("a secret is shown: %+v", e)
		}
	}
	all = Examine(t.Context(), DoctorOptions{Config: patient(t, "node: N1\nraft: {voters: 4}\n")})
	if len(all) != 2 || exam(t, all, "configuration", "raft.voters").State != ExamFailed {
		t.Errorf("%+v", all)
	}
	if all = Examine(t.Context(), DoctorOptions{Config: "/nowhere"}); len(all) != 1 || all[0].State != ExamFailed {
		t.Errorf("%+v", all)
	}
}

// TestWhatAHomeMayLieOn: file systems and room, judged without having them.
func TestWhatAHomeMayLieOn(t *testing.T) {
	for _, test := range []struct {
		kind       string
		free       uint64
		disk, fits string
	}{
		{"ext4", 2 << 30, ExamOK, ExamOK}, {"ext4", 1<<30 - 1, ExamWarning, ExamOK}, {"xfs", 256<<20 - 1, ExamFailed, ExamOK},
		{"nfs", 1 << 40, ExamOK, ExamFailed}, {"fuse", 1 << 40, ExamOK, ExamFailed}, {"tmpfs", 1 << 40, ExamOK, ExamWarning}, {"overlay", 1 << 40, ExamOK, ExamWarning},
	} {
		got := judgeDisk("/h", test.kind, test.free)
		if len(got) != 2 || got[0].State != test.disk || got[1].State != test.fits {
			t.Errorf("%s with %d bytes: %+v", test.kind, test.free, got)
		}
		for _, e := range got {
			if (e.State == ExamOK) != (e.Hint == "") {
				t.Errorf("state and remedy do not fit: %+v", e)
			}
		}
	}
}

// TestClocksThatDiffer: a machine whose clock is off by more than half a minute is told which way.
func TestClocksThatDiffer(t *testing.T) {
	got := examineClock([]skew{{"a", 30 * time.Second}, {"b", 31 * time.Second}, {"c", -time.Hour}})
	if got[0].State != ExamOK || got[1].State != ExamWarning || !strings.Contains(got[1].Found, "31s behind") || !strings.Contains(got[2].Found, "1h0m0s ahead of") {
		t.Errorf("%+v", got)
	}
}

// TestSecretFilesAreAllKnown: every key of the configuration that names a file with a secret is among those examined.
func TestSecretFilesAreAllKnown(t *testing.T) {
	c := configs.Config{
		Security:   configs.Security{KeyFile: "/1", GossipKeyFile: "/2"},
		Ledger:     configs.Ledger{DSN: configs.NewDSN("file:/3")},
		Processors: []configs.Processor{{IdentityFile: "/4", PassphraseFile: "/5"}},
		Databases:  []configs.Database{{DSN: configs.NewDSN("file:/6")}},
		Storages:   []configs.Storage{{AccessKey: configs.NewSecret("file:/7"), SecretKey: configs.NewSecret("file:/8"), RefreshToken: configs.NewSecret("file:/9")}},
		Notify: configs.Notify{
			Heartbeat: configs.Heartbeat{URL: configs.NewSecret("file:/10")}, Hooks: []configs.Hook{{URL: configs.NewSecret("file:/11"), Secret: configs.NewSecret("file:/12")}},
			Mails: []configs.Mail{{Password: configs.NewSecret("file:/13")}},
		},
	}
	group := configs.Settings{Servers: []configs.Server{{DSN: configs.NewDSN("file:/14")}}, Heartbeats: []configs.Beat{{URL: configs.NewSecret("file:/15")}}}
	if got := secretFiles(&c, &group); len(got) != 15 {
		t.Errorf("%+v", got)
	}
}

// TestDoctorTellsOfKeys: a node that closes backups and has no key that opens them is told of, and nothing is wrong with it.
func TestDoctorTellsOfKeys(t *testing.T) {
	age := func(p configs.Processor) configs.Processor { p.Kind, p.Recipients = "age", []string{"age1"}; return p }
	for _, c := range []struct {
		p    configs.Processor
		told bool
	}{
		{age(configs.Processor{}), true}, {age(configs.Processor{IdentityFile: "/k"}), false}, {age(configs.Processor{PassphraseFile: "/p"}), false},
		{age(configs.Processor{RestoreOnly: true}), false}, {configs.Processor{Kind: "zstd"}, false},
	} {
		got := examineKeys(&configs.Config{Processors: []configs.Processor{c.p}})
		if told := len(got) == 1 && got[0].State == ExamOK && strings.Contains(got[0].Found, "no restore and no verification"); told != c.told || len(got) > 1 {
			t.Errorf("%+v: %+v", c.p, got)
		}
	}
}
