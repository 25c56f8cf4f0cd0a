package dropbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/secret"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

// box is an emulator behind a real HTTP server.
type box struct {
	*dropboxtest.Server
	url string
}

func newBox(t testing.TB, o dropboxtest.Options) *box {
	t.Helper()
	o.Dir = t.TempDir()
	s, err := dropboxtest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return &box{s, web.URL}
}

// waits are the pauses that calls have made, none of which takes time in a test.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) wait(ctx context.Context, d time.Duration) error {
	if d > 0 {
		w.mu.Lock()
		w.all = append(w.all, d)
		w.mu.Unlock()
	}
	return ended(ctx)
}

func (w *waits) longest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest := time.Duration(0)
	for _, d := range w.all {
		longest = max(longest, d)
	}
	return longest
}

// account is one that waits in no time.
func (b *box) account(t testing.TB) (*Account, *waits) {
	t.Helper()
	a, err := NewAccount(AccountOptions{AppKey: dropboxtest.DefaultAppKey, RefreshToken: secret.New(dropboxtest.DefaultRefreshToken), Endpoint: b.url})
	if err != nil {
		t.Fatal(err)
	}
	w := &waits{}
	a.wait = w.wait
	t.Cleanup(func() { _ = a.Close() })
	return a, w
}

// open is a storage with the smallest parts.
func (b *box) open(t testing.TB) *Storage {
	t.Helper()
	a, _ := b.account(t)
	return opened(t, Options{Account: a, Folder: "Fence post/x", PartSize: MinPart})
}

func opened(t testing.TB, o Options) *Storage {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>16) ^ byte(i>>8) ^ byte(i)
	}
	return b
}

func store(t testing.TB, s *Storage, name string, b []byte) storage.Info {
	t.Helper()
	info, err := s.Put(t.Context(), name, bytes.NewReader(b), storage.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func read(t testing.TB, s *Storage, name string) []byte {
	t.Helper()
	r, _, err := s.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

func wantErr(t testing.TB, what string, err, class error, text ...string) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("%s: %v, want %v", what, err, class)
		return
	}
	for _, part := range text {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q in it", what, err, part)
		}
	}
	if strings.Contains(err.Error(), dropboxtest.DefaultRefreshToken) || strings.Contains(err.Error(), "access-") {
		t.Errorf("%s: a secret in %v", what, err)
	}
}

var _ storage.Storage = (*Storage)(nil)
