package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// twoGroups: a place that nobody has marked (a disk that is not mounted) is refused to the group that expects its own, of
// many groups that mark it one wins, and all others are refused by name; none of them reads, writes or removes anything.
func twoGroups(t *testing.T, s storage.Storage) {
	refused := func(cluster string, class error) {
		t.Helper()
		for call, err := range guardedCalls(t.Context(), storage.Owned(s, cluster)) {
			wantErr(t, fmt.Sprintf("%s by %s", call, cluster), err, class)
		}
	}
	refused("g0", storage.ErrNoOwner)
	if got := list(t, s, ""); len(got) > 0 {
		t.Errorf("in a place without an owner: %q", got)
	}
	const groups = 8
	var wg sync.WaitGroup
	won := make(chan string, groups)
	for i := range groups {
		wg.Go(func() {
			cluster := fmt.Sprintf("g%d", i)
			_, err := storage.Adopt(t.Context(), s, storage.Adoption{Cluster: cluster, High: uint64(i)})
			if err == nil {
				won <- cluster
			} else if !errors.Is(err, storage.ErrForeign) {
				t.Errorf("%s: %v, want it to be another's", cluster, err)
			}
		})
	}
	wg.Wait()
	close(won)
	if len(won) != 1 {
		t.Fatalf("%d groups own it", len(won))
	}
	owner := <-won
	put(t, s, "b/1/data", "of "+owner)
	for i := range groups {
		if other := fmt.Sprintf("g%d", i); other != owner {
			refused(other, storage.ErrForeign)
			if _, err := storage.CheckOwner(t.Context(), s, other); err == nil || !strings.Contains(err.Error(), owner) {
				t.Errorf("%s is not told whose it is: %v", other, err)
			}
		}
	}
	if got := list(t, storage.Owned(s, owner), ""); len(got) != 1 || got[0] != "b/1/data" {
		t.Errorf("afterwards there are %q", got)
	}
	if content, _ := get(t, s, "b/1/data"); content != "of "+owner {
		t.Errorf("afterwards it holds %q", content)
	}
}

// guardedCalls are the errors of every call.
func guardedCalls(ctx context.Context, s storage.Storage) map[string]error {
	_, put := s.Put(ctx, "b/1/other", strings.NewReader("x"), storage.Condition{})
	_, _, get := s.Get(ctx, "b/1/data")
	_, stat := s.Stat(ctx, "b/1/data")
	var listed error
	for _, err := range s.List(ctx, "") {
		listed = errors.Join(listed, err)
	}
	return map[string]error{"put": put, "get": get, "stat": stat, "list": listed, "delete": s.Delete(ctx, "b/1/data")}
}
