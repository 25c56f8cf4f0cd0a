package pipeline

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// newUpload makes an upload of no processors into the given storages.
func newUpload(need int, stores ...storage.Storage) *upload {
	u := &upload{
		dir: attemptDir("b", 1), need: need, stall: time.Minute,
		onRaw: func() error { return nil }, onStore: func() error { return nil }, watch: func(string, func() int64) {},
	}
	for i, st := range stores {
		u.copies = append(u.copies, &copyOf{name: string(rune('a' + i)), store: st})
	}
	return u
}

// pour produces n bytes.
func pour(n int) produce {
	return func(_ context.Context, w io.Writer) error {
		buf := make([]byte, 100_000)
		for n > 0 {
			m := min(n, len(buf))
			if _, err := w.Write(buf[:m]); err != nil {
				return errors.New("producer lost its reader")
			}
			n -= m
		}
		return nil
	}
}

// discard is a storage that keeps nothing, so that a large stream can go through.
type discard struct{ storage.Storage }

func (discard) Put(_ context.Context, name string, r io.Reader, _ storage.Condition) (storage.Info, error) {
	n, err := io.Copy(io.Discard, r)
	return storage.Info{Name: name, Size: n}, err
}

// Whatever the size, and however slow one of the storages is, the number of blocks is bounded.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stores = 3
		gate := storagetest.NewGate()
		slow := storagetest.Inject(discard{mem.New()}, storagetest.StallAt(storagetest.Put, 1<<20, gate))
		u := newUpload(stores, discard{}, slow, discard{})
		time.AfterFunc(30*time.Second, gate.Release)
		o, err := u.part(t.Context(), "data", pour(32<<20))
		if err != nil || o.RawBytes != 32<<20 || o.StoredBytes != o.RawBytes || o.RawSHA256 != o.StoredSHA256 {
			t.Fatalf("object %+v, %v", o, err)
		}
		if limit := stores*blocksPerSink + blocksSpare; u.made != limit {
			t.Errorf("%d blocks were made, the bound is %d, and the slow storage must have used them all", u.made, limit)
		}
	})
}

// The first reason is the one reported, whatever it drags down with it.
func TestFirstErrorWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := storagetest.Inject(mem.New(), storagetest.Break(storagetest.Put, 1<<20, errBoom))
		healthy := mem.New()
		u := newUpload(2, healthy, broken)
		_, err := u.part(t.Context(), "data", pour(8<<20))
		var s *storageError
		if !errors.As(err, &s) || s.name != "b" || !errors.Is(err, errBoom) {
			t.Errorf("error %v", err)
		}
		for info := range healthy.List(t.Context(), "") {
			t.Errorf("stored: %s", info.Name)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		u := newUpload(1, mem.New())
		_, err := u.part(ctx, "data", func(ctx context.Context, w io.Writer) error {
			cancel(&cancelError{by: "ann"})
			<-ctx.Done()
			return errors.New("killed by signal 15")
		})
		var byHand *cancelError
		if !errors.As(err, &byHand) {
			t.Errorf("error %v", err)
		}
	})
}

// All storages stall: the part ends with that, though late, instead of waiting for ever.
func TestAllStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stores []storage.Storage
		for range 2 {
			stores = append(stores, storagetest.Inject(mem.New(), storagetest.StallAt(storagetest.Put, 1, storagetest.NewGate())))
		}
		began := time.Now()
		_, err := newUpload(1, stores...).part(t.Context(), "data", pour(8<<20))
		if !errors.Is(err, errStalled) || time.Since(began) != patience*time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// A storage whose Put ends early, saying that all is well, holds no copy.
func TestShortPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpload(1, mem.New(), short{})
		if _, err := u.part(t.Context(), "data", pour(3<<20)); err != nil {
			t.Fatal(err)
		}
		if u.copies[0].err != nil || u.copies[1].err == nil {
			t.Errorf("copies: %v, %v", u.copies[0].err, u.copies[1].err)
		}
	})
}

type short struct{ storage.Storage }

func (short) Put(_ context.Context, _ string, r io.Reader, _ storage.Condition) (storage.Info, error) {
	n, err := io.CopyN(io.Discard, r, 1000)
	return storage.Info{Size: n}, err
}

// Nothing is given to a storage before the hook has allowed it.
func TestUploadingIsSaidFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		puts := 0
		st := storagetest.Inject(mem.New(), storagetest.Do(storagetest.Put, func(context.Context, string) error { puts++; return nil }))
		u := newUpload(1, st)
		u.onStore = func() error { return errBoom }
		if _, err := u.part(t.Context(), "data", pour(3<<20)); !errors.Is(err, errBoom) || puts != 0 {
			t.Errorf("%d puts, %v", puts, err)
		}
	})
}
