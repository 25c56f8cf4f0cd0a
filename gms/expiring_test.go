package gms

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// A leader that did not run for longer than fence_ttl, suspended with its whole host perhaps, moves nothing: nobody could
// renew with it. From then on it counts as ever.
func TestTheLeadersOwnPauseMovesNoAppointment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, false)
		x.h.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_OPERATOR))
		first := x.recovery(t)
		look := func(span time.Duration) {
			for range int(span / x.tick) {
				pass(x.tick)
				x.expire()
				synctest.Wait()
			}
		}
		ttl := x.h.cfg.FenceTTL
		look(ttl / 2)
		pass(2 * ttl)
		look(ttl/2 - 2*time.Second)
		if x.recovery(t).GetIndex() != first.GetIndex() {
			t.Fatal("moved by the leader's own pause")
		}
		look(4 * time.Second)
		if x.recovery(t).GetIndex() == first.GetIndex() {
			t.Error("an appointment that nobody acquires stays")
		}
	})
}

// PROTOCOL.md 15: the pause that the rounds demand does not count against who pauses, so that unavailability alone never
// parks a recovery.
func TestRule15_ThePauseOfARoundIsNoDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, true)
		x.h.cfg.FenceTTL = 2 * time.Second // shorter than the longest pause
		x.h.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_OPERATOR))
		away := func() {
			r := x.recovery(t)
			x.h.must(&wire.Command{Run: r.GetAppointee(), Op: &wire.Command_FailRecovery{FailRecovery: &wire.FailRecovery{
				Recovery: &wire.RecoveryRef{Component: "c", Run: r.GetRun(), Index: r.GetIndex()}, Unavailable: true, Why: "away",
			}}})
		}
		for range 40 {
			away()
		}
		r := x.recovery(t)
		if pause := roundPause(r.GetRounds()); pause != lastRoundPause {
			t.Fatalf("%d rounds, pause %v", r.GetRounds(), pause)
		}
		if list, _ := x.h.Recoveries(); len(list) != 1 || list[0].Pause != lastRoundPause {
			t.Fatalf("the appointee is not told of its pause: %+v", list)
		}
		x.silence(lastRoundPause + time.Second)
		if now := x.recovery(t); now.GetIndex() != r.GetIndex() || len(now.GetTried()) > 0 {
			t.Errorf("moved within its pause and fence_ttl: %v", now)
		}
		x.silence(2 * time.Second)
		if x.recovery(t).GetIndex() == r.GetIndex() {
			t.Error("an appointment that nobody acquires stays")
		}
	})
}

func TestRule15_TheRoundsPauseGrowsToItsBound(t *testing.T) {
	for rounds, want := range map[uint32]time.Duration{
		0: 0, 1: 200 * time.Millisecond, 2: 400 * time.Millisecond, 6: 6400 * time.Millisecond, 7: lastRoundPause, 1 << 31: lastRoundPause,
	} {
		if got := roundPause(rounds); got != want {
			t.Errorf("%d rounds: %v, want %v", rounds, got, want)
		}
	}
}
