package storagetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
)

func putRoundTrip(t *testing.T, s storage.Storage) {
	start := time.Now()
	info := put(t, s, "b1/17/data", "content")
	if info.Name != "b1/17/data" || info.Size != 7 || info.Version == "" {
		t.Errorf("put answered %+v", info)
	}
	if d := info.Modified.Sub(start).Abs(); d > time.Hour || info.Modified.Location() != time.UTC {
		t.Errorf("modified %v, want about %v in UTC", info.Modified, start.UTC())
	}
	content, gotInfo := get(t, s, "b1/17/data")
	if content != "content" {
		t.Errorf("got %q", content)
	}
	if statInfo := stat(t, s, "b1/17/data"); gotInfo != info || statInfo != info {
		t.Errorf("put says %+v, get %+v, stat %+v", info, gotInfo, statInfo)
	}
	for listed, err := range s.List(t.Context(), "b1") {
		if err != nil || listed != info {
			t.Errorf("list says %+v, %v, put said %+v", listed, err, info)
		}
	}
	put(t, s, "dribble", "") // readers may answer data together with io.EOF, or byte by byte
	for i, r := range []io.Reader{iotest.DataErrReader(strings.NewReader("abc")), iotest.OneByteReader(strings.NewReader("abc"))} {
		name := fmt.Sprint("reader", i)
		if _, err := s.Put(t.Context(), name, r, storage.Condition{}); err != nil {
			t.Fatal(err)
		}
		if content, _ := get(t, s, name); content != "abc" {
			t.Errorf("%s: got %q", name, content)
		}
	}
}

func putEmpty(t *testing.T, s storage.Storage) {
	if info := put(t, s, "empty", ""); info.Size != 0 {
		t.Errorf("size %d", info.Size)
	}
	if content, info := get(t, s, "empty"); content != "" || info.Size != 0 {
		t.Errorf("got %q, %+v", content, info)
	}
	if got := list(t, s, ""); len(got) != 1 {
		t.Errorf("listed %q", got)
	}
}

func putKeepsNames(t *testing.T, s storage.Storage) {
	names := []string{
		"with space/ leading", "umlaut/äöüß/Größe", "percent/100%25%2F..%00", "plus+and&?#", "quotes'\"`$(x)", "-dash", "数据/ü😀/x",
		"dots/a..b/...", "comma,semi;colon", "star*[x]{y}", "~", "CON.x",
		"long/" + strings.Repeat("e", storage.MaxElement),
		strings.TrimSuffix(strings.Repeat(strings.Repeat("d", 99)+"/", 9), "/"), // 899 bytes
	}
	for i, name := range names {
		put(t, s, name, fmt.Sprint(i))
	}
	for i, name := range names {
		if content, info := get(t, s, name); content != fmt.Sprint(i) || info.Name != name {
			t.Errorf("%q: got %q, named %q", name, content, info.Name)
		}
		if got := list(t, s, name); len(got) != 1 || got[0] != name {
			t.Errorf("list %q: %q", name, got)
		}
	}
	if got := list(t, s, ""); len(got) != len(names) {
		t.Errorf("%d objects were put, %d are listed", len(names), len(got))
	}
}

func badNames() []string {
	return []string{"", "/abs", "a/", "a//b", ".", "..", "../x", "a/../b", "a/.", "a\x00b", "a\nb", `C:\x`, `a\..\b`, "\xff",
		strings.Repeat("e", storage.MaxElement+1), strings.Repeat("d/", storage.MaxName), "_fencepost", "_fencepost/tmp/x", "_FencePost/owner.json", "_fencepost2"}
}

