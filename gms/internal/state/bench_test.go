package state

import (
	"fmt"
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// loaded has n claims and n cache entries.
func loaded(b *testing.B, n int) (*Machine, RunID) {
	b.Helper()
	r := &rig{t: b, m: New()}
	m := r.m
	apply := func(c *wire.Command) {
		results, _ := m.Apply(m.Index()+1, entry(c))
		if results[0].GetCode() != wire.Code_CODE_OK {
			b.Fatalf("prepare: %v", results[0])
		}
	}
	apply(command(RunID{}, &wire.FormGroup{ClusterId: id16("group"), Base: testBase}))
	apply(command(RunID{}, opening(r, "A", "A1", "backup")))
	for i := range n {
		apply(command(runID("A1"), &wire.Claim{Component: "backup", Item: fmt.Sprint("item ", i)}))
		apply(command(RunID{}, &wire.CacheTxn{Puts: []*wire.CachePut{put(fmt.Sprint("key ", i), "a value of some bytes")}}))
	}
	return m, runID("A1")
}

func BenchmarkClaimAndComplete(b *testing.B) {
	for _, n := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("state=%d", n), func(b *testing.B) {
			m, run := loaded(b, n)
			claim := command(run, &wire.Claim{Component: "backup", Item: "one more", RoundTrip: 1})
			claim.Client = id16("client")
			for i := 0; b.Loop(); i++ {
				claim.Seq, claim.Acked = uint64(i+1), uint64(i)
				results, _ := m.Apply(m.Index()+1, entry(claim))
				end := &wire.EndClaim{Component: "backup", Item: "one more", Token: results[0].GetToken(), How: wire.EndClaim_HOW_COMPLETE}
				if results, _ = m.Apply(m.Index()+1, entry(command(run, end))); results[0].GetCode() != wire.Code_CODE_OK {
					b.Fatal(results[0])
				}
			}
		})
	}
}

func BenchmarkLockAndUnlock(b *testing.B) {
	m, run := loaded(b, 10_000)
	for b.Loop() {
		results, _ := m.Apply(m.Index()+1, entry(command(run, &wire.Lock{Name: "/SBOI/backup"})))
		m.Apply(m.Index()+1, entry(command(run, &wire.Unlock{Name: "/SBOI/backup", Token: results[0].GetToken()})))
	}
}

func BenchmarkSnapshot(b *testing.B) {
	m, _ := loaded(b, 10_000)
	b.Run("take", func(b *testing.B) {
		for b.Loop() {
			m.Snapshot()
		}
	})
	b.Run("encode", func(b *testing.B) {
		s := m.Snapshot()
		for b.Loop() {
			if _, err := MarshalSnapshot(s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hash", func(b *testing.B) {
		for b.Loop() {
			m.Hash()
		}
	})
	b.Run("restore", func(b *testing.B) {
		s := m.Snapshot()
		for b.Loop() {
			if _, err := Restore(s); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCloseRun closes a run with 10,000 claims: what a dead node costs at worst.
func BenchmarkCloseRun(b *testing.B) {
	m, _ := loaded(b, 10_000)
	s := m.Snapshot()
	for b.Loop() {
		b.StopTimer()
		m, err := Restore(s)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		m.Apply(m.Index()+1, entry(command(RunID{}, closingOf("A1", wire.Evidence_EVIDENCE_REFUSED))))
	}
}
