package overview

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestKeeper: a hundred who ask at once and again within a second cost one look; nobody gets one older than a second; who
// goes away does not spoil it for the others.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		k := NewKeeper(time.Second, func(ctx context.Context) api.Overview {
			looks++
			time.Sleep(300 * time.Millisecond)
			if ctx.Err() != nil {
				t.Error("the look was given up")
			}
			return api.Overview{Active: looks}
		})
		gone, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if o := k.Get(gone); o.Active != 1 {
					t.Errorf("look %d", o.Active)
				}
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		time.Sleep(999 * time.Millisecond)
		if o := k.Get(t.Context()); o.Active != 1 {
			t.Error("it was made anew within a second")
		}
		time.Sleep(time.Millisecond)
		if o := k.Get(t.Context()); o.Active != 2 {
			t.Error("it is older than a second")
		}
	})
}