func refusesNames(t *testing.T, s storage.Storage) {
	ctx := t.Context()
	for _, name := range badNames() {
		r := strings.NewReader("x")
		_, err := s.Put(ctx, name, r, storage.Condition{})
		wantErr(t, fmt.Sprintf("put %.40q", name), err, storage.ErrPermanent)
		if r.Len() != 1 {
			t.Errorf("put %.40q read from its reader", name)
		}
		_, _, err = s.Get(ctx, name)
		wantErr(t, fmt.Sprintf("get %.40q", name), err, storage.ErrPermanent)
		_, err = s.Stat(ctx, name)
		wantErr(t, fmt.Sprintf("stat %.40q", name), err, storage.ErrPermanent)
		wantErr(t, fmt.Sprintf("delete %.40q", name), s.Delete(ctx, name), storage.ErrPermanent)
		if name == "" {
			continue
		}
		for _, err := range s.List(ctx, name) {
			wantErr(t, fmt.Sprintf("list %.40q", name), err, storage.ErrPermanent)
		}
	}
	if got := list(t, s, ""); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

func putIfAbsent(t *testing.T, s storage.Storage) {
	info := put(t, s, "a/manifest", "first")
	_, err := s.Put(t.Context(), "a/manifest", strings.NewReader("second"), storage.Condition{})
	wantErr(t, "second create", err, storage.ErrExists)
	if content, now := get(t, s, "a/manifest"); content != "first" || now != info {
		t.Errorf("got %q, %+v", content, now)
	}
}

// race makes 16 goroutines put at once and returns the number of the one that won. The others must lose with class.
func race(t *testing.T, s storage.Storage, name string, c storage.Condition, class error) int {
	t.Helper()
	const racers = 16
	winner := atomic.Int64{}
	winner.Store(-1)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			<-start
			_, err := s.Put(t.Context(), name, strings.NewReader(racer(i, c)), c)
			switch {
			case err == nil:
				if !winner.CompareAndSwap(-1, int64(i)) {
					t.Errorf("%d won, and so did another", i)
				}
			case !errors.Is(err, class):
				t.Errorf("%d: %v, want %v", i, err, class)
			}
		})
	}
	close(start)
	wg.Wait()
	if winner.Load() < 0 {
		t.Fatal("nobody won")
	}
	return int(winner.Load())
}

// racer is the content of a racer, another one for each version that is replaced.
func racer(i int, c storage.Condition) string { return fmt.Sprintf("%d after %s", i, c.Version) }

func oneOfManyCreates(t *testing.T, s storage.Storage) {
	for round := range 20 {
		name := fmt.Sprintf("race/%d/manifest", round)
		want := racer(race(t, s, name, storage.Condition{}, storage.ErrExists), storage.Condition{})
		if content, _ := get(t, s, name); content != want {
			t.Fatalf("round %d: the winner put %q, there is %q", round, want, content)
		}
	}
}

func putReplaces(t *testing.T, s storage.Storage, unique bool) {
	v1 := put(t, s, "o", "one")
	v2, err := s.Put(t.Context(), "o", strings.NewReader("two"), storage.Condition{Version: v1.Version})
	if err != nil {
		t.Fatal(err)
	}
	if v2.Version == v1.Version || v2.Version == "" {
		t.Errorf("versions %q and %q", v1.Version, v2.Version)
	}
	if content, info := get(t, s, "o"); content != "two" || info != v2 {
		t.Errorf("got %q, %+v, want %+v", content, info, v2)
	}
	_, err = s.Put(t.Context(), "o", strings.NewReader("three"), storage.Condition{Version: v1.Version})
	wantErr(t, "replace an old version", err, storage.ErrStale)
	_, err = s.Put(t.Context(), "absent", strings.NewReader("x"), storage.Condition{Version: v1.Version})
	wantErr(t, "replace nothing", err, storage.ErrStale)
	wantAbsent(t, s, "absent")
	if content, _ := get(t, s, "o"); content != "two" {
		t.Errorf("got %q", content)
	}
	seen := map[string]bool{v1.Version: true, v2.Version: true}
	last := v2
	for i := range 100 { // versions never come back, not even for contents of one size in quick succession
		content := "two"
		if !unique {
			content = fmt.Sprint(100 + i)
		}
		last, err = s.Put(t.Context(), "o", strings.NewReader(content), storage.Condition{Version: last.Version})
		if err != nil {
			t.Fatal(err)
		}
		if seen[last.Version] {
			t.Fatalf("version %q came twice", last.Version)
		}
		seen[last.Version] = true
	}
}

func oneOfManyReplaces(t *testing.T, s storage.Storage) {
	put(t, s, "counter", "start")
	for range 20 {
		c := storage.Condition{Version: stat(t, s, "counter").Version}
		want := racer(race(t, s, "counter", c, storage.ErrStale), c)
		if content, _ := get(t, s, "counter"); content != want {
			t.Fatalf("the winner put %q, there is %q", want, content)
		}
	}
}

func readerErrorLeavesNothing(t *testing.T, s storage.Storage) {
	for _, after := range []int64{0, 100, mib, 5 * mib} {
		boom := errBoom()
		r := io.MultiReader(newNoise(after, nil), iotest.ErrReader(boom))
		_, err := s.Put(t.Context(), "broken/data", r, storage.Condition{})
		wantErr(t, fmt.Sprintf("reader that fails after %d bytes", after), err, boom)
		wantAbsent(t, s, "broken/data")
	}
	_, err := s.Put(t.Context(), "broken/data", iotest.ErrReader(io.ErrUnexpectedEOF), storage.Condition{})
	wantErr(t, "reader that is cut", err, io.ErrUnexpectedEOF)
	wantAbsent(t, s, "broken/data")
	put(t, s, "broken/data", "second try")
}

