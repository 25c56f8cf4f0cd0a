package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
)

// initCluster is three nodes as `fencepost init` writes them.
func initCluster(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, options{})
	base := freeBase(t, 3)
	s := run(t, command, "init", "--nodes", "n1,n2,n3", "--dir", c.dir, "--base-port", fmt.Sprint(base), "--profile", "lan", "-o", "json")
	var files []offline.InitFile
	if err := json.Unmarshal([]byte(s.out), &files); err != nil || s.code != 0 {
		t.Fatalf("init: %v: %+v", err, s)
	}
	for _, f := range files {
		c.names = append(c.names, f.Node)
		appendFile(t, f.Config, "log: {level: debug, format: json}\n")
	}
	return c
}

// freeBase is a base port for n nodes.
func freeBase(t testing.TB, n int) int {
	t.Helper()
next:
	for range 100 {
		base := freePort(t)
		for i := range n {
			for _, port := range []int{base + 10*i, base + 10*i + 1} {
				l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
				if err != nil {
					continue next
				}
				l.Close()
			}
		}
		return base
	}
	t.Fatal("no free ports")
	return 0
}

func appendFile(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What init writes keeps strangers out, and nobody else: three nodes stand, one is killed and recovered, the gossip keys are
// changed under them, and whoever cannot prove who it is changes nothing.
func TestInitKeepsStrangersOut(t *testing.T) {
	t.Parallel()
	c := initCluster(t)
	c.up()
	run1 := c.runOf("n1", "n3")
	c.kill("n3")
	c.until("the run of n3 is recovered", func() bool {
		list, err := c.client("n1").Recoveries(c.ctx)
		released := 0
		for _, r := range list {
			if r.Run == run1 && r.State == "released" {
				released++
			}
		}
		return err == nil && released > 0
	})
	c.start("n3")
	c.ready("n3")
	c.until("all see three", func() bool { return len(c.view("n1").Members) == 3 && len(c.view("n3").Members) == 3 })
	before := c.view("n1")
	for _, s := range c.strangers() {
		t.Run(s.name, func(t *testing.T) { c.keepOut(t, s) })
	}
	c.changeKeys()
	if after := c.view("n1"); after.Version != before.Version {
		t.Errorf("view %d became %d", before.Version, after.Version)
	}
	c.searchKeys()
}

// stranger is a node that must not get in: it does not start, and says why in one line with the word; or it starts, and
// each side says why.
type stranger struct {
	name   string
	text   string // its configuration
	code   int    // exit code; -1: it runs
	word   string // in what it says
	others string // in what n1 says; empty: nothing
}

func (c *cluster) strangers() []stranger {
	c.t.Helper()
	dir := c.t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	own := func(name string) string { return filepath.Join(c.dir, name) }
	must := func(_ []offline.CertFile, err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	must(offline.NewAuthority(dir, "fencepost", time.Hour))
	must(offline.IssueCert(dir, "fencepost", "n4", time.Hour)) // of another authority
	must(offline.IssueCert(c.dir, "fencepost", "n4", time.Hour))
	must(offline.IssueCert(c.dir, "bank", "n5", time.Hour))
	key, err := offline.NewGossipKey()
	if err == nil {
		err = os.WriteFile(in("gossip.key"), []byte(configs.FormatGossipKey(key)), 0o600)
	}
	if err == nil {
		err = os.WriteFile(in("open.key"), []byte(configs.FormatGossipKey(key)), 0o600)
	}
	if err == nil {
		err = os.Chmod(in("open.key"), 0o644)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	var seed string
	for _, m := range c.view("n1").Members {
		if m.Node == "n1" {
			seed = m.GossipAddr
		}
	}
	text := func(node, gossipBind, cert, ca, gossip string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "node: %s\nhome: %s\nprofile: lan\nseeds: [%q]\ngossip: {bind: %q}\ncluster: {bind: \"127.0.0.1:%d\"}\n", node,
			in("home-"+fmt.Sprint(freePort(c.t))), seed, gossipBind, freePort(c.t))
		fmt.Fprintf(&b, "admin: {socket: %s}\nlog: {format: json}\nsecurity:\n", in("x.sock"))
		if cert != "" {
			fmt.Fprintf(&b, "  certificate_file: %s.pem\n  key_file: %s.key\n  ca_file: %s\n", cert, cert, ca)
		}
		fmt.Fprintf(&b, "  gossip_key_file: %q\n", gossip)
		return b.String()
	}
	bind := func() string { return fmt.Sprintf("127.0.0.1:%d", freePort(c.t)) }
	return []stranger{
		{"no certificate", text("n4", bind(), "", "", own("gossip.key")), -1, "this node has no certificate", "does not speak TLS"},
		{"another authority", text("n4", bind(), in("n4"), in("ca.pem"), own("gossip.key")), -1, "of another authority", "refuses this node's certificate"},
		{"another gossip key", text("n4", bind(), own("n4"), own("ca.pem"), in("gossip.key")), -1, "need the same gossip keys", "need the same gossip keys"},
		{"another group's certificate", text("n5", bind(), own("n5"), own("ca.pem"), own("gossip.key")), 2, "for group bank, not fencepost", ""},
		{"another node's certificate", text("n6", bind(), own("n4"), own("ca.pem"), own("gossip.key")), 2, "for node n4, not n6", ""},
		{"a key for all to read", text("n4", bind(), own("n4"), own("ca.pem"), in("open.key")), 2, "chmod 600", ""},
		{"open to others", text("n4", "0.0.0.0:7946", "", "", own("gossip.key")), 2, "fencepost init", ""},
	}
}

// keepOut starts a stranger and holds what comes of it.
func (c *cluster) keepOut(t *testing.T, s stranger) {
	file := filepath.Join(t.TempDir(), "n.yaml")
	if err := os.WriteFile(file, []byte(s.text), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.code >= 0 {
		out := run(t, daemon, "--config", file, "--no-warden")
		if out.code != s.code || strings.Count(out.err, s.word) != 1 {
			t.Errorf("exit %d: %s", out.code, out.err)
		}
		return
	}
	log, skip := filepath.Join(t.TempDir(), "log"), len(c.logOf("n1"))
	p := startProc(t, log, "--config", file, "--no-warden")
	defer func() { _ = p.cmd.Process.Kill(); <-p.done }()
	said := func(text []byte, word string) int { return len(linesWith(text, word)) }
	c.until("the stranger says: "+s.word, func() bool {
		text, err := os.ReadFile(log)
		return err == nil && said(text, s.word) > 0
	})
	c.until("n1 says: "+s.others, func() bool { return said(c.logOf("n1")[skip:], s.others) > 0 })
	if v := c.view("n1"); len(v.Members) != 3 {
		t.Errorf("the view is %+v", v)
	}
}

func (c *cluster) logOf(name string) []byte {
	text, err := os.ReadFile(filepath.Join(c.dir, name+".log"))
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

// linesWith are the warnings that hold a word.
func linesWith(text []byte, word string) (list []string) {
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte(`"level":"WARN"`)) && bytes.Contains(line, []byte(word)) {
			list = append(list, string(line))
		}
	}
	return list
}

// changeKeys is a whole rotation, step by step on different nodes.
func (c *cluster) changeKeys() {
	c.t.Helper()
	ask := func(node string, args ...string) api.Keyring {
		c.t.Helper()
		s := run(c.t, command, append([]string{"keyring", "--socket", c.socket(node), "-o", "json"}, args...)...)
		var k api.Keyring
		if err := json.Unmarshal([]byte(s.out), &k); err != nil || s.code != 0 || !k.Complete || len(k.Members) != 3 {
			c.t.Fatalf("keyring %v: %v: %+v", args, err, s)
		}
		return k
	}
	old := ask("n1", "list").Keys[0].Fingerprint
	next := ask("n1", "add", "--generate").Keys[1].Fingerprint
	ask("n2", "use", next)
	if k := ask("n3", "remove", old); len(k.Keys) != 1 || k.Keys[0].Fingerprint != next {
		c.t.Errorf("at last: %+v", k)
	}
	if k := ask("n2", "rekey"); len(k.Keys) != 1 || k.Keys[0].Fingerprint == next {
		c.t.Errorf("rekeyed: %+v", k)
	} else {
		next = k.Keys[0].Fingerprint
	}
	if s := run(c.t, command, "keyring", "--socket", c.socket("n1"), "remove", next); s.code != 1 || !strings.Contains(s.err, "in use") {
		c.t.Errorf("the key in use: %+v", s)
	}
}

// searchKeys fails the test when a log holds a gossip key.
func (c *cluster) searchKeys() {
	c.t.Helper()
	var keys []string
	for _, path := range []string{filepath.Join(c.dir, "gossip.key"), filepath.Join(c.dir, "n1", "gossip.keys")} {
		text, err := os.ReadFile(path)
		if err != nil {
			c.t.Fatal(err)
		}
		var f struct{ Keys [][]byte }
		if json.Unmarshal(text, &f) != nil {
			if f.Keys, err = configs.ParseGossipKeys(text); err != nil {
				c.t.Fatal(err)
			}
		}
		for _, k := range f.Keys {
			keys = append(keys, strings.TrimSpace(configs.FormatGossipKey(k)), fmt.Sprintf("%x", k), fmt.Sprint(k))
		}
	}
	if len(keys) != 6 {
		c.t.Errorf("%d keys to search for", len(keys)/3)
	}
	for _, name := range c.names {
		for _, k := range keys {
			if bytes.Contains(c.logOf(name), []byte(k)) {
				c.t.Errorf("the log of %s holds a gossip key", name)
			}
		}
	}
}
