package dropbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Storage { return newBox(t, dropboxtest.Options{}).open(t) })
}

// The suite with the smallest pages, and access tokens that are good for twenty requests.
func TestConformanceSmallPagesShortTokens(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		return newBox(t, dropboxtest.Options{PageSize: 1, TokenCalls: 20}).open(t)
	})
}

// passing are the faults that a caller must not notice, whatever request they hit.
func passing() map[string]func() *dropboxtest.Fault {
	return map[string]func() *dropboxtest.Fault{
		"reset":         dropboxtest.Reset,
		"break":         func() *dropboxtest.Fault { return dropboxtest.Break(1000) },
		"lose":          dropboxtest.Lose,
		"unsure":        dropboxtest.Unsure,
		"cut":           func() *dropboxtest.Fault { return dropboxtest.Cut(3) },
		"twice":         dropboxtest.Twice,
		"rate limit":    func() *dropboxtest.Fault { return dropboxtest.RateLimit(15 * time.Second) },
		"write limit":   func() *dropboxtest.Fault { return dropboxtest.WriteLimit(0) },
		"bare 429":      func() *dropboxtest.Fault { return dropboxtest.Refuse(429, "") },
		"503":           func() *dropboxtest.Fault { return dropboxtest.Refuse(503, "<html>busy</html>") },
		"proxy":         func() *dropboxtest.Fault { return dropboxtest.Refuse(502, "Bad Gateway") },
		"expired token": func() *dropboxtest.Fault { return dropboxtest.Tagged(401, "expired_access_token").On("files/") },
		"text of 409":   func() *dropboxtest.Fault { return dropboxtest.Refuse(409, "<html>conflict</html>") },
		"text of 401":   func() *dropboxtest.Fault { return dropboxtest.Refuse(401, "who are you?").On("files/") },
	}
}

// The whole suite while one request in thirty meets one kind of fault.
func TestConformanceUnderEachFault(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (the suite once for each kind of fault)")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, fault := range passing() {
		t.Run(name, func(t *testing.T) {
			storagetest.Run(t, func(t *testing.T) storage.Storage {
				b := newBox(t, dropboxtest.Options{PageSize: 3})
				b.Inject(fault().OneIn(30, seed))
				return b.open(t)
			})
		})
	}
}

// All kinds of faults within one suite.
func TestConformanceUnderMixedFaults(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		b := newBox(t, dropboxtest.Options{PageSize: 3})
		seed := uint64(0)
		for _, fault := range passing() {
			seed++
			b.Inject(fault().OneIn(100, seed))
		}
		return b.open(t)
	})
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"a": "a", "b1/17/data": "b1+/17+/data", "Backups/2026.09/data": "%42ackups+/2026.09+/data", "a b": "a%20b", ".x.": "%2ex%2e",
		"a..b": "a%2e%2eb", "desktop.ini": "desktop%2eini", "ü": "%c3%bc", storage.OwnerName: "_fencepost+/owner.json", "50%": "50%25",
	} {
		if got := encode(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
		if got, ok := decode(want); got != name || !ok {
			t.Errorf("%q: back to %q, %v", want, got, ok)
		}
	}
	for _, path := range []string{"A", "a/b", "a%2", "a%zz", "%61", "a+", "a=/b", "a+x/b", "a.", "%C3%bc", "+/a"} {
		if name, ok := decode(path); ok && encode(name) == path && path != "+/a" {
			t.Errorf("%q is taken for %q", path, name)
		} else if ok && storage.ValidName(name) == nil {
			t.Errorf("%q is taken for %q", path, name)
		}
	}
	long := encode(fmt.Sprintf("%0200d/%s", 1, string(make([]byte, 200))))
	if len(long) < 800 {
		t.Fatal(long)
	}
}
