package gms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func putCommand(component, key, value string) *wire.Command {
	return &wire.Command{Run: runOf(1).Bytes(), Op: &wire.Command_CacheTxn{CacheTxn: &wire.CacheTxn{Puts: []*wire.CachePut{
		{Key: &wire.CacheKey{Component: component, Key: key}, Value: []byte(value)},
	}}}}
}

// watched collects what a watch yields until it has n changes, or an error.
func watched(t *testing.T, g *looseGroup, from uint64, n int) (words []string, last uint64, err error) {
	t.Helper()
	for c, err := range g.Cache().Watch(t.Context(), "c", from) {
		if err != nil {
			return words, last, err
		}
		if c.Version <= last {
			t.Fatalf("version %d after %d", c.Version, last)
		}
		last = c.Version
		for _, e := range c.Events {
			words = append(words, fmt.Sprintf("%s=%s", e.Key.Key, e.Value))
		}
		if n--; n == 0 {
			break
		}
	}
	return words, last, nil
}

// A watch misses nothing between the position it was given and now, and goes on with what comes.
func TestWatchHasNoGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		g.settle()
		g.must(putCommand("c", "a", "1"))
		entries, from := g.Cache().ReadAll("c")
		if len(entries) != 1 || entries[0].Version != from {
			t.Fatalf("entries %+v at %d", entries, from)
		}
		g.must(putCommand("c", "a", "2"), putCommand("other", "x", "y"), putCommand("c", "b", "3")) // one entry
		g.must(putCommand("other", "x", "z"))
		go func() {
			synctest.Wait()
			g.must(putCommand("c", "a", "4"))
		}()
		words, last, err := watched(t, g, from, 2)
		if got := fmt.Sprint(words); got != "[a=2 b=3 a=4]" || err != nil {
			t.Errorf("watched %s, %v", got, err)
		}
		g.must(putCommand("c", "c", "5"))
		if words, _, err := watched(t, g, last, 1); fmt.Sprint(words) != "[c=5]" || err != nil {
			t.Errorf("watched on: %v, %v", words, err)
		}
	})
}

// Written wakes those that wait for a component's entries, and nobody else: not at entries of another component, nor of the
// rest of the log.
func TestWrittenWakesForItsComponentOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		g.settle()
		closed := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		c, other := g.Cache().Written("c"), g.Cache().Written("other")
		if again := g.Cache().Written("c"); again != c {
			t.Error("two who wait for the same are not woken together")
		}
		any := g.Cache().Changed()
		g.must(putCommand("other", "x", "y"))
		synctest.Wait()
		if closed(c) || !closed(other) || !closed(any) {
			t.Errorf("an entry of other: c %v, other %v, any %v; want false, true, true", closed(c), closed(other), closed(any))
		}
		g.must(putCommand("c", "a", "1"))
		synctest.Wait()
		if !closed(c) {
			t.Error("an entry of c woke nobody")
		}
		c, other = g.Cache().Written("c"), g.Cache().Written("other")
		g.rep.mu.Lock()
		g.rep.install(g.rep.m)
		g.rep.mu.Unlock()
		if !closed(c) || !closed(other) {
			t.Error("a snapshot, which may have changed anything, woke not all")
		}
	})
}

func TestWatchSaysWhatItDoesNotHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		g.settle()
		_, from := g.Cache().ReadAll("c")
		for range keptChanges {
			g.must(putCommand("c", "a", "1"))
		}
		if words, _, err := watched(t, g, from, keptChanges); len(words) != keptChanges || err != nil {
			t.Errorf("%d changes, %v", len(words), err)
		}
		g.must(putCommand("c", "a", "2"))
		if _, _, err := watched(t, g, from, 1); !errors.Is(err, ErrGap) {
			t.Errorf("too far back: %v", err)
		}
		_, now := g.Cache().ReadAll("c")
		big := string(make([]byte, MaxValue))
		for range keptBytes/MaxValue + 1 {
			g.must(putCommand("c", "a", big))
		}
		if _, _, err := watched(t, g, now, 1); !errors.Is(err, ErrGap) {
			t.Errorf("more than is kept: %v", err)
		}
		if err := g.rep.Restore(bytes.NewReader(g.snapshot())); err != nil {
			t.Fatal(err)
		}
		_, after := g.Cache().ReadAll("c")
		if _, _, err := watched(t, g, after-1, 1); !errors.Is(err, ErrGap) {
			t.Errorf("before a snapshot: %v", err)
		}
		g.must(putCommand("c", "a", "3"))
		if words, _, err := watched(t, g, after, 1); fmt.Sprint(words) != "[a=3]" || err != nil {
			t.Errorf("after a snapshot: %v, %v", words, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range g.Cache().Watch(ctx, "c", after+1) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("after the context's end: %v", err)
			}
		}
	})
}
