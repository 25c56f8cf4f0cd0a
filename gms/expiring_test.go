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
