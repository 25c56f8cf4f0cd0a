package warden

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

func TestObituaryIsReadBack(t *testing.T) {
	o := Obituary{What: Quiesced, Run: [16]byte{1, 2, 3}, Generation: 1 << 40, Node: "n1"}
	signed, err := o.Sign(key(1))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Verify(public(key(1)), signed)
	if err != nil || got.Nonce == [16]byte{} {
		t.Fatalf("%+v, %v", got, err)
	}
	nonce := got.Nonce
	got.Nonce = [16]byte{}
	if got != o {
		t.Errorf("%+v became %+v", o, got)
	}
	again, _ := o.Sign(key(1))
	if other, _ := Verify(public(key(1)), again); other.Nonce == nonce {
		t.Error("two obituaries have one nonce")
	}
}

// TestObituaryLayout holds the bytes that others read by the documentation.
func TestObituaryLayout(t *testing.T) {
	signed, err := Obituary{What: Died, Run: [16]byte{0xaa}, Generation: 7, Node: "node-1"}.Sign(key(1))
	if err != nil {
		t.Fatal(err)
	}
	head := hex.EncodeToString([]byte("FPOBIT1\n")) + "01" + "aa" + strings.Repeat("00", 15) + "0000000000000007"
	if got := hex.EncodeToString(signed[:33]); got != head {
		t.Errorf("begins with %s, want %s", got, head)
	}
	if signed[49] != 6 || string(signed[50:56]) != "node-1" || len(signed) != 56+64 {
		t.Errorf("%x", signed[49:])
	}
	if !ed25519.Verify(public(key(1)), signed[:56], signed[56:]) {
		t.Error("the signature does not cover all before it")
	}
}

func TestForgedObituaries(t *testing.T) {
	signed, err := Obituary{What: Died, Node: "n1"}.Sign(key(1))
	if err != nil {
		t.Fatal(err)
	}
	forged := func(what string, k ed25519.PublicKey, b []byte) {
		t.Helper()
		if _, err := Verify(k, b); !errors.Is(err, ErrForged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	forged("another key", public(key(2)), signed)
	forged("no key", nil, signed)
	forged("one byte more", public(key(1)), append(bytes.Clone(signed), 0))
	for i := range signed {
		forged("cut", public(key(1)), signed[:i])
		changed := bytes.Clone(signed)
		changed[i] ^= 1
		forged("changed", public(key(1)), changed)
	}
	for _, o := range []Obituary{{What: 3, Node: "n1"}, {What: Died}, {What: Died, Node: strings.Repeat("n", 64)}} {
		if _, err := o.Sign(key(1)); err == nil {
			t.Errorf("%+v was signed", o)
		}
	}
}

func FuzzVerify(f *testing.F) {
	signed, err := Obituary{What: Died, Node: "n1"}.Sign(key(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Add([]byte(obituaryMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := Verify(public(key(1)), b); err == nil && !bytes.Equal(b, signed) && len(b) < obituaryFixed+1+ed25519.SignatureSize {
			t.Errorf("%x is accepted", b)
		}
	})
}

func TestSupervisor(t *testing.T) {
	env := map[string]string{"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "7"}
	get := func(name string) string { return env[name] }
	if s := SupervisorFromEnv(get, 7); s.Socket != "/run/x" || s.Watchdog != 2*time.Second {
		t.Errorf("%+v", s)
	}
	if s := SupervisorFromEnv(get, 8); s.Watchdog != 0 {
		t.Errorf("a watchdog for another process: %+v", s)
	}
	if err := (Supervisor{}).tell("READY=1"); err != nil {
		t.Error(err)
	}
	s := Supervisor{Socket: filepath.Join(t.TempDir(), "n")}
	if err := s.tell("READY=1"); err == nil {
		t.Error("nobody listens, and no error")
	}
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.Socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := s.tell("READY=1", "STATUS=x"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := l.Read(b); err != nil || string(b[:n]) != "READY=1\nSTATUS=x" {
		t.Errorf("%q, %v", b[:n], err)
	}
}
