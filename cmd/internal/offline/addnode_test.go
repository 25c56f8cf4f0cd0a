package offline

import (
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

// written is a group as init writes it, with more in the first node's file; it returns the directory.
func written(t *testing.T, nodes []string, more string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "try")
	files, err := Init(InitOptions{Nodes: nodes, Dir: dir, BasePort: 20000, Group: "shop", Storages: []string{"disk=/srv/a"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(files[0].Config)
	if err == nil {
		err = os.WriteFile(files[0].Config, append(text, more...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAddNode: what is written loads, has names, ports and a certificate of its own, and all else of the node that it is like,
// comments included.
func TestAddNode(t *testing.T) {
	const more = "# nightly at one\nschedules:\n  - {name: nightly, database: x, cron: \"0 1 * * *\"}\ndatabases:\n  - {name: x, dsn: \"env:X\"}\nlabels: [fast]\nstop:\n  grace: 2m\n"
	for name, c := range map[string]struct {
		nodes         []string
		add           string
		gossip, admin string
		seeds         []string
	}{
		"on the same machine": {[]string{"n1", "n2", "n3"}, "n4", "127.0.0.1:20030", "127.0.0.1:20032", []string{"127.0.0.1:20000", "127.0.0.1:20010", "127.0.0.1:20020"}},
		"on one of its own":   {[]string{"n1=10.0.0.1", "n2=10.0.0.2"}, "n4=10.0.0.4", "10.0.0.4:20000", "10.0.0.4:20002", []string{"10.0.0.1:20000", "10.0.0.2:20000"}},
		"beside another":      {[]string{"n1=10.0.0.1", "n2=10.0.0.2"}, "n4=10.0.0.2", "10.0.0.2:20010", "10.0.0.2:20012", []string{"10.0.0.1:20000", "10.0.0.2:20000"}},
		"to a group of one":   {[]string{"n1=fd00::1"}, "n4=fd00::4", "[fd00::4]:20000", "[fd00::4]:20002", []string{"[fd00::1]:20000"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t, c.nodes, more)
			like := filepath.Join(dir, "n1.yaml")
			o := AddOptions{Node: c.add, Like: like, Dir: dir}
			made, err := AddNode(o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := configs.LoadWith(made.Config, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Node != "n4" || got.Gossip.Bind != c.gossip || got.Admin.Bind != c.admin || !slices.Equal(got.Seeds, c.seeds) || len(got.Bootstrap) != 0 ||
				got.Home != filepath.Join(dir, "n4") || got.Admin.Socket != filepath.Join(dir, "n4.sock") {
				t.Errorf("%+v", got)
			}
			if warnings, err := CheckSecurity(got, time.Now()); err != nil || len(warnings) > 0 {
				t.Errorf("it is not secure: %v, %v", warnings, err)
			}
			old, err := configs.LoadWith(like, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Schedules, old.Schedules) || !reflect.DeepEqual(got.Storages, old.Storages) || got.Stop != old.Stop || got.Group != "shop" ||
				got.Security.CAFile != old.Security.CAFile || got.Security.GossipKeyFile != old.Security.GossipKeyFile {
				t.Errorf("not as the other: %+v", got)
			}
			text, err := os.ReadFile(made.Config)
			if err != nil || !strings.Contains(string(text), "# nightly at one\n") {
				t.Errorf("the comments are lost: %s, %v", text, err)
			}
			if !slices.Equal(made.Seeds, c.seeds) {
				t.Errorf("%+v", made)
			}
			checkModes(t, dir)
			if _, err := AddNode(o); !errors.Is(err, fs.ErrExist) {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// TestAddNodeRefuses: nothing is written for a node that could not join, nor from a file whose form is not understood.
func TestAddNodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		add    string
		change func(dir string) error
		want   string
	}{
		"its own name":    {add: "n1", want: "the node of --like"},
		"no address":      {add: "n4=here", want: "not an IP address"},
		"no name":         {add: "N4", want: "node: is \"N4\""},
		"no authority":    {add: "n4", change: func(dir string) error { return os.Remove(filepath.Join(dir, "ca.key")) }, want: "authority's key"},
		"open for others": {add: "n4", change: func(dir string) error { return os.Chmod(filepath.Join(dir, "ca.key"), 0o644) }, want: "chmod 600"},
		"in one line": {add: "n4", change: func(dir string) error {
			path := filepath.Join(dir, "n1.yaml")
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, []byte(strings.Replace(string(text), "gossip:\n  bind:", "\"gossip\":\n  bind:", 1)), 0o600)
		}, want: "form is not understood"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t, []string{"n1", "n2"}, "")
			if c.change != nil {
				if err := c.change(dir); err != nil {
					t.Fatal(err)
				}
			}
			_, err := AddNode(AddOptions{Node: c.add, Like: filepath.Join(dir, "n1.yaml"), Dir: dir})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*4.*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
