package bench

import (
	"slices"
	"time"
)

// Spread is how a number of durations lie.
type Spread struct{ P50, P99, Worst time.Duration }

// SpreadOf sorts the list; of an empty one it is zero.
func SpreadOf(list []time.Duration) Spread {
	slices.Sort(list)
	return Spread{P50: quantile(list, 50), P99: quantile(list, 99), Worst: quantile(list, 100)}
}

// quantile is the smallest of a sorted list that at least p percent of it do not exceed.
func quantile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*p+99)/100-1, 0)]
}

// Reporter is a benchmark, as far as it takes metrics.
type Reporter interface {
	ReportMetric(value float64, unit string)
}

// Report gives a benchmark its quantiles under the units that rows name: p50-ms, p99-ms, worst-ms.
func (s Spread) Report(b Reporter) {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(s.P50), "p50-ms")
	b.ReportMetric(ms(s.P99), "p99-ms")
	b.ReportMetric(ms(s.Worst), "worst-ms")
}
