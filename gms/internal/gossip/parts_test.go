package gossip

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What waits of one member: its last state, and an end that lies before it.
func TestCoalesce(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"A1", "A1"},
		{"A1 U2 U3", "A3"},
		{"U1 U2", "U2"},
		{"A1 D1", "D1"},
		{"D1 A2", "D1 A2"},
		{"D1 A2 U3 D3 A4 U5", "D3 A5"},
		{"A1 L1", "L1"},
		{"D1 L1", "L1"},
		{"A1 U2 a1 u2 D2 d2", "D2 d2"},
		{"D1 a1 A2", "D1 a1 A2"},
	} {
		var waiting []Event
		for _, w := range strings.Fields(c.in) {
			waiting = coalesce(waiting, event(w))
		}
		var got []string
		for _, e := range waiting {
			got = append(got, word(e))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s became %s, want %s", c.in, s, c.want)
		}
	}
}

// event reads "A1": kind, in lower case for a second member, and the meta.
func event(w string) Event {
	kinds := map[string]Kind{"A": Alive, "U": Updated, "D": Dead, "L": Left}
	name := "one"
	if strings.ToLower(w) == w {
		name = "two"
	}
	return Event{Kind: kinds[strings.ToUpper(w[:1])], Member: Member{Name: name, Meta: []byte(w[1:])}}
}

func word(e Event) string {
	k := strings.ToUpper(e.Kind.String()[:1])
	if e.Member.Name == "two" {
		k = strings.ToLower(k)
	}
	return k + string(e.Member.Meta)
}

func TestParseLine(t *testing.T) {
	for line, want := range map[string]string{
		"[WARN] memberlist: Refuting a suspect message\n":                         "WARN gossip: Refuting a suspect message",
		"[ERR] memberlist: Failed to decode\n":                                    "WARN gossip: Failed to decode",
		"[DEBUG] memberlist: Stream connection\n":                                 "DEBUG gossip: Stream connection",
		"[INFO] memberlist: Suspect n1 has failed\n":                              "DEBUG gossip: Suspect n1 has failed",
		"[WARN] memberlist: Got ping for unexpected node 'n1/a' from=1.2.3.4:1\n": "DEBUG gossip: Got ping for unexpected node 'n1/a' from=1.2.3.4:1",
		"[ERR] memberlist: Failed fallback TCP ping: EOF\n":                       "DEBUG gossip: Failed fallback TCP ping: EOF",
		"[WARN] memberlist: ignoring alive message for 'n1/a': run is closed\n":   "DEBUG gossip: ignoring alive message for 'n1/a': run is closed",
		"odd":   "DEBUG gossip: odd",
		"[odd":  "DEBUG gossip: [odd",
		"[] x ": "DEBUG gossip: x",
		"":      "DEBUG gossip: ",
	} {
		level, msg := parseLine([]byte(line))
		if got := fmt.Sprint(level, " ", msg); got != want {
			t.Errorf("%q became %q, want %q", line, got, want)
		}
	}
	if level, _ := parseLine([]byte("[ERR] x")); level != slog.LevelWarn {
		t.Errorf("an error is %v", level)
	}
}

func TestAdvertisedAddress(t *testing.T) {
	for _, c := range []struct{ want, bound, got string }{
		{"", "127.0.0.1:7946", "127.0.0.1:7946"},
		{"192.0.2.1:0", "0.0.0.0:7946", "192.0.2.1:7946"},
		{"192.0.2.1:9000", "0.0.0.0:7946", "192.0.2.1:9000"},
		{"[2001:db8::1]:0", "[::]:7946", "[2001:db8::1]:7946"},
		{"", "[::ffff:127.0.0.1]:7946", "127.0.0.1:7946"},
		{"", "0.0.0.0:7946", ""},
		{"", "[::]:7946", ""},
		{"host:1", "127.0.0.1:1", ""},
	} {
		a, err := advertised(c.want, netip.MustParseAddrPort(c.bound))
		if err != nil && c.got != "" || err == nil && a.String() != c.got {
			t.Errorf("%q bound to %s: %v, %v", c.want, c.bound, a, err)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Name: "n/1", BindAddr: "127.0.0.1:0", Network: system{}}
	for what, edit := range map[string]func(*Config){
		"Name":     func(c *Config) { c.Name = "" },
		"Label":    func(c *Config) { c.Label = strings.Repeat("x", 256) },
		"BindAddr": func(c *Config) { c.BindAddr = "" },
		"Network":  func(c *Config) { c.Network = nil },
	} {
		cfg := good
		edit(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, edit := range map[string]func(*Config){ // found at Start, with nothing left open
		"a host name":     func(c *Config) { c.BindAddr = "localhost:0" },
		"no address":      func(c *Config) { c.BindAddr = "0.0.0.0:0" },
		"a key of 1 byte": func(c *Config) { c.Keys = [][]byte{{1}} },
	} {
		cfg := good
		edit(&cfg)
		g, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Start(t.Context()); err == nil {
			t.Errorf("%s is taken", what)
		}
		g.Stop()
	}
}

// FIELD.md M20: who answers streams but no datagrams is counted, for a while.
func TestWhoIsReachedByStreamOnlyIsKnown(t *testing.T) {
	var b blocked
	l := bridge(slog.New(slog.DiscardHandler), &b)
	l.Printf("[WARN] memberlist: Was able to connect to n2/ab over TCP but UDP probes failed, network may be misconfigured")
	l.Printf("[WARN] memberlist: Was able to connect to the end of the world")
	if got := b.recent(time.Now()); len(got) != 1 || got["n2/ab"].IsZero() {
		t.Errorf("%v", got)
	}
	if got := b.recent(time.Now().Add(blockedFor + time.Second)); len(got) != 0 {
		t.Errorf("remembered for ever: %v", got)
	}
}

// Who has other keys, or none, or is of another group, is one line a minute for each host and reason.
func TestStrangersAreOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		l := bridge(slog.New(slog.NewTextHandler(&out, nil)), &blocked{})
		say := func(text string) { l.Print(text) }
		for range 100 {
			say("[ERR] memberlist: Decrypt packet failed: no installed keys could decrypt the message from=10.0.0.9:1234")
			say("[ERR] memberlist: failed to receive: encryption is configured but remote state is not encrypted from=10.0.0.9:99")
			say("[ERR] memberlist: discarding packet with unacceptable label \"x\": from=10.0.0.8:1")
			say("[ERR] memberlist: failed to receive: remote state is encrypted and encryption is not configured from=[fd00::1]:1")
		}
		text := out.String()
		for _, want := range []string{
			`need the same gossip keys" from=10.0.0.9`, `another group" from=10.0.0.8`, `this node has no gossip key" from=fd00::1`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is not in\n%s", want, text)
			}
		}
		if n := strings.Count(text, "\n"); n != 3 {
			t.Errorf("%d lines:\n%s", n, text)
		}
		<-time.After(strangerEvery)
		say("[ERR] memberlist: Decrypt packet failed: no installed keys could decrypt the message from=10.0.0.9:5")
		if n := strings.Count(out.String(), "\n"); n != 4 {
			t.Errorf("%d lines a minute later", n)
		}
	})
}
