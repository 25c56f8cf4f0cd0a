package main

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, x := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-help"}, 0, "-keep"},
		{[]string{"-unknown"}, 2, "-unknown"},
		{[]string{"more"}, 2, "no arguments"},
		{[]string{"-daemon", filepath.Join(t.TempDir(), "none")}, 1, "find the daemon"},
	} {
		var out bytes.Buffer
		if code := run(x.args, &out, &out); code != x.code || !strings.Contains(out.String(), x.want) {
			t.Errorf("%v: exit code %d, output %q", x.args, code, out.String())
		}
	}
}

// TestFreePorts: a place where one port is taken, over TCP or UDP, is passed over.
func TestFreePorts(t *testing.T) {
	base, err := freePorts(3, 3)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", base+21))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	next, err := freePorts((base-firstPort)/slotWidth, 3)
	if err != nil || next == base {
		t.Fatalf("found %d again, error %v", next, err)
	}
	p, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", next))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if third, err := freePorts((base-firstPort)/slotWidth, 3); err != nil || third == base || third == next {
		t.Fatalf("found %d, error %v; %d and %d are taken", third, err, base, next)
	}
}

func TestPrefixed(t *testing.T) {
	var out bytes.Buffer
	p := &prefixed{name: "n1", mu: &sync.Mutex{}, w: &out}
	for _, piece := range []string{"on", "e\ntwo\nth", "ree\nrest"} {
		if n, err := p.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("wrote %d of %q: %v", n, piece, err)
		}
	}
	if want := "n1 | one\nn1 | two\nn1 | three\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}
