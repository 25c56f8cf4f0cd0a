package gms

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// PROTOCOL.md 22: what is waited for is the lease that each holder reckoned with, not the one of who waits.
func TestRule22_EachHoldersOwnLeaseIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl, fence = 3 * time.Second, 30 * time.Second
		g := newLooseGroup(t)
		g.must(formCommand())
		for n, said := range map[byte][2]uint32{1: {}, 2: {60000, 5000}, 3: {1000, 90000}} {
			cmd := openCommand(n, "n"+string('0'+n), 0, "c")
			cmd.GetOpenRun().TtlMs, cmd.GetOpenRun().FenceTtlMs = said[0], said[1]
			g.must(cmd)
		}
		wait := func() time.Duration {
			left, _ := g.rep.leaseWait("c", runOf(2), leases{ttl: ttl, fence: fence})
			return left
		}
		g.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED))
		if w := wait(); w != time.Minute {
			t.Errorf("after the end of a run with a lease of a minute: %v", w)
		}
		pass(time.Minute)
		want := map[state.RunID]time.Duration{runOf(1): fence, runOf(3): 90 * time.Second}
		for range 2 {
			g.raise("c", 2)
			var holder state.RunID
			g.rep.read(func(m *state.Machine) {
				r, _ := m.Recovery("c", runOf(2))
				holder, _ = state.RunIDOf(r.GetAppointee())
			})
			g.must(g.move("c", 2))
			if w := wait(); w != want[holder] {
				t.Errorf("after the hand-over by %v: %v", holder, w)
			}
			pass(90 * time.Second)
		}
	})
}

// A leader finds a run lapsed by the run's lease, not by its own.
func TestRule06_LapsedIsMeasuredByTheRunsOwnLease(t *testing.T) {
	const tick = 100 * time.Millisecond
	for said, want := range map[time.Duration]time.Duration{0: 9 * time.Second, time.Second: 3 * time.Second, time.Minute: 3 * time.Minute} {
		m := detect.New(detect.Settings{TTL: 3 * time.Second, Tick: tick, NoRefused: true}, 0)
		m.Step(0, detect.Event{Kind: detect.Opened, TTL: said})
		for now := tick; ; now += tick {
			closes, suspects := false, false
			for _, p := range m.Step(now, detect.Event{Kind: detect.Tick}) {
				closes, suspects = closes || p.Act == detect.Close, suspects || p.Act == detect.Suspect
			}
			if suspects && now != want/6+tick {
				t.Errorf("a run with a lease of %v is suspected after %v", said, now)
			}
			if closes {
				if now != want+tick {
					t.Errorf("a run with a lease of %v is closed after %v", said, now)
				}
				break
			}
			if now > 2*want {
				t.Fatalf("a run with a lease of %v is not closed after %v", said, now)
			}
		}
	}
}
