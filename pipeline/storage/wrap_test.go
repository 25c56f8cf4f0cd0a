package storage_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/local"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// stack is every wrapper on s, as a composition root stacks them.
func stack(s storage.Storage, logger *slog.Logger) storage.Storage {
	s = storage.Log(s, "disk", logger)
	s = storage.Limit(s, storage.NewLimiter(0), storage.NewLimiter(1<<40))
	return storage.Retry(s, storage.RetryOptions{})
}

// Wrappers keep the contract: the whole stack passes the suite that storages pass.
func TestWrappersConform(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Storage { return stack(mem.New(), slog.New(slog.DiscardHandler)) }, storagetest.InMemory)
}

// The whole suite under every single fault that a retry is there for: a call that fails before anything has happened, and
// one without effect, or whose effect is the same twice, of which the answer is lost.
func TestConformanceUnderEachFault(t *testing.T) {
	passes := errors.New("this passes")
	at := func(f *storagetest.Fault, n int) *storagetest.Fault { return f.Nth(n) }
	var all []func() *storagetest.Fault
	for _, op := range []storagetest.Op{storagetest.Put, storagetest.Get, storagetest.Stat, storagetest.List, storagetest.Delete} {
		for n := 1; n <= 2; n++ {
			all = append(all, func() *storagetest.Fault { return at(storagetest.Fail(op, passes), n) })
			if op != storagetest.Put {
				all = append(all, func() *storagetest.Fault { return at(storagetest.Lose(op, passes), n) })
			}
		}
	}
	stores := map[string]func(t *testing.T) storage.Storage{
		"mem": func(*testing.T) storage.Storage { return mem.New() },
		"local": func(t *testing.T) storage.Storage {
			s, err := local.Open(local.Options{Root: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
	}
	if os.Getenv("FENCEPOST_LONG") == "" {
		delete(stores, "local") // it waits for the disk each time
	}
	for name, open := range stores {
		for _, fault := range all {
			t.Run(name+" "+fault().String(), func(t *testing.T) {
				hits := 0
				storagetest.Run(t, func(t *testing.T) storage.Storage {
					f := fault()
					t.Cleanup(func() { hits += f.Hits() })
					return storage.Retry(storagetest.Inject(open(t), f), storage.RetryOptions{First: time.Millisecond, Longest: time.Millisecond})
				}, storagetest.InMemory)
				if hits == 0 {
					t.Error("it struck nobody")
				}
			})
		}
	}
}

func TestGuardConforms(t *testing.T) {
	// The guard hides the storage until it has an owner; the suite's own part about owners begins without one.
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		inner := mem.New()
		if strings.HasSuffix(t.Name(), "/Owner") || strings.HasSuffix(t.Name(), "/HidesReserved") {
			return inner
		}
		if _, err := storage.Adopt(t.Context(), inner, storage.Adoption{Cluster: "c1"}); err != nil {
			t.Fatal(err)
		}
		return storage.Owned(inner, "c1")
	}, storagetest.InMemory)
}

func TestAsLooksThroughTheStack(t *testing.T) {
	inner := mem.New()
	s := storage.Owned(stack(storagetest.Inject(inner), slog.New(slog.DiscardHandler)), "c1")
	if got, ok := storage.As[*mem.Storage](s); !ok || got != inner {
		t.Errorf("got %v, %v", got, ok)
	}
	if got, ok := storage.As[*storage.Guard](s); !ok || got != s {
		t.Errorf("got %v, %v", got, ok)
	}
	if _, ok := storage.As[interface{ NoSuchAbility() }](s); ok {
		t.Error("found an ability that nobody has")
	}
	if _, ok := storage.As[*mem.Storage](nil); ok {
		t.Error("found something in nothing")
	}
}

func TestLimitSpreadsUploadsOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		s := storage.Limit(inner, storage.NewLimiter(1000), nil)
		start := time.Now()
		put(t, s, "o", strings.Repeat("x", 5000))
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("5000 bytes at 1000 B/s took %v", took)
		}
		start = time.Now()
		r, _, err := s.Get(t.Context(), "o")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, r); n != 5000 || err != nil || time.Since(start) != 0 {
			t.Errorf("unlimited download: %d bytes in %v, %v", n, time.Since(start), err)
		}
	})
}

func TestLimitSpreadsDownloadsOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		put(t, inner, "o", strings.Repeat("x", 1<<20))
		s := storage.Limit(inner, nil, storage.NewLimiter(1<<18))
		start := time.Now()
		r, _, err := s.Get(t.Context(), "o")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, r); n != 1<<20 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took.Round(time.Millisecond) != 4*time.Second {
			t.Errorf("1 MiB at 256 KiB/s took %v", took)
		}
	})
}

func TestALimiterIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := storage.NewLimiter(1000)
		start := time.Now()
		var wg sync.WaitGroup
		for range 4 {
			s := storage.Limit(mem.New(), limiter, nil)
			wg.Go(func() {
				if _, err := s.Put(t.Context(), "o", strings.NewReader(strings.Repeat("x", 1000)), storage.Condition{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("4 x 1000 bytes at 1000 B/s together took %v", took)
		}
	})
}

func TestALimitedPutEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		s := storage.Limit(inner, storage.NewLimiter(10), nil)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := s.Put(ctx, "o", strings.NewReader(strings.Repeat("x", 1000)), storage.Condition{})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if _, err := inner.Stat(t.Context(), "o"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("something was stored: %v", err)
		}
	})
}

func TestANilLimiterNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var none *storage.Limiter
		if err := none.Wait(t.Context(), 1<<30); err != nil {
			t.Error(err)
		}
		if err := storage.NewLimiter(0).Wait(t.Context(), 1<<30); err != nil {
			t.Error(err)
		}
		if time.Since(start) != 0 {
			t.Error("waited")
		}
	})
}

func TestLogTellsEachCall(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	boom := errors.New("boom")
	s := storage.Log(storagetest.Inject(mem.New(), storagetest.Break(storagetest.Get, 3, boom), storagetest.Fail(storagetest.Stat, boom)), "disk", logger)
	put(t, s, "a/b", "content")
	r, _, err := s.Get(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Stat(t.Context(), "a/b"); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	for range s.List(t.Context(), "a") {
	}
	if err := s.Delete(t.Context(), "a/b"); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range [][]string{
		{`"storage: put"`, "storage=disk", "object=a/b", "bytes=7"},
		{`"storage: get"`, "object=a/b", "bytes=3", "error=boom"},
		{`"storage: stat"`, "error=boom"},
		{`"storage: list"`, "object=a"},
		{`"storage: delete"`, "object=a/b"},
	} {
		if i >= len(lines) {
			t.Fatalf("only %d lines:\n%s", len(lines), out.String())
		}
		for _, part := range append(want, "level=DEBUG", "took=") {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d lacks %s: %s", i, part, lines[i])
			}
		}
	}
	if len(lines) != 5 {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
}
