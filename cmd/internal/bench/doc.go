// Package bench is what this project promises about speed, as data, and what judges measurements by it.
//
// Each measurement is a Go benchmark beside what it measures, and says what it found as metrics of its own: quantiles in
// milliseconds ("p50-ms", "p99-ms", "worst-ms"), rates ("pairs/s"), shares. A [Run] says how the go command is called for
// some of them; a [Row] says what is promised, as bounds on these metrics or on the ratio of two of one and the same run.
// The program fencepost-bench joins the two:
//
//	make bench         everything of ours, on a machine that does nothing else
//	make bench-peers   the same, and peers beside it: etcd, ZooKeeper, pg_dump in a shell's pipeline
//
// It calls the go command for each run, reads with [Parse] what it printed, lets [Judge] compare, prints the table and writes
// everything that was measured as a [Report] into bin/bench/. A row is met, not met, or not measured; what was not measured
// is never met.
//
//	rows.go     the table of promises
//	runs.go     how each part of it is measured
//	parse.go    what the go command prints of benchmarks
//	judge.go    a bound and what was measured, compared
//	report.go   the table as text, and all of it as JSON
//	machine.go  on what it was measured
//	spread.go   quantiles, as benchmarks report them
//
// Package locks is a workload that any lock service can be put under; the module peers, one of its own so that their
// libraries stay out of ours, puts peers under it.
package bench
