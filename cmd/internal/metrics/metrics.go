package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Metrics counts what happens. Its methods are safe for concurrent use and do not block.
type Metrics struct {
	closed     *prometheus.CounterVec
	fenced     *prometheus.HistogramVec
	recoveries *prometheus.CounterVec
	calls      *prometheus.CounterVec
	bytes      *prometheus.CounterVec

	mu   sync.Mutex
	seen map[string]progress // of recoveries, by component and run; nil before the first look
}

// progress is how far a recovery was when it was seen last.
type progress struct{ fenced, ended bool }

// New registers all metrics. sample is called for each scrape, maybe by several at once; it must end within a bounded time.
func New(reg prometheus.Registerer, sample func(context.Context) Sample) (*Metrics, error) {
	m := &Metrics{
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fencepost_closed_runs_total",
			Help: "Runs of members that were closed while this node watched, by evidence."}, []string{"evidence"}),
		fenced: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "fencepost_close_to_fence_seconds",
			Help:    "From the closing of a run until the fence on its work was raised, by the clocks of the leaders.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}}, []string{"component"}),
		recoveries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fencepost_recoveries_total",
			Help: "Recoveries that have ended while this node watched: released, or dropped by an operator."}, []string{"component", "result"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fencepost_storage_calls_total",
			Help: "Calls of this node to a storage, by what was asked and what came: ok, missing, exists, stale, permanent, passing."}, []string{"storage", "call", "result"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fencepost_storage_transferred_bytes_total",
			Help: "Bytes that this node has put into a storage and got from it."}, []string{"storage", "direction"}),
	}
	for _, c := range []prometheus.Collector{m.closed, m.fenced, m.recoveries, m.calls, m.bytes, &collector{sample: sample}} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Closed counts a run that was closed.
func (m *Metrics) Closed(evidence string) { m.closed.WithLabelValues(evidence).Inc() }

// Recoveries takes all open and lately ended recoveries and counts what is new in them. What had happened before the first
// call is not counted.
func (m *Metrics) Recoveries(all []api.Recovery) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.seen == nil
	next := make(map[string]progress, len(all))
	for _, r := range all {
		key := r.Component + "/" + r.Run
		was := m.seen[key]
		took, fenced := toFence(r)
		is := progress{fenced: was.fenced || fenced, ended: was.ended || r.Ended != 0}
		next[key] = is
		if first {
			continue
		}
		if is.fenced && !was.fenced {
			m.fenced.WithLabelValues(r.Component).Observe(took.Seconds())
		}
		if is.ended && !was.ended {
			m.recoveries.WithLabelValues(r.Component, r.State).Inc()
		}
	}
	m.seen = next
}

// toFence is how long it took until the fence was raised for the first time.
func toFence(r api.Recovery) (took time.Duration, raised bool) {
	var closed *time.Time
	for _, s := range r.Steps {
		switch {
		case s.At == nil:
		case s.What == "closed":
			closed = s.At
		case s.What == "raised" && closed != nil:
			return max(0, s.At.Sub(*closed)), true
		}
	}
	return 0, false
}

// Called counts a call to a storage.
func (m *Metrics) Called(storage, call, result string) {
	m.calls.WithLabelValues(storage, call, result).Inc()
}

// Put and Got count bytes that went into a storage and came from it.
func (m *Metrics) Put(storage string, n int64) {
	m.bytes.WithLabelValues(storage, "put").Add(float64(n))
}
func (m *Metrics) Got(storage string, n int64) {
	m.bytes.WithLabelValues(storage, "get").Add(float64(n))
}
