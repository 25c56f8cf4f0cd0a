package storagetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// getReadsOneVersion: an open reader shows the object that it opened, whole, or an error; never a mixture or a cut.
func getReadsOneVersion(t *testing.T, s storage.Storage) {
	old := strings.Repeat("old ", 1<<18)
	info := put(t, s, "o", old)
	r, opened, err := s.Get(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	head := make([]byte, 1000)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "o", strings.NewReader("new"), storage.Condition{Version: info.Version}); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "o"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err == nil && string(head)+string(rest) != old {
		t.Errorf("a clean end after %d of %d bytes, or other bytes", len(head)+len(rest), opened.Size)
	}
}

func getCancelled(t *testing.T, s storage.Storage) {
	if _, err := s.Put(t.Context(), "o", newNoise(8*mib, nil), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, _, err := s.Get(ctx, "o")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, r, 1000); err != nil {
		t.Fatal(err)
	}
	cancel()
	if n, err := io.Copy(io.Discard, r); err == nil && n != 8*mib-1000 {
		t.Errorf("a clean end after %d bytes", 1000+n)
	} else if err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("read after cancel: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func absent(t *testing.T, s storage.Storage) {
	wantAbsent(t, s, "nothing")
	put(t, s, "a/b", "x")
	for _, name := range []string{"a", "a/b/c", "a/c", "A/b", "a/B", "x/y/z"} {
		wantAbsent(t, s, name)
	}
}

func cancelled(t *testing.T, s storage.Storage) {
	put(t, s, "o", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Put(ctx, "p", strings.NewReader("x"), storage.Condition{})
	wantErr(t, "put", err, context.Canceled)
	_, _, err = s.Get(ctx, "o")
	wantErr(t, "get", err, context.Canceled)
	_, err = s.Stat(ctx, "o")
	wantErr(t, "stat", err, context.Canceled)
	wantErr(t, "delete", s.Delete(ctx, "o"), context.Canceled)
	failed := false
	for _, err := range s.List(ctx, "") {
		failed = failed || errors.Is(err, context.Canceled)
	}
	if !failed {
		t.Error("a listing under a cancelled context ends without an error")
	}
	if got := list(t, s, ""); !slices.Equal(got, []string{"o"}) {
		t.Errorf("listed %q", got)
	}
}

func listOrderAndPrefix(t *testing.T, s storage.Storage) {
	names := []string{"a/b", "a-b", "a.b", "a/c/d/e", "a/c-d", "a/c.d", "a0", "B", "ab", "app/1", "app2/1", "app-2/1", "ä/1", "z/y/x", "a/c/d f", "a/bc"}
	for _, name := range names {
		put(t, s, name, name)
	}
	for _, c := range []struct {
		prefix string
		want   []string
	}{
		{"a/b", []string{"a/b"}},
		{"a/c", []string{"a/c/d f", "a/c/d/e"}},
		{"a/c/d", []string{"a/c/d/e"}},
		{"app", []string{"app/1"}},
		{"app2", []string{"app2/1"}},
		{"ap", []string{}},
		{"a/b/c", []string{}},
		{"A", []string{}},
		{"ä", []string{"ä/1"}},
		{"z/y/x", []string{"z/y/x"}},
		{"", slices.Sorted(slices.Values(names))},
	} {
		if diff := cmp.Diff(c.want, list(t, s, c.prefix)); diff != "" {
			t.Errorf("list %q (-want +got):\n%s", c.prefix, diff)
		}
	}
}

func listHidesReserved(t *testing.T, s storage.Storage) {
	put(t, s, storage.OwnerName, "{}")
	if got := list(t, s, ""); len(got) != 0 {
		t.Errorf("listed %q", got)
	}
	put(t, s, "x", "x")
	put(t, s, "sub/_fencepost/x", "x")
	if got := list(t, s, ""); !slices.Equal(got, []string{"sub/_fencepost/x", "x"}) {
		t.Errorf("listed %q", got)
	}
	if content, _ := get(t, s, storage.OwnerName); content != "{}" {
		t.Errorf("owner object: %q", content)
	}
}

func listStopsAndFails(t *testing.T, s storage.Storage) {
	for i := range 50 {
		put(t, s, fmt.Sprintf("d%02d/x", i), "x")
	}
	n := 0
	for _, err := range s.List(t.Context(), "") { // a caller may stop
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 3 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var last error
	n = 0
	for _, err := range s.List(ctx, "") {
		last = err
		if n++; n == 3 {
			cancel()
		}
	}
	if n < 50 && !errors.Is(last, context.Canceled) {
		t.Errorf("a listing that was cancelled ends after %d of 50 entries with %v", n, last)
	}
	cancel()
	if got := list(t, s, ""); len(got) != 50 {
		t.Errorf("%d listed", len(got))
	}
}

func deleteIdempotent(t *testing.T, s storage.Storage) {
	put(t, s, "a/b", "x")
	put(t, s, "a/bc", "x")
	for range 2 {
		if err := s.Delete(t.Context(), "a/b"); err != nil {
			t.Fatal(err)
		}
		wantAbsent(t, s, "a/b")
	}
	for _, name := range []string{"never/was/there", "a/bc/below"} {
		if err := s.Delete(t.Context(), name); err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
	}
	if got := list(t, s, ""); !slices.Equal(got, []string{"a/bc"}) {
		t.Errorf("listed %q", got)
	}
}

// deleteFreesNames: no trace of an object hinders a later one, an empty folder included.
func deleteFreesNames(t *testing.T, s storage.Storage, unique bool) {
	old := put(t, s, "a/b/c", "x")
	if err := s.Delete(t.Context(), "a/b/c"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "a/b", "now an object")
	_, err := s.Put(t.Context(), "a/b/c", strings.NewReader("x"), storage.Condition{Version: old.Version})
	if !errors.Is(err, storage.ErrStale) && !errors.Is(err, storage.ErrPermanent) {
		t.Errorf("replace of a deleted object: %v", err)
	}
	if err := s.Delete(t.Context(), "a/b"); err != nil {
		t.Fatal(err)
	}
	again := put(t, s, "a/b/c", "x")
	if unique && again.Version == old.Version {
		t.Error("an object that was made anew has the version of the deleted one")
	}
}

// concurrentCalls puts, reads, lists and deletes in one folder at once; nobody may see anything but the rules allow.
func concurrentCalls(t *testing.T, s storage.Storage) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 25 {
				name := fmt.Sprintf("shared/%d/x", i)
				content := strings.Repeat(fmt.Sprint(j), 1000)
				if _, err := s.Put(t.Context(), name, strings.NewReader(content), storage.Condition{}); err != nil {
					t.Errorf("put: %v", err)
					return
				}
				for _, err := range s.List(t.Context(), "shared") {
					if err != nil {
						t.Errorf("list: %v", err)
					}
				}
				r, _, err := s.Get(t.Context(), name)
				if err != nil {
					t.Errorf("get: %v", err)
					return
				}
				if b, err := io.ReadAll(r); err != nil || string(b) != content {
					t.Errorf("read %d bytes, %v", len(b), err)
				}
				_ = r.Close()
				if err := s.Delete(t.Context(), name); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if got := list(t, s, ""); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

const bigSize = 96 * mib

// big puts and gets an object that is much larger than the memory that may be used for it.
func big(t *testing.T, s storage.Storage, bounded bool) {
	var base, peak uint64
	sample := func(int64) error {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if base == 0 {
			base = m.HeapInuse
		}
		peak = max(peak, m.HeapInuse)
		return nil
	}
	runtime.GC()
	_ = sample(0)
	sum := sha256.New()
	info, err := s.Put(t.Context(), "big", io.TeeReader(newNoise(bigSize, sample), sum), storage.Condition{})
	if err != nil || info.Size != bigSize {
		t.Fatalf("put: %+v, %v", info, err)
	}
	r, info, err := s.Get(t.Context(), "big")
	if err != nil || info.Size != bigSize {
		t.Fatalf("get: %+v, %v", info, err)
	}
	defer r.Close()
	back := sha256.New()
	for done := int64(0); done < bigSize; done += mib {
		if _, err := io.CopyN(back, r, mib); err != nil {
			t.Fatalf("after %d MiB: %v", done>>20, err)
		}
		_ = sample(done)
	}
	if n, err := io.Copy(io.Discard, r); n != 0 || err != nil {
		t.Errorf("%d bytes after the end, %v", n, err)
	}
	if string(back.Sum(nil)) != string(sum.Sum(nil)) {
		t.Error("other bytes came back")
	}
	if bounded && peak > base+bigSize/2 {
		t.Errorf("the heap grew by %d MiB for an object of %d MiB", (peak-base)>>20, bigSize>>20)
	}
}

// ownerObject: what package storage does with the owner object works on this storage.
func ownerObject(t *testing.T, s storage.Storage) {
	_, err := storage.CheckOwner(t.Context(), s, "c1")
	wantErr(t, "check before adopting", err, storage.ErrNoOwner)
	if _, err := storage.Adopt(t.Context(), s, storage.Adoption{Cluster: "c1", High: 5}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			if _, err := storage.RaiseHigh(t.Context(), s, "c1", uint64(10+i)); err != nil {
				t.Errorf("raise: %v", err)
			}
		})
	}
	wg.Wait()
	o, err := storage.CheckOwner(t.Context(), s, "c1")
	if err != nil || o.High != 13 || o.Generation != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
	_, err = storage.CheckOwner(t.Context(), s, "c2")
	wantErr(t, "check by another", err, storage.ErrForeign)
}

// groupFolder: what a group keeps for itself is put once, read, listed by asking for it and not otherwise, and deleted.
func groupFolder(t *testing.T, s storage.Storage) {
	if got := list(t, s, storage.GroupFolder); len(got) != 0 {
		t.Errorf("nothing was put, and %q is listed", got)
	}
	const older, newer = storage.GroupFolder + "/00000000000000000007", storage.GroupFolder + "/00000000000000000010"
	put(t, s, newer, "newer")
	put(t, s, older, "older")
	put(t, s, "a/data", "x")
	_, err := s.Put(t.Context(), older, strings.NewReader("late"), storage.Condition{})
	wantErr(t, "put over what is there", err, storage.ErrExists)
	if content, _ := get(t, s, older); content != "older" {
		t.Errorf("got %q", content)
	}
	if got := list(t, s, storage.GroupFolder); !slices.Equal(got, []string{older, newer}) {
		t.Errorf("listed %q", got)
	}
	if got := list(t, s, ""); !slices.Equal(got, []string{"a/data"}) {
		t.Errorf("listed %q among the others", got)
	}
	if err := s.Delete(t.Context(), older); err != nil {
		t.Error(err)
	}
	if got := list(t, s, storage.GroupFolder); !slices.Equal(got, []string{newer}) {
		t.Errorf("listed %q after a delete", got)
	}
}
