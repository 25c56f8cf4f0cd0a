// Package metrics shows a node to Prometheus, and to whoever probes whether it lives and may be given work.
//
//	reg := prometheus.NewRegistry()
//	m, err := metrics.New(reg, func(ctx context.Context) metrics.Sample { ... })
//	mux.Handle("GET /metrics", metrics.Handler(reg))
//	mux.Handle("GET /healthz", metrics.Probe(func(context.Context) []string { ... }))
//	mux.Handle("GET /readyz", metrics.Probe(func(context.Context) []string { ... }))
//
// What it promises:
//
//   - The registry is passed in; nothing global is touched, so that several nodes can live in one process.
//   - What is a state (members, fences, leases, indexes, ages) is read when somebody scrapes, all from one Sample. What is
//     counted (closed runs, recoveries, calls of storages) is told to it when it happens, and counted once: recoveries
//     that were over when the process began are not counted again.
//   - Labels are names that an operator has chosen (databases, storages, components, nodes) or one of a few words. No run,
//     task or object is a label: their number has no bound.
//   - Every metric has the prefix fencepost_ and a unit in its name. configs/alerts.example.yml and
//     configs/grafana.example.json use them, and a test holds that each name there exists.
package metrics
