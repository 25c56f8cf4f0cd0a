package offline

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/configs"
)

func options(t *testing.T) InitOptions {
	t.Helper()
	return InitOptions{Nodes: []string{"n1", "n2", "n3"}, Dir: filepath.Join(t.TempDir(), "new", "try")}
}

// TestInitWritesWhatLoads: every file is a valid configuration of its node.
func TestInitWritesWhatLoads(t *testing.T) {
	o := options(t)
	o.Group, o.Profile, o.BasePort = "shop", "local", 20000
	const hostile = `postgres://u:p%20"\ü'{}#: @h/d` + "\t\x01"
	o.Databases = []string{"shop=host=h password='a=b # \\' c' dbname=d", "other=env:OTHER_DSN", "odd=host=" + hostile}
	o.Storages = []string{"disk=/srv/a b", "near=x/../y"}
	files, err := Init(o)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for i, f := range files {
		c, err := configs.LoadWith(f.Config, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.Node != o.Nodes[i] || c.Group != "shop" || c.Profile != configs.ProfileLocal || !slices.Equal(c.Bootstrap, o.Nodes) {
			t.Errorf("%s: %+v", f.Config, c)
		}
		if len(c.Seeds) != 2 || slices.Contains(c.Seeds, c.Gossip.Bind) {
			t.Errorf("%s: seeds %v, want the two others", f.Config, c.Seeds)
		}
		for what, value := range map[string]string{"home": c.Home, "socket": c.Admin.Socket, "gossip": c.Gossip.Bind, "cluster": c.Cluster.Bind, "admin": c.Admin.Bind} {
			if other, twice := seen[value]; twice {
				t.Errorf("%s of %s is %s of another node", what, c.Node, other)
			}
			seen[value] = what
		}
		sec := c.Security
		want := InitFile{
			c.Node, f.Config, c.Home, c.Admin.Socket, c.Gossip.Bind, c.Cluster.Bind, c.Admin.Bind,
			[]string{sec.CertificateFile, sec.KeyFile, sec.CAFile, sec.GossipKeyFile},
		}
		if !reflect.DeepEqual(f, want) {
			t.Errorf("said %+v, wrote %+v", f, want)
		}
		if warnings, err := CheckSecurity(c, time.Now()); err != nil || len(warnings) > 0 {
			t.Errorf("what init wrote is not secure: %v, %v", warnings, err)
		}
		if c.Home != filepath.Join(filepath.Dir(f.Config), c.Node) {
			t.Errorf("home %s is not below the directory", c.Home)
		}
		for j, want := range []string{"host=h password='a=b # \\' c' dbname=d", "", "host=" + hostile} {
			if got, err := c.Databases[j].DSN.Resolve(); want != "" && (err != nil || got != want) {
				t.Errorf("dsn %d is %q (%v), want %q", j, got, err, want)
			}
		}
		if c.Storages[0].Path != "/srv/a b" || !strings.HasSuffix(c.Storages[1].Path, "/offline/y") {
			t.Errorf("storages %+v", c.Storages)
		}
	}
	if files[1].Gossip != "127.0.0.1:20010" || files[1].Cluster != "127.0.0.1:20011" || files[1].Admin != "127.0.0.1:20012" {
		t.Errorf("ports of the second node: %+v", files[1])
	}
	checkModes(t, filepath.Dir(files[0].Config))
}

func checkModes(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v: others may read it", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestInitDefaults: one node with nothing said but its name.
func TestInitDefaults(t *testing.T) {
	o := InitOptions{Nodes: []string{"n1"}, Dir: t.TempDir()}
	files, err := Init(o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := configs.LoadWith(files[0].Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := configs.Default()
	if c.Group != want.Group || c.Profile != want.Profile || c.Gossip != want.Gossip || c.Cluster != want.Cluster || len(c.Seeds) != 0 {
		t.Errorf("%+v", c)
	}
}

// TestInitAddresses: nodes on machines of their own have the same ports, those of one machine ports of their own.
func TestInitAddresses(t *testing.T) {
	o := InitOptions{Nodes: []string{"n1=10.0.0.1", "n2=fd00::2", "n3=10.0.0.1"}, Dir: t.TempDir()}
	files, err := Init(o)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"10.0.0.1:7946", "[fd00::2]:7946", "10.0.0.1:7956"} {
		c, err := configs.LoadWith(files[i].Config, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.Gossip.Bind != want || c.Node != []string{"n1", "n2", "n3"}[i] {
			t.Errorf("%s is bound to %s, want %s", c.Node, c.Gossip.Bind, want)
		}
		text, err := os.ReadFile(c.Security.CertificateFile)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{strings.Trim(want[:strings.LastIndex(want, ":")], "[]"), c.Node, "localhost"} {
			if err := certificate.VerifyHostname(host); err != nil {
				t.Errorf("a browser that calls %s: %v", c.Node, err)
			}
		}
	}
}

// TestInitRefuses: an error, and not one file.
func TestInitRefuses(t *testing.T) {
	cases := []struct {
		name   string
		change func(*InitOptions)
		want   string
	}{
		{"no nodes", func(o *InitOptions) { o.Nodes = nil }, "--nodes"},
		{"no directory", func(o *InitOptions) { o.Dir = "" }, "--dir"},
		{"bad node", func(o *InitOptions) { o.Nodes[1] = "N2" }, `"N2"`},
		{"node climbs", func(o *InitOptions) { o.Nodes[1] = "../x" }, `"../x"`},
		{"node twice", func(o *InitOptions) { o.Nodes[1] = "n1" }, `bootstrap[1]: is "n1"`},
		{"bad group", func(o *InitOptions) { o.Group = "a b" }, "group"},
		{"bad profile", func(o *InitOptions) { o.Profile = "fast" }, "profile"},
		{"negative port", func(o *InitOptions) { o.BasePort = -1 }, "base port -1"},
		{"port too high", func(o *InitOptions) { o.BasePort = 65530 }, "choose one from 1 to 65513"},
		{"an address for one", func(o *InitOptions) { o.Nodes[1] = "n2=10.0.0.2" }, "an address to all nodes or to none"},
		{"no address", func(o *InitOptions) { o.Nodes = []string{"n1=here"} }, `"here" is not an IP address`},
		{"database without dsn", func(o *InitOptions) { o.Databases = []string{"hunter2"} }, "--database: want name=dsn"},
		{"bad dsn", func(o *InitOptions) { o.Databases = []string{"a=hunter2"} }, "databases[0].dsn"},
		{"database twice", func(o *InitOptions) { o.Databases = []string{"a=env:X", "a=env:Y"} }, "databases[1].name"},
		{"storage without path", func(o *InitOptions) { o.Storages = []string{"disk="} }, "--storage disk="},
		{"long path", func(o *InitOptions) { o.Dir = filepath.Join(o.Dir, strings.Repeat("d", 100)) }, "admin.socket"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := options(t)
			dir := o.Dir
			c.change(&o)
			_, err := Init(o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Fatal("something was written")
			}
		})
	}
}

// TestInitOverwritesNothing: whatever of the last node is there stops all of it.
func TestInitOverwritesNothing(t *testing.T) {
	for _, name := range []string{"n3.yaml", "n3.sock", "n3", "n3.key", "ca.key", "gossip.key"} {
		o := InitOptions{Nodes: []string{"n1", "n2", "n3"}, Dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(o.Dir, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Init(o); !errors.Is(err, fs.ErrExist) {
			t.Fatalf("%s: error %v, want fs.ErrExist", name, err)
		}
		entries, err := os.ReadDir(o.Dir)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%s: the directory holds %v (%v)", name, entries, err)
		}
	}
}

// TestWriteAllOrNone: a file that cannot be written takes the others away.
func TestWriteAllOrNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "try")
	o := InitOptions{Nodes: []string{"n1", "n2"}, Dir: dir}
	plans, err := o.plans()
	if err != nil {
		t.Fatal(err)
	}
	outputs := []output{{plans[0].path, "x"}, {filepath.Join(dir, "no", "such", "folder"), "y"}}
	if err := writeAll(dir, outputs); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("left behind: %v", err)
	}
}
