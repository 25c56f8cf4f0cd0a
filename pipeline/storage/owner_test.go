package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

func adopt(t *testing.T, s storage.Storage, cluster string, high uint64) storage.Owner {
	t.Helper()
	o, err := storage.Adopt(t.Context(), s, storage.Adoption{Cluster: cluster, High: high})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func put(t *testing.T, s storage.Storage, name, content string) {
	t.Helper()
	if _, err := s.Put(t.Context(), name, strings.NewReader(content), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
}

func TestAdoptMakesTheOwnerOnce(t *testing.T) {
	s := mem.New()
	o := adopt(t, s, "c1", 7)
	if len(o.Storage) != 32 {
		t.Errorf("storage id %q", o.Storage)
	}
	if diff := cmp.Diff(storage.Owner{Format: 1, Storage: o.Storage, Cluster: "c1", Generation: 1, High: 7}, o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	checked, err := storage.CheckOwner(t.Context(), s, "c1")
	if err != nil || checked != o {
		t.Errorf("got %+v, %v", checked, err)
	}
	o.High = 9
	if again := adopt(t, s, "c1", 9); again != o {
		t.Errorf("adopted again: %+v, want %+v", again, o)
	}
	if again := adopt(t, s, "c1", 3); again != o {
		t.Errorf("the highest number went down: %+v", again)
	}
	if _, err := storage.Adopt(t.Context(), mem.New(), storage.Adoption{}); !errors.Is(err, storage.ErrPermanent) {
		t.Errorf("an empty cluster id: %v", err)
	}
}

func TestAForeignStorageIsTakenOverOnlyOnRequest(t *testing.T) {
	s := mem.New()
	old := adopt(t, s, "c1", 50)
	o, err := storage.Adopt(t.Context(), s, storage.Adoption{Cluster: "c2", High: 20})
	if !errors.Is(err, storage.ErrForeign) || o != old || !strings.Contains(err.Error(), "c1") {
		t.Errorf("got %+v, %v", o, err)
	}
	o, err = storage.Adopt(t.Context(), s, storage.Adoption{Cluster: "c2", High: 20, TakeOver: true})
	want := storage.Owner{Format: 1, Storage: old.Storage, Cluster: "c2", Generation: 2, High: 50}
	if err != nil || o != want {
		t.Errorf("got %+v, %v, want %+v", o, err, want)
	}
	if _, err := storage.CheckOwner(t.Context(), s, "c1"); !errors.Is(err, storage.ErrForeign) {
		t.Errorf("the old owner: %v", err)
	}
	if _, err := storage.RaiseHigh(t.Context(), s, "c1", 99); !errors.Is(err, storage.ErrForeign) {
		t.Errorf("the old owner raises: %v", err)
	}
}

func TestOneOfManyAdoptersWins(t *testing.T) {
	s := mem.New()
	var wg sync.WaitGroup
	won := make(chan string, 16)
	for i := range 16 {
		wg.Go(func() {
			cluster := fmt.Sprint("c", i)
			_, err := storage.Adopt(t.Context(), s, storage.Adoption{Cluster: cluster})
			if err == nil {
				won <- cluster
			} else if !errors.Is(err, storage.ErrForeign) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d won", len(won))
	}
	if _, err := storage.CheckOwner(t.Context(), s, <-won); err != nil {
		t.Error(err)
	}
}

func TestAdoptWhoseAnswerWasLost(t *testing.T) {
	boom := errors.New("connection reset")
	inner := mem.New()
	s := storagetest.Inject(inner, storagetest.Lose(storagetest.Put, boom).Nth(1))
	if _, err := storage.Adopt(t.Context(), s, storage.Adoption{Cluster: "c1", High: 4}); !errors.Is(err, boom) {
		t.Fatalf("got %v", err)
	}
	if o := adopt(t, s, "c1", 6); o.High != 6 || o.Generation != 1 {
		t.Errorf("got %+v", o)
	}
}

func TestRaiseHighNeverLowersAndLosesNothing(t *testing.T) {
	s := mem.New()
	adopt(t, s, "c1", 1)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			o, err := storage.RaiseHigh(t.Context(), s, "c1", uint64(i*10))
			if err != nil || o.High < uint64(i*10) {
				t.Errorf("raise to %d: %+v, %v", i*10, o, err)
			}
		})
	}
	wg.Wait()
	if o, err := storage.CheckOwner(t.Context(), s, "c1"); err != nil || o.High != 70 {
		t.Errorf("got %+v, %v", o, err)
	}
	faulty := storagetest.Inject(s, storagetest.Fail(storagetest.Put, errors.New("written")))
	if o, err := storage.RaiseHigh(t.Context(), faulty, "c1", 70); err != nil || o.High != 70 {
		t.Errorf("what is high enough: %+v, %v", o, err)
	}
	if _, err := storage.RaiseHigh(t.Context(), mem.New(), "c1", 70); !errors.Is(err, storage.ErrNoOwner) {
		t.Errorf("without an owner: %v", err)
	}
}

func TestRaiseHighGivesUpAfterManyLostRaces(t *testing.T) {
	s := mem.New()
	adopt(t, s, "c1", 1)
	always := storagetest.Fail(storagetest.Put, storage.ErrStale)
	if _, err := storage.RaiseHigh(t.Context(), storagetest.Inject(s, always), "c1", 2); !errors.Is(err, storage.ErrStale) {
		t.Errorf("got %v", err)
	}
	if always.Hits() < 2 {
		t.Errorf("tried %d times", always.Hits())
	}
}

func TestWhatIsNoOwnerObject(t *testing.T) {
	for content, want := range map[string]string{
		"":                 "not an owner object",
		"{}":               "not an owner object",
		"PGDMP":            "not an owner object",
		`{"cluster":"c1"}`: "not an owner object",
		strings.Repeat(" ", 1<<17) + `{"format":1,"storage":"s","cluster":"c1"}`: "not an owner object",
		`{"format":2,"storage":"s","cluster":"c1"}`:                              "format 2",
	} {
		s := mem.New()
		put(t, s, storage.OwnerName, content)
		_, err := storage.CheckOwner(t.Context(), s, "c1")
		if !errors.Is(err, storage.ErrPermanent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v", content, err)
		}
		if _, err := storage.Adopt(t.Context(), s, storage.Adoption{Cluster: "c1", TakeOver: true}); err == nil {
			t.Errorf("%.30q was adopted", content)
		}
	}
}

// touch makes every kind of call and returns the errors.
func touch(t *testing.T, s storage.Storage) map[string]error {
	ctx := t.Context()
	errs := map[string]error{}
	_, errs["put"] = s.Put(ctx, "new", strings.NewReader("x"), storage.Condition{})
	r, _, err := s.Get(ctx, "new")
	if err == nil {
		_, _ = io.Copy(io.Discard, r)
		_ = r.Close()
	}
	errs["get"] = err
	_, errs["stat"] = s.Stat(ctx, "new")
	for _, err := range s.List(ctx, "") {
		errs["list"] = err
	}
	errs["delete"] = s.Delete(ctx, "new")
	return errs
}

func TestGuardRefusesWhatIsNotItsOwn(t *testing.T) {
	foreign := mem.New()
	adopt(t, foreign, "c2", 1)
	put(t, foreign, "theirs", "x")
	for name, c := range map[string]struct {
		s    storage.Storage
		want error
	}{"empty": {mem.New(), storage.ErrNoOwner}, "foreign": {foreign, storage.ErrForeign}} {
		t.Run(name, func(t *testing.T) {
			inner := storagetest.Inject(c.s,
				storagetest.Fail(storagetest.Put, errors.New("reached")),
				storagetest.Fail(storagetest.Delete, errors.New("reached")),
				storagetest.Fail(storagetest.List, errors.New("reached")))
			g := storage.Owned(inner, "c1")
			for range 2 {
				for call, err := range touch(t, g) {
					if !errors.Is(err, c.want) {
						t.Errorf("%s: %v, want %v", call, err, c.want)
					}
				}
			}
		})
	}
}

func TestGuardAsksOnceAndRemembers(t *testing.T) {
	asked := storagetest.Do(storagetest.Get, func(context.Context, string) error { return nil }).On(storage.OwnerName)
	inner := storagetest.Inject(mem.New(), asked)
	g := storage.Owned(inner, "c1")
	if _, err := g.Stat(t.Context(), "x"); !errors.Is(err, storage.ErrNoOwner) {
		t.Fatal(err)
	}
	adopt(t, g, "c1", 1) // the owner object itself passes
	before := asked.Hits()
	put(t, g, "other", "x")
	for call, err := range touch(t, g) {
		if err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	if n := asked.Hits() - before; n != 1 {
		t.Errorf("asked %d times for the owner", n)
	}
	if err := g.Delete(t.Context(), storage.OwnerName); !errors.Is(err, storage.ErrPermanent) {
		t.Errorf("delete of the owner: %v", err)
	}
}

func TestGuardDoesNotRememberThatItCouldNotAsk(t *testing.T) {
	inner := mem.New()
	adopt(t, inner, "c1", 1)
	down := errors.New("down")
	g := storage.Owned(storagetest.Inject(inner, storagetest.Fail(storagetest.Get, down).Times(1)), "c1")
	if _, err := g.Stat(t.Context(), "x"); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	if _, err := g.Stat(t.Context(), "x"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// An empty listing is believed only while the owner is there: a bucket that was emptied, a disk that went away.
func TestGuardDoesNotBelieveAnEmptyListing(t *testing.T) {
	inner := mem.New()
	adopt(t, inner, "c1", 1)
	put(t, inner, "o", "x")
	g := storage.Owned(inner, "c1")
	list := func() (names []string, last error) {
		for info, err := range g.List(t.Context(), "") {
			if last = err; err == nil {
				names = append(names, info.Name)
			}
		}
		return names, last
	}
	if names, err := list(); err != nil || len(names) != 1 {
		t.Fatalf("got %q, %v", names, err)
	}
	if err := inner.Delete(t.Context(), "o"); err != nil {
		t.Fatal(err)
	}
	if names, err := list(); err != nil || len(names) != 0 {
		t.Fatalf("an empty storage: %q, %v", names, err)
	}
	if err := inner.Delete(t.Context(), storage.OwnerName); err != nil {
		t.Fatal(err)
	}
	if _, err := list(); !errors.Is(err, storage.ErrNoOwner) {
		t.Errorf("an emptied storage: %v", err)
	}
	if err := g.Delete(t.Context(), "o"); !errors.Is(err, storage.ErrNoOwner) {
		t.Errorf("a delete afterwards: %v", err)
	}
}

func TestCheckForgetsATakenStorage(t *testing.T) {
	inner := mem.New()
	adopt(t, inner, "c1", 1)
	g := storage.Owned(inner, "c1")
	put(t, g, "a", "x")
	if _, err := storage.Adopt(t.Context(), inner, storage.Adoption{Cluster: "c2", TakeOver: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Check(t.Context()); !errors.Is(err, storage.ErrForeign) {
		t.Errorf("check: %v", err)
	}
	if _, err := g.Put(t.Context(), "b", strings.NewReader("x"), storage.Condition{}); !errors.Is(err, storage.ErrForeign) {
		t.Errorf("put: %v", err)
	}
}

func TestWaitingForTheOwnerCheckEndsWithTheContext(t *testing.T) {
	inner := mem.New()
	adopt(t, inner, "c1", 1)
	gate := storagetest.NewGate()
	g := storage.Owned(storagetest.Inject(inner, storagetest.Stall(storagetest.Get, gate).On(storage.OwnerName)), "c1")
	done := make(chan error)
	go func() {
		_, err := g.Stat(t.Context(), "x")
		done <- err
	}()
	<-gate.Reached()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Stat(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	gate.Release()
	if err := <-done; !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
