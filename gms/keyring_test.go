package gms

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func keyOf(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func ringWith(version uint64, keys ...byte) ring {
	r := ring{version: version}
	for _, b := range keys {
		r.keys = append(r.keys, keyOf(b))
	}
	return r
}

func TestRingChanges(t *testing.T) {
	base := ringWith(4, 'a', 'b', 'c')
	name := func(b byte) string { return KeyFingerprint(keyOf(b)) }
	for _, c := range []struct {
		what   string
		change func() (ring, error)
		want   ring
		err    error
	}{
		{"add", func() (ring, error) { return base.adding(keyOf('d')) }, ringWith(5, 'a', 'b', 'c', 'd'), nil},
		{"add again", func() (ring, error) { return base.adding(keyOf('b')) }, base, nil},
		{"use", func() (ring, error) { return base.using(name('c')) }, ringWith(5, 'c', 'a', 'b'), nil},
		{"use again", func() (ring, error) { return base.using(name('a')) }, base, nil},
		{"use a stranger", func() (ring, error) { return base.using(name('x')) }, base, ErrNotFound},
		{"remove", func() (ring, error) { return base.removing(name('b')) }, ringWith(5, 'a', 'c'), nil},
		{"remove again", func() (ring, error) { return base.removing(name('x')) }, base, nil},
		{"remove the used one", func() (ring, error) { return base.removing(name('a')) }, base, ErrKeyInUse},
	} {
		got, err := c.change()
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || !got.equal(c.want) {
			t.Errorf("%s: %v, %v; want %v", c.what, got, err, c.want)
		}
	}
	if !base.equal(ringWith(4, 'a', 'b', 'c')) {
		t.Error("a change has changed what it began with")
	}
	full := ringWith(1, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')
	if _, err := full.adding(keyOf('i')); err == nil {
		t.Error("a ring without bound")
	}
	if text := base.String(); strings.Contains(text, "aaaa") || !strings.Contains(text, name('a')) {
		t.Errorf("it prints as %q", text)
	}
}

func TestNewestRing(t *testing.T) {
	for _, c := range []struct {
		name  string
		rings []ring
		want  ring
	}{
		{"one", []ring{ringWith(0, 'a')}, ringWith(0, 'a')},
		{"higher wins", []ring{ringWith(2, 'a'), ringWith(5, 'b'), ringWith(3, 'c')}, ringWith(5, 'b')},
		{"the same", []ring{ringWith(2, 'a', 'b'), ringWith(2, 'a', 'b')}, ringWith(2, 'a', 'b')},
		{"two of one version", []ring{ringWith(2, 'a', 'b'), ringWith(2, 'a', 'c'), ringWith(1, 'z')}, ringWith(3, 'a', 'b', 'c')},
	} {
		if got, err := newest(c.rings); err != nil || !got.equal(c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
	if _, err := newest(nil); err == nil {
		t.Error("a ring of nobody")
	}
}

// Nobody's word is taken for proof: who does not answer, and who lacks the key, is named.
func TestLackingNamesTheUnproven(t *testing.T) {
	all := gathered{
		{node: "n1", ring: ringWith(2, 'a', 'b')}, {node: "n2", ring: ringWith(1, 'a')}, {node: "n3", err: context.DeadlineExceeded},
	}
	lacking := strings.Join(all.lacking(KeyFingerprint(keyOf('b'))), "; ")
	if lacking != "n2: has it not; n3: context deadline exceeded" {
		t.Error(lacking)
	}
	if r := all.report(ringWith(2, 'a', 'b')); r.Complete || len(r.Members) != 3 || r.Members[2].Problem == "" {
		t.Errorf("%+v", r)
	}
}

// A key that one member still encrypts with, since it missed a change, is not taken away from the others.
func TestNoKeyIsTakenFromItsUsers(t *testing.T) {
	base := ringWith(3, 'b', 'a')
	behind := gathered{{node: "n1", ring: base}, {node: "n2", ring: ringWith(2, 'a', 'b')}}
	if _, err := behind.removing(base, KeyFingerprint(keyOf('a'))); !errors.Is(err, ErrKeyInUse) || !strings.Contains(err.Error(), "n2") {
		t.Errorf("while n2 uses it: %v", err)
	}
	if r, err := behind[:1].removing(base, KeyFingerprint(keyOf('a'))); err != nil || !r.equal(ringWith(4, 'b')) {
		t.Errorf("when nobody does: %v, %v", r, err)
	}
}

// The home's own list counts from the first change on, an older one never, and a broken file says what to do, without a key.
func TestHomeKeepsTheRing(t *testing.T) {
	home, _, err := openHome(t.TempDir(), "g")
	if err != nil {
		t.Fatal(err)
	}
	defer home.close()
	open := func(configured ...byte) *keyKeeper {
		t.Helper()
		k, err := openKeys(home, ringWith(0, configured...).keys)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := open('a')
	if !k.now().equal(ringWith(0, 'a')) {
		t.Errorf("at first: %v", k.now())
	}
	for _, c := range []struct {
		r     ring
		taken bool
	}{{ringWith(3, 'a', 'b'), true}, {ringWith(3, 'a', 'b'), true}, {ringWith(3, 'a', 'c'), false}, {ringWith(2, 'c'), false}} {
		if taken, err := k.take(c.r); taken != c.taken || (err == nil) != taken {
			t.Errorf("%v is taken: %v, %v", c.r, taken, err)
		}
	}
	if k := open('z'); !k.now().equal(ringWith(3, 'a', 'b')) {
		t.Errorf("after a restart with other configured keys: %v", k.now())
	}
	info, err := os.Stat(home.path("gossip.keys"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if taken, err := open().take(ringWith(9, 'b')); !taken || err != nil {
		t.Errorf("without configured keys, but with a list: %v", err)
	}
	for _, text := range []string{"{", `{"version": 9}`, `{"version":1,"keys":[]}`, `{"version":1,"ring":1,"keys":["c2VjcmV0c2VjcmV0"]}`, `{"version":1,"keys":["!c2VjcmV0"]}`} {
		if err := os.WriteFile(home.path("gossip.keys"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openKeys(home, nil); err == nil || strings.Contains(err.Error(), "c2Vj") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzRingOf(f *testing.F) {
	f.Add(uint64(1), keyOf('a'), keyOf('b'))
	f.Add(uint64(0), []byte{}, []byte("short"))
	f.Fuzz(func(t *testing.T, version uint64, a, b []byte) {
		r, err := ringOf(&wire.KeyRing{Version: version, Keys: [][]byte{a, b}})
		if err == nil && checkKeys(r.keys) != nil {
			t.Errorf("%d and %d bytes are keys", len(a), len(b))
		}
	})
}
