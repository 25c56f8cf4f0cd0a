package storage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
)

// untidy is a storage that leaves things behind.
type untidy struct {
	storage.Storage
	asked []time.Time
}

func (u *untidy) AbortUploads(_ context.Context, before time.Time) (int, error) {
	u.asked = append(u.asked, before)
	return 3, nil
}

func TestOnlyTheOwnerTidiesUp(t *testing.T) {
	u := &untidy{Storage: mem.New()}
	stack := func(cluster string) storage.Storage {
		return storage.Owned(storage.Retry(u, storage.RetryOptions{}), cluster)
	}
	janitor := func(s storage.Storage) storage.Janitor {
		j, ok := storage.As[storage.Janitor](s)
		if !ok {
			t.Fatal("the guard hides the janitor")
		}
		return j
	}
	before := time.Now()
	if n, err := janitor(stack("a")).AbortUploads(t.Context(), before); n != 0 || !errors.Is(err, storage.ErrNoOwner) {
		t.Errorf("nobody's storage: %d, %v", n, err)
	}
	if _, err := storage.Adopt(t.Context(), u, storage.Adoption{Cluster: "a", High: 1}); err != nil {
		t.Fatal(err)
	}
	if n, err := janitor(stack("b")).AbortUploads(t.Context(), before); n != 0 || !errors.Is(err, storage.ErrForeign) {
		t.Errorf("another's storage: %d, %v", n, err)
	}
	if len(u.asked) != 0 {
		t.Fatal("uploads of others were aborted")
	}
	if n, err := janitor(stack("a")).AbortUploads(t.Context(), before); n != 3 || err != nil || len(u.asked) != 1 || !u.asked[0].Equal(before) {
		t.Errorf("the own one: %d, %v, asked %v", n, err, u.asked)
	}
	if n, err := storage.Owned(mem.New(), "a").AbortUploads(t.Context(), before); n != 0 || err != nil {
		t.Errorf("a storage that leaves nothing: %d, %v", n, err)
	}
}

func TestAnEstimateIsAHint(t *testing.T) {
	for _, c := range []struct{ given, want int64 }{{5, 5}, {0, 0}, {-1, 0}} {
		if got := storage.Estimate(storage.WithEstimate(t.Context(), c.given)); got != c.want {
			t.Errorf("%d became %d", c.given, got)
		}
	}
	if got := storage.Estimate(t.Context()); got != 0 {
		t.Errorf("without one: %d", got)
	}
}
