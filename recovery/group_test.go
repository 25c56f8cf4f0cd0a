package recovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// realNode is a whole node on loopback: group, router, manager.
type realNode struct {
	*node
	group *gms.Group
}

func startRealNode(t *testing.T, cfg gms.Config, f recoverFunc) *realNode {
	t.Helper()
	router := signals.NewRouter(signals.Options{Logger: quietLogger()})
	if err := router.AddRecoveryFactory("backup", signals.HandleRecovery(f)); err != nil {
		t.Fatal(err)
	}
	cfg.Router = router
	group, err := gms.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := New(Options{Log: GroupLog(group), Router: router, Node: cfg.Node, Logger: quietLogger()})
	if err != nil {
		t.Fatal(err)
	}
	n := &realNode{node: &node{Manager: manager, router: router}, group: group}
	t.Cleanup(func() { n.halt(t) })
	if err := errors.Join(router.Start(t.Context()), manager.Start(t.Context()), group.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	return n
}

// awaitWork waits until the node may begin work: nobody recovers it, and its lease is held.
func (n *realNode) awaitWork(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := errors.Join(n.AwaitUnfenced(ctx, "backup"), n.group.AwaitStanding(ctx)); err != nil {
		t.Fatal(err)
	}
}

func (n *realNode) halt(t *testing.T) {
	n.Manager.Stop()
	n.router.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := n.group.Stop(ctx); err != nil {
		t.Errorf("stop group: %v", err)
	}
}

// freeAddress is a loopback address whose port was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A node alone leaves with work unsettled. Its own next run is the only candidate: it is appointed by the very entry that
// opens it, and its component waits at the fence until that recovery has ended.
func TestNextRunOfALoneNodeRecoversTheLast(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg := gms.Config{
		Node: "n1", Home: t.TempDir(), Profile: gms.ProfileLocal, FenceTTL: time.Hour,
		Gossip: gms.Endpoint{Bind: freeAddress(t)}, Cluster: gms.Endpoint{Bind: freeAddress(t)},
	}
	first := startRealNode(t, cfg, func(context.Context, signals.FailureRecoverySignal) error {
		return errors.New("nobody has died")
	})
	first.awaitWork(t, ctx)
	for _, item := range []string{"B1", "B2"} {
		if _, err := first.group.Claim(ctx, "backup", item, 1); err != nil {
			t.Fatal(err)
		}
	}
	_, firstRun := first.group.Self()
	first.halt(t)

	var adopted signals.Claim
	ended := make(chan error, 1)
	second := startRealNode(t, cfg, func(ctx context.Context, s signals.FailureRecoverySignal) (err error) {
		defer func() { ended <- err }()
		adopted, err = adoptOneFreeOthers(ctx, s, firstRun)
		return err
	})
	second.awaitWork(t, ctx)
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatal("not fenced though the last run's work is not recovered")
	}
	if left, _ := second.group.Recoveries(); len(left) != 0 {
		t.Errorf("recoveries left: %+v", left)
	}
	// After Release the adopted claim is the adopter's own, and the freed item is anybody's.
	if err := second.group.EndClaim(ctx, adopted, signals.Complete); err != nil {
		t.Errorf("end adopted claim: %v", err)
	}
	if _, err := second.group.Claim(ctx, "backup", "B2", 2); err != nil {
		t.Errorf("claim freed item: %v", err)
	}
}

// An item that was orphaned as often as may be is neither adopted nor given back: it is quarantined, and nobody gets it.
func TestPoisonIsQuarantined(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg := gms.DefaultConfig()
	cfg.Home, cfg.MaxAttempts = t.TempDir(), 1
	first := startRealNode(t, cfg, func(context.Context, signals.FailureRecoverySignal) error {
		return errors.New("nobody has died")
	})
	first.awaitWork(t, ctx)
	if _, err := first.group.Claim(ctx, "backup", "B1", 1); err != nil {
		t.Fatal(err)
	}
	first.halt(t)

	ended := make(chan error, 1)
	second := startRealNode(t, cfg, func(ctx context.Context, s signals.FailureRecoverySignal) (err error) {
		defer func() { ended <- err }()
		f, err := s.Acquire(ctx)
		if err != nil {
			return err
		}
		orphans, err := f.Orphans(ctx)
		if err != nil || len(orphans) != 1 {
			return fmt.Errorf("orphans %+v: %w", orphans, err)
		}
		if _, err := f.Adopt(ctx, orphans[0]); !errors.Is(err, signals.ErrPoison) {
			return fmt.Errorf("adopted: %w", err)
		}
		if err := f.Free(ctx, orphans[0]); !errors.Is(err, signals.ErrPoison) {
			return fmt.Errorf("freed: %w", err)
		}
		return f.End(ctx, orphans[0].Claim, signals.Quarantine)
	})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	second.awaitWork(t, ctx)
	if _, err := second.group.Claim(ctx, "backup", "B1", 2); !errors.Is(err, gms.ErrQuarantined) {
		t.Errorf("claimed: %v", err)
	}
}

func adoptOneFreeOthers(ctx context.Context, s signals.FailureRecoverySignal, dead string) (adopted signals.Claim, err error) {
	if a := s.Appointment(); a.Run != dead || a.Node != "n1" || s.Facts().Member.Run != dead {
		return adopted, fmt.Errorf("appointment %+v, facts %+v: want run %s", a, s.Facts(), dead)
	}
	f, err := s.Acquire(ctx)
	if err != nil {
		return adopted, err
	}
	orphans, err := f.Orphans(ctx)
	if err != nil || len(orphans) != 2 {
		return adopted, fmt.Errorf("orphans %+v: %w", orphans, err)
	}
	if err := s.Release(ctx); !errors.Is(err, signals.ErrWorkLeft) {
		return adopted, fmt.Errorf("release with work left: %w", err)
	}
	adopted, err = f.Adopt(ctx, orphans[0])
	if err != nil {
		return adopted, err
	}
	if adopted.RoundTrip != 2 || adopted.Token <= f.Token() {
		return adopted, fmt.Errorf("adopted %+v under %d", adopted, f.Token())
	}
	return adopted, f.Free(ctx, orphans[1])
}
