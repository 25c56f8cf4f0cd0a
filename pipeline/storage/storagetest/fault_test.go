package storagetest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

func put(t *testing.T, s storage.Storage, name, content string) error {
	t.Helper()
	_, err := s.Put(t.Context(), name, strings.NewReader(content), storage.Condition{})
	return err
}

func read(t *testing.T, s storage.Storage, name string) (string, error) {
	t.Helper()
	r, _, err := s.Get(t.Context(), name)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

func TestWithoutFaultsItConforms(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Storage {
		return storagetest.Inject(mem.New(), storagetest.Fail(storagetest.Any, errors.New("never")).On("no such object"))
	}, storagetest.InMemory)
}

func TestFailHitsTheNamedCallsOnly(t *testing.T) {
	boom := errors.New("boom")
	inner := mem.New()
	second := storagetest.Fail(storagetest.Put, boom).On("manifest").Nth(2)
	s := storagetest.Inject(inner, second)
	for i, c := range []struct {
		name string
		want error
	}{{"a/manifest", nil}, {"a/data", nil}, {"b/manifest", boom}, {"c/manifest", nil}} {
		if err := put(t, s, c.name, "x"); !errors.Is(err, c.want) {
			t.Errorf("call %d: %v, want %v", i, err, c.want)
		}
	}
	if _, err := inner.Stat(t.Context(), "b/manifest"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the failed put did something: %v", err)
	}
	if second.Hits() != 1 {
		t.Errorf("%d hits", second.Hits())
	}
}

func TestLoseDoesTheWork(t *testing.T) {
	boom := errors.New("boom")
	inner := mem.New()
	s := storagetest.Inject(inner, storagetest.Lose(storagetest.Any, boom))
	if err := put(t, s, "o", "x"); !errors.Is(err, boom) {
		t.Errorf("put: %v", err)
	}
	if got, err := read(t, inner, "o"); got != "x" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := read(t, s, "o"); !errors.Is(err, boom) {
		t.Errorf("get: %v", err)
	}
	if _, err := s.Stat(t.Context(), "o"); !errors.Is(err, boom) {
		t.Errorf("stat: %v", err)
	}
	n, last := 0, error(nil)
	for _, err := range s.List(t.Context(), "") {
		n, last = n+1, err
	}
	if n != 2 || !errors.Is(last, boom) {
		t.Errorf("list: %d entries, %v", n, last)
	}
	if err := s.Delete(t.Context(), "o"); !errors.Is(err, boom) {
		t.Errorf("delete: %v", err)
	}
	if _, err := inner.Stat(t.Context(), "o"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the object is still there: %v", err)
	}
}

func TestStreamsBreakAndEndAtTheNamedByte(t *testing.T) {
	boom := errors.New("boom")
	inner := mem.New()
	if err := put(t, inner, "o", "0123456789"); err != nil {
		t.Fatal(err)
	}
	for n := range int64(11) {
		want := "0123456789"[:n]
		got, err := read(t, storagetest.Inject(inner, storagetest.Break(storagetest.Get, n, boom)), "o")
		if got != want || !errors.Is(err, boom) {
			t.Errorf("break after %d: %q, %v", n, got, err)
		}
		if got, err := read(t, storagetest.Inject(inner, storagetest.Cut(n)), "o"); got != want || err != nil {
			t.Errorf("cut after %d: %q, %v", n, got, err)
		}
		if err := put(t, storagetest.Inject(inner, storagetest.Break(storagetest.Put, n, boom)), "p", "0123456789"); !errors.Is(err, boom) {
			t.Errorf("put broken after %d: %v", n, err)
		}
	}
	if got, err := read(t, storagetest.Inject(inner, storagetest.Break(storagetest.Get, 11, boom)), "o"); got != "0123456789" || err != nil {
		t.Errorf("a fault behind the end: %q, %v", got, err)
	}
	if _, err := inner.Stat(t.Context(), "p"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a broken put left something: %v", err)
	}
}

func TestFaultsCombine(t *testing.T) {
	boom := errors.New("boom")
	var seen []int64
	note := func(n int64) *storagetest.Fault {
		return storagetest.DoAt(storagetest.Put, n, func(context.Context, string) error { seen = append(seen, n); return nil })
	}
	s := storagetest.Inject(mem.New(), note(2), note(5), storagetest.Break(storagetest.Put, 7, boom))
	if err := put(t, s, "o", "0123456789"); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	if len(seen) != 2 || seen[0] != 2 || seen[1] != 5 {
		t.Errorf("hooks ran at %v", seen)
	}
}

func TestStallWaitsForTheGateOrTheContext(t *testing.T) {
	inner := mem.New()
	for _, f := range []func(g *storagetest.Gate) *storagetest.Fault{
		func(g *storagetest.Gate) *storagetest.Fault { return storagetest.Stall(storagetest.Put, g) },
		func(g *storagetest.Gate) *storagetest.Fault { return storagetest.StallAt(storagetest.Put, 3, g) },
	} {
		gate := storagetest.NewGate()
		s := storagetest.Inject(inner, f(gate))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := s.Put(ctx, "o", strings.NewReader("content"), storage.Condition{})
			done <- err
		}()
		<-gate.Reached()
		if _, err := inner.Stat(t.Context(), "o"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("visible while stalled: %v", err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled while stalled: %v", err)
		}
		gate.Release()
		gate.Release()
		if err := put(t, s, "o", "content"); err != nil {
			t.Errorf("after the release: %v", err)
		}
		if err := inner.Delete(t.Context(), "o"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFaultsPrintThemselves(t *testing.T) {
	boom := errors.New("boom")
	gate := storagetest.NewGate()
	for want, f := range map[string]*storagetest.Fault{
		`put of "manifest" (call 2): fail with "boom"`: storagetest.Fail(storagetest.Put, boom).On("manifest").Nth(2),
		`any call: fail with "boom"`:                   storagetest.Fail(storagetest.Any, boom),
		`get, after 100 bytes: end too early`:          storagetest.Cut(100),
		`put (calls 1-3), after 7 bytes: stall`:        storagetest.StallAt(storagetest.Put, 7, gate).Times(3),
		`delete: lose the answer with "boom"`:          storagetest.Lose(storagetest.Delete, boom),
		`put: stall before the answer`:                 storagetest.StallEnd(storagetest.Put, gate),
		`list: run a hook`:                             storagetest.Do(storagetest.List, nil),
	} {
		if got := f.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	s := storagetest.Inject(mem.New(), storagetest.Fail(storagetest.Stat, boom), storagetest.Cut(1))
	_, _ = s.Stat(t.Context(), "o")
	want := "stat: fail with \"boom\" [1 hits]\nget, after 1 bytes: end too early [0 hits]"
	if s.String() != want {
		t.Errorf("got %s", s)
	}
}
