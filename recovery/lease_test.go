package recovery

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// A long recovery keeps its fence for as long as it works.
func TestFenceIsRenewedWhileTheActionWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		go g.lead(t.Context())
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			f, err := s.Acquire(ctx)
			if err != nil {
				return err
			}
			select {
			case <-time.After(time.Hour):
			case <-f.Context().Done():
				t.Errorf("fence lost: %v", context.Cause(f.Context()))
			}
			return settleAll(ctx, s)
		}))
		k := g.close("backup", "a", "a1", "B1")
		pass(2 * time.Hour)
		wantEnded(t, g, k)
	})
}

// The context ends by the local deadline, before the leader may give the fence to another.
func TestFenceIsLostWithTheQuorumAndGoesOnAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		go g.lead(t.Context())
		var cause error
		var lost time.Time
		act := func(ctx context.Context, s signals.FailureRecoverySignal) error {
			if cause != nil {
				return settleAll(ctx, s)
			}
			f, err := s.Acquire(ctx)
			if err != nil {
				return err
			}
			<-f.Context().Done()
			cause, lost = context.Cause(f.Context()), time.Now()
			return ctx.Err()
		}
		startNode(t, g, "b", backup(act))
		startNode(t, g, "c", backup(act))
		k := g.close("backup", "a", "a1", "B1")
		pass(3500 * time.Millisecond)
		g.setDown(true)
		down := time.Now()
		pass(time.Minute)
		if !errors.Is(cause, signals.ErrFenceLost) {
			t.Fatalf("cause %v, want ErrFenceLost", cause)
		}
		if d := lost.Sub(down); d > fakeFenceTTL-fakeMargin {
			t.Errorf("lost %v after the quorum, want before %v", d, fakeFenceTTL-fakeMargin)
		}
		g.setDown(false)
		pass(time.Minute)
		wantEnded(t, g, k)
	})
}

func TestRule15_UnavailableGoesRoundAndNeverParks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		go g.lead(t.Context())
		tries := map[string]int{}
		back := time.Now().Add(time.Hour)
		act := func(name string) recoverFunc {
			return func(ctx context.Context, s signals.FailureRecoverySignal) error {
				tries[name]++
				if time.Now().Before(back) {
					return fmt.Errorf("dial ledger: %w", signals.ErrUnavailable)
				}
				return settleAll(ctx, s)
			}
		}
		startNode(t, g, "b", backup(act("b")))
		startNode(t, g, "c", backup(act("c")))
		k := g.close("backup", "a", "a1", "B1")
		pass(30 * time.Minute)
		if rec, open := g.look(k); !open || rec.appointee == "" {
			t.Fatalf("parked: %+v", rec)
		}
		pass(time.Hour)
		wantEnded(t, g, k)
		if tries["b"] < 100 || tries["c"] < 100 || tries["b"]+tries["c"] > 4000 {
			t.Errorf("tries %v in an hour: want both, with back-off", tries)
		}
	})
}

// What all candidates have found away is not asked for before the pause of that round is over.
func TestRule15_ARoundBeginsWithItsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		g.pause = 10 * time.Second
		begun := time.Now()
		var delivered time.Duration
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			delivered = time.Since(begun)
			return settleAll(ctx, s)
		}))
		k := g.close("backup", "a", "a1", "B1")
		pass(time.Minute)
		wantEnded(t, g, k)
		if delivered != g.pause {
			t.Errorf("delivered after %v, the pause is %v", delivered, g.pause)
		}
	})
}

func TestReleaseIsRepeatedUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		actions := 0
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			actions++
			err := settleAll(ctx, s)
			g.setDown(true)
			return err
		}))
		k := g.close("backup", "a", "a1", "B1")
		pass(time.Minute)
		g.setDown(false)
		pass(time.Minute)
		wantEnded(t, g, k)
		if actions != 1 {
			t.Errorf("the action ran %d times: its work was done", actions)
		}
	})
}

