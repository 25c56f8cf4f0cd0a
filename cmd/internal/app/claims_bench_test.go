package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fencepost/fencepost/cmd/components"
)

// BenchmarkClaims is how many items a component can claim and give back in a second, through one node's log on this disk,
// by how many ask at once: grants of one moment share an entry.
func BenchmarkClaims(b *testing.B) {
	a, err := New(config(b), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	if err := a.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = a.Stop(context.Background()) }()
	if err := a.group.AwaitStanding(b.Context()); err != nil {
		b.Fatal(err)
	}
	g, err := components.New(components.Config{Group: a.group, Manager: a.manager})
	if err != nil {
		b.Fatal(err)
	}
	for _, askers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("askers=%d", askers), func(b *testing.B) {
			var next atomic.Int64
			var all sync.WaitGroup
			for range askers {
				all.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						c, err := g.TryClaim(b.Context(), "bench", fmt.Sprint(i), 1)
						if err == nil {
							err = g.EndClaim(b.Context(), c, true)
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
		})
	}
}