func failedReplaceKeepsOld(t *testing.T, s storage.Storage) {
	info := put(t, s, "o", "old")
	boom := errBoom()
	_, err := s.Put(t.Context(), "o", io.MultiReader(newNoise(mib, nil), iotest.ErrReader(boom)), storage.Condition{Version: info.Version})
	wantErr(t, "replace", err, boom)
	if content, now := get(t, s, "o"); content != "old" || now != info {
		t.Errorf("got %q, %+v, want %+v", content, now, info)
	}
}

func cancelLeavesNothing(t *testing.T, s storage.Storage) {
	for _, after := range []int64{0, 3 * mib} {
		cause := errors.New("task was cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		r := newNoise(8*mib, func(done int64) error {
			if done == after {
				cancel(cause)
			}
			return nil
		})
		_, err := s.Put(ctx, "cancelled/data", r, storage.Condition{})
		cancel(nil)
		if !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after %d bytes: %v", after, err)
		}
		wantAbsent(t, s, "cancelled/data")
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Put(ctx, "cancelled/data", iotest.DataErrReader(&cancelAtEnd{strings.NewReader("x"), cancel}), storage.Condition{})
	wantErr(t, "cancelled with the last byte", err, context.Canceled)
	wantAbsent(t, s, "cancelled/data")
}

// stalledSourceLeavesNothing: a source that says nothing more, at whatever byte, is ended by whoever cancels.
func stalledSourceLeavesNothing(t *testing.T, s storage.Storage) {
	for _, after := range []int64{0, 1, 5 * mib} {
		cause := errors.New("it stalled")
		ctx, cancel := context.WithCancelCause(t.Context())
		stall := readerFunc(func([]byte) (int, error) {
			cancel(cause)
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		_, err := s.Put(ctx, "stalled/data", io.MultiReader(newNoise(after, nil), stall), storage.Condition{})
		cancel(nil)
		wantErr(t, fmt.Sprintf("stalled after %d bytes", after), err, cause)
		wantAbsent(t, s, "stalled/data")
	}
	put(t, s, "stalled/data", "second try")
}

// cancelAtEnd cancels when its end is reached.
type cancelAtEnd struct {
	r      io.Reader
	cancel func()
}

func (c *cancelAtEnd) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err == io.EOF {
		c.cancel()
	}
	return n, err
}

func invisibleUntilWhole(t *testing.T, s storage.Storage) {
	r := newNoise(4*mib, func(done int64) error {
		wantAbsent(t, s, "slow/data")
		return nil
	})
	if _, err := s.Put(t.Context(), "slow/data", r, storage.Condition{}); err != nil {
		t.Fatal(err)
	}
	if info := stat(t, s, "slow/data"); info.Size != 4*mib {
		t.Errorf("size %d", info.Size)
	}
}

// readerIsLeftAlone: under the race detector a Read after Put returned is a data race with the write below.
func readerIsLeftAlone(t *testing.T, s storage.Storage) {
	var reads int
	count := readerFunc(func(p []byte) (int, error) {
		reads++
		if reads > 3 {
			return 0, errBoom()
		}
		return len(p), nil
	})
	if _, err := s.Put(t.Context(), "left/alone", count, storage.Condition{}); err == nil {
		t.Fatal("no error")
	}
	reads = 1000
	put(t, s, "another", "x")
	if reads != 1000 {
		t.Error("the reader was read after Put had returned")
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func objectOrFolder(t *testing.T, s storage.Storage) {
	put(t, s, "folder/object", "x")
	_, err := s.Put(t.Context(), "folder", strings.NewReader("x"), storage.Condition{})
	wantErr(t, "an object named as a folder", err, storage.ErrPermanent)
	_, err = s.Put(t.Context(), "folder/object/below", strings.NewReader("x"), storage.Condition{})
	wantErr(t, "an object below an object", err, storage.ErrPermanent)
	wantAbsent(t, s, "folder/object/below")
	wantAbsent(t, s, "folder")
	if err := s.Delete(t.Context(), "folder"); err != nil {
		t.Errorf("delete of what is only a folder: %v", err)
	}
	if got := list(t, s, ""); len(got) != 1 {
		t.Errorf("listed %q", got)
	}
}
