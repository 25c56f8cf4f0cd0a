package gmstest_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/gmstest"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

// payments is a host app: it books payments, and recovers those of a dead member.
type payments struct {
	mu     sync.Mutex
	booked map[string]uint64 // payment → token under which it was booked
}

// recover books what the dead member had begun.
func (p *payments) recover(ctx context.Context, s signals.FailureRecoverySignal) error {
	fence, err := s.Acquire(ctx)
	if err != nil {
		return err
	}
	orphans, err := fence.Orphans(fence.Context())
	if err != nil {
		return err
	}
	for _, o := range orphans {
		claim, err := fence.Adopt(fence.Context(), o)
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.booked[claim.Item] = claim.Token
		p.mu.Unlock()
		if err := fence.End(fence.Context(), claim, signals.Complete); err != nil {
			return err
		}
	}
	return nil
}

func (p *payments) token(item string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.booked[item]
}

// A host app's own test: a member dies with a payment in its hands, and another books it, under a larger token, within
// milliseconds. It uses only what is exported.
func TestHostApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := &payments{booked: map[string]uint64{}}
		w := gmstest.Cluster(t, 3, gmstest.WithApp(func(n *gmstest.Node) (stop func(), err error) {
			if err := n.Router.AddRecoveryFactory("payments", signals.HandleRecovery(app.recover)); err != nil {
				return nil, err
			}
			m, err := recovery.ForGroup(n.Group, recovery.Options{})
			if err != nil {
				return nil, err
			}
			return m.Stop, m.Start(context.Background())
		}))
		claim, err := w.Node("n2").Group.Claim(t.Context(), "payments", "17", 1)
		if err != nil {
			t.Fatal(err)
		}
		w.Kill("n2")
		took := w.Await("the recovery of n2's payment", func() bool { return app.token("17") > claim.Token })
		if took > time.Second {
			t.Errorf("it was booked after %v", took)
		}
		w.AwaitRecovered("payments", "n2")
	})
}