func TestRule13_HungActionLosesItsFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		go g.lead(t.Context())
		var cause error
		start := time.Now()
		var ended time.Duration
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			f, err := s.Acquire(ctx)
			if err != nil {
				return err
			}
			for range 30 {
				time.Sleep(4 * time.Second)
				f.Progress()
			}
			f.Hold(10 * time.Minute)
			time.Sleep(9 * time.Minute)
			if ctx.Err() != nil {
				t.Errorf("lost while it kept its promise: %v", context.Cause(ctx))
			}
			f.Hold(0)
			start = time.Now()
			<-ctx.Done()
			cause, ended = context.Cause(ctx), time.Since(start)
			return ctx.Err()
		}), signals.WithProgress(5*time.Second))
		startNode(t, g, "c", backup(settleAll), signals.WithProgress(5*time.Second))
		k := g.close("backup", "a", "a1", "B1")
		pass(time.Hour)
		if !errors.Is(cause, signals.ErrFenceLost) || cause != errHung {
			t.Errorf("cause %v, want no progress", cause)
		}
		if limit := 5*time.Second + fakeFenceTTL; ended > limit {
			t.Errorf("ended after %v, want within %v", ended, limit)
		}
		wantEnded(t, g, k)
	})
}

// PROTOCOL 22: the fence first, then the wait, renewing.
func TestRule22_ExclusionLeaseWaitsUnderTheFence(t *testing.T) {
	for _, tc := range []struct {
		name      string
		exclusion signals.Exclusion
		wait      time.Duration // 0: proven ended
		want      time.Duration
	}{
		{"lease", signals.ExclusionLease, time.Minute, time.Minute},
		{"lease, proven", signals.ExclusionLease, 0, 0},
		{"token", signals.ExclusionToken, time.Minute, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newFakeGroup(t, "b", "c")
				go g.lead(t.Context())
				g.wait = tc.wait
				start := time.Now()
				var waited time.Duration
				startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
					_, err := s.Acquire(ctx)
					waited = time.Since(start)
					return errors.Join(err, settleAll(ctx, s))
				}), signals.WithExclusion(tc.exclusion), signals.WithProgress(time.Second))
				k := g.close("backup", "a", "a1", "B1")
				synctest.Wait()
				if rec, open := g.look(k); tc.want > 0 && (!open || !rec.raised) {
					t.Errorf("not raised while waiting: %+v", rec)
				}
				pass(time.Hour)
				if waited != tc.want {
					t.Errorf("acquire took %v, want %v", waited, tc.want)
				}
				wantEnded(t, g, k)
			})
		})
	}
}

// PROTOCOL 22: the proof may come while the recoverer waits, and ends the wait.
func TestRule22_AProofThatComesLaterEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		go g.lead(t.Context())
		g.wait = time.Minute
		start := time.Now()
		var waited time.Duration
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			_, err := s.Acquire(ctx)
			waited = time.Since(start)
			return errors.Join(err, settleAll(ctx, s))
		}), signals.WithExclusion(signals.ExclusionLease))
		k := g.close("backup", "a", "a1", "B1")
		pass(3 * time.Second)
		g.quiesce(k)
		pass(time.Hour)
		if waited != 3*time.Second {
			t.Errorf("acquire took %v, want 3s", waited)
		}
		wantEnded(t, g, k)
	})
}

func TestWaitOfExclusionLeaseEndsWithTheAppointment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		g.wait = time.Hour
		var err error
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			_, err = s.Acquire(context.Background())
			return err
		}), signals.WithExclusion(signals.ExclusionLease))
		k := g.close("backup", "a", "a1")
		synctest.Wait()
		g.handOver(k)
		synctest.Wait()
		if !errors.Is(err, signals.ErrNotAppointed) {
			t.Errorf("acquire: %v, want ErrNotAppointed", err)
		}
	})
}

// A goroutine that an action left behind cannot hold its end up, nor use the fence.
func TestCallLeftBehindEndsWithTheAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		g.wait = time.Hour
		left := make(chan error, 1)
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			go func() {
				_, err := s.Acquire(context.Background())
				left <- err
			}()
			synctest.Wait()
			return errors.New("gave up")
		}), signals.WithExclusion(signals.ExclusionLease))
		k := g.close("backup", "a", "a1")
		if err := <-left; !errors.Is(err, signals.ErrNotAcquired) {
			t.Errorf("acquire: %v, want ErrNotAcquired", err)
		}
		synctest.Wait()
		if rec, _ := g.look(k); len(rec.why) == 0 {
			t.Error("failure is not reported")
		}
	})
}
