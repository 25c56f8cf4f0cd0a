package locks

import (
	"context"
	"fmt"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/bench"
)

// Workload is Free or Contended.
type Workload func(ctx context.Context, s Service, clients, n int) (Result, error)

// Bench puts each workload under a service, as benchmarks below b.
func Bench(b *testing.B, s Service) {
	for _, clients := range []int{1, 16, 64} {
		BenchOne(b, "free", Free, s, clients)
	}
	BenchOne(b, "contended", Contended, s, 32)
}

// BenchOne puts one workload under a service, as the benchmark NAME/clients=N below b.
func BenchOne(b *testing.B, name string, load Workload, s Service, clients int) {
	b.Run(fmt.Sprintf("%s/clients=%d", name, clients), func(b *testing.B) {
		r, err := load(b.Context(), s, clients, b.N)
		if err != nil {
			b.Fatal(err)
		}
		bench.SpreadOf(r.Each).Report(b)
		b.ReportMetric(float64(len(r.Each))/r.Took.Seconds(), "pairs/s")
		b.ReportMetric(0, "ns/op") // of the sessions too
	})
}

// BenchFencepost starts the group and puts each workload under it, and fences too, as benchmarks below b.
func BenchFencepost(b *testing.B) {
	f, err := StartFencepost(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := f.Stop(); err != nil {
			b.Error(err)
		}
	}()
	Bench(b, f)
	BenchOne(b, "fences", Free, f.Fences(), 16)
}
