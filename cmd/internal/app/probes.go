package app

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/fencepost/fencepost/cmd/internal/metrics"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/signals"
)

// newMetrics makes the node's own registry, so that several nodes can live in one process.
func (a *App) newMetrics() (err error) {
	a.registry = prometheus.NewRegistry()
	if a.metrics, err = metrics.New(a.registry, a.sample); err != nil {
		return err
	}
	for _, c := range []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := a.registry.Register(c); err != nil {
			return err
		}
	}
	return a.router.AddActionFactory(signals.Handle(func(_ context.Context, s signals.Signal) error {
		a.metrics.Closed(string(s.Facts().Evidence))
		return nil
	}), signals.FailureNotification, signals.PlannedShutdown)
}

// probes are what a monitor asks without a log-in: /metrics, /healthz, /readyz.
func (a *App) probes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(a.registry))
	mux.Handle("GET /healthz", metrics.Probe(a.sick))
	mux.Handle("GET /readyz", metrics.Probe(a.unready))
	return mux
}

// sick is why the process must be started again; a node that only waits is not.
func (a *App) sick(context.Context) []string {
	if err := a.Err(); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// unready is why the node takes no work now.
func (a *App) unready(ctx context.Context) (reasons []string) {
	reasons = a.sick(ctx)
	s, err := people{a}.Status(ctx)
	switch {
	case err != nil:
		reasons = append(reasons, "its state is not known")
	case !s.Ready:
		reasons = append(reasons, "the node is "+s.State)
	case s.Lease == "expired":
		reasons = append(reasons, "its lease has run out")
	case s.Leader == "":
		reasons = append(reasons, "no leader is known")
	}
	if err := a.waitsFor(); err != nil {
		reasons = append(reasons, "its ledger does not answer")
	}
	return reasons
}

// sample is what a scrape shows.
func (a *App) sample(ctx context.Context) metrics.Sample {
	h := a.group.Health()
	s := metrics.Sample{
		Now: a.clock.Now(), Overview: a.seen.Get(ctx), Members: people{a}.view().Members, Tasks: map[metrics.TaskKey]int{},
		ClockAhead: a.clock.ahead(), GossipWaiting: h.GossipWaiting, GossipScore: h.GossipScore,
		Raft: metrics.Raft{Leads: h.Leads, Term: h.Term, Last: h.Last, Commit: h.Commit, Applied: h.Applied, Snapshot: h.Snapshot},
	}
	if !h.Leads && !h.Contact.IsZero() {
		s.Raft.Contact = time.Since(h.Contact)
	}
	if h.Leads {
		for _, f := range h.Followers {
			s.Raft.Followers = append(s.Raft.Followers, metrics.Follower{Node: f.Node, Behind: h.Last - min(h.Last, f.Match)})
		}
	}
	for _, c := range a.group.Claims() {
		s.Claims = append(s.Claims, claimShown(c))
	}
	w, err := (jobs{a}).now()
	if err != nil {
		return s
	}
	if u, err := (jobs{a}).Usage(ctx); err == nil {
		s.Usage = u
	}
	if list, err := (jobs{a}).Components(ctx); err == nil {
		s.Components = list
	}
	active, err := w.ledger.Tasks(ctx, ledger.TaskFilter{Active: true})
	if err != nil {
		return s // the overview has the alarm
	}
	for _, t := range active {
		s.Tasks[metrics.TaskKey{Type: string(t.Type), State: string(t.State)}]++
	}
	return s
}

// countRest is what the counters of recoveries are behind at most: a death writes several entries in a few milliseconds, in
// which the processors are wanted for more than reading a thousand ended recoveries after each.
const countRest = time.Second

// countRecoveries keeps the counters of recoveries up to date, until ctx ends.
func (a *App) countRecoveries(ctx context.Context) {
	for {
		changed := a.group.Cache().Changed()
		a.metrics.Recoveries(people{a}.recoveries())
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(countRest):
		}
	}
}
