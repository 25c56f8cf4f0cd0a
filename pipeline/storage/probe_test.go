package storage_test

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

// failed names the steps that failed, and how many were made.
func failed(steps []storage.ProbeStep) (names string, made int) {
	var list []string
	for _, s := range steps {
		if s.Err != nil {
			list = append(list, s.Name)
		}
	}
	return strings.Join(list, " "), len(steps)
}

// careless is a storage that lacks one thing that it should do, and does not say so.
type careless struct {
	storage.Storage
	overwrites, forgets, keeps bool
}

func (c careless) Put(ctx context.Context, name string, r io.Reader, cond storage.Condition) (storage.Info, error) {
	if c.overwrites {
		if info, err := c.Stat(ctx, name); err == nil {
			cond.Version = info.Version
		}
	}
	if c.keeps {
		data, _ := io.ReadAll(r)
		r = strings.NewReader(string(data))
	}
	return c.Storage.Put(ctx, name, r, cond)
}

func (c careless) Delete(ctx context.Context, name string) error {
	if c.forgets {
		return nil
	}
	return c.Storage.Delete(ctx, name)
}

// TestProbe: each thing that a storage cannot do is named by its step, nothing after it is tried, and nothing stays.
func TestProbe(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		name string
		s    func(storage.Storage) storage.Storage
		o    storage.ProbeOptions
		want string // steps that fail
		made int
		left int // objects that stay
	}{
		{"good", func(s storage.Storage) storage.Storage { return s }, storage.ProbeOptions{Long: 1 << 20}, "", 7, 0},
		{"no write", faulty(storagetest.Fail(storagetest.Put, boom)), storage.ProbeOptions{}, "write", 2, 0},
		{"writes over", func(s storage.Storage) storage.Storage { return careless{Storage: s, overwrites: true} }, storage.ProbeOptions{}, "condition", 3, 0},
		{"no read", faulty(storagetest.Fail(storagetest.Get, boom)), storage.ProbeOptions{}, "read", 4, 0},
		{"cut read", faulty(storagetest.Cut(5)), storage.ProbeOptions{}, "read", 4, 0},
		{"no list", faulty(storagetest.Fail(storagetest.List, boom).Nth(1)), storage.ProbeOptions{}, "list", 5, 0},
		{"keeps what broke", func(s storage.Storage) storage.Storage { return careless{Storage: s, keeps: true} }, storage.ProbeOptions{}, "abort", 6, 0},
		{"no delete", faulty(storagetest.Fail(storagetest.Delete, boom)), storage.ProbeOptions{}, "delete clean", 7, 1},
		{"forgets to delete", func(s storage.Storage) storage.Storage { return careless{Storage: s, forgets: true} }, storage.ProbeOptions{}, "delete", 7, 1},
		{"append-only", faulty(storagetest.Fail(storagetest.Delete, storage.ErrPermanent)), storage.ProbeOptions{AppendOnly: true}, "", 7, 1},
		{"not append-only", func(s storage.Storage) storage.Storage { return s }, storage.ProbeOptions{AppendOnly: true}, "delete", 7, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := mem.New()
			steps, _ := storage.Probe(t.Context(), test.s(inner), test.o)
			if got, made := failed(steps); got != test.want || made != test.made {
				t.Errorf("failed: %q of %d steps, want %q of %d: %+v", got, made, test.want, test.made, steps)
			}
			left := 0
			for _, err := range inner.List(t.Context(), "") {
				if err != nil {
					t.Fatal(err)
				}
				left++
			}
			if left != test.left {
				t.Errorf("%d objects stay, want %d", left, test.left)
			}
		})
	}
}

func faulty(f *storagetest.Fault) func(storage.Storage) storage.Storage {
	return func(s storage.Storage) storage.Storage { return storagetest.Inject(s, f) }
}

// TestProbeCleansUpAfterACancel: whatever becomes of the context, what was written goes.
func TestProbeCleansUpAfterACancel(t *testing.T) {
	inner := mem.New()
	ctx, cancel := context.WithCancel(t.Context())
	steps, left := storage.Probe(ctx, storagetest.Inject(inner, storagetest.Do(storagetest.Get, func(context.Context, string) error {
		cancel()
		return context.Canceled
	})), storage.ProbeOptions{})
	if got, made := failed(steps); got != "read" || made != 4 || len(left) > 0 {
		t.Errorf("failed %q of %d, left %q", got, made, left)
	}
	for info, err := range inner.List(t.Context(), "") {
		t.Errorf("%v stays, %v", info, err)
	}
}
