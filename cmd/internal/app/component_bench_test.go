package app

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
)

// BenchmarkComponent: three nodes work through 10,000 items of 1 ms, real disks and sockets, items in the embedded ledger, in
// both procedures, for a minute each or until all are done. It prints how many were claimed, worked on and recorded in a second,
// how many claims were given in a second of holding the poll lock, and how long that was held.
func BenchmarkComponent(b *testing.B) {
	const items = 10_000
	base := config(b)
	var nodes []*App
	var seeds []string
	for i := range 3 {
		c := base
		c.Node, c.Home = fmt.Sprintf("n%d", i+1), filepath.Join(base.Home, fmt.Sprint(i))
		c.Bootstrap, c.Seeds = []string{"n1", "n2", "n3"}, slices.Clone(seeds)
		c.Gossip.Bind, c.Cluster.Bind = freeAddr(b), freeAddr(b)
		c.Admin.Socket = fmt.Sprintf("%s%d", base.Admin.Socket, i)
		seeds = append(seeds, c.Gossip.Bind)
		a, err := New(c, "test", slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		if err := a.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = a.Stop(context.Background()) }()
		nodes = append(nodes, a)
	}
	for _, a := range nodes {
		for a.stateNow() != "ready" {
			select {
			case <-a.group.Changed():
			case <-a.group.Cache().Changed():
			case <-time.After(20 * time.Millisecond): // the state has no channel of its own
			}
		}
	}
	var filling sync.WaitGroup
	for part := range 64 {
		filling.Go(func() {
			for i := part; i < items; i += 64 {
				if _, err := nodes[0].work.items.Put(b.Context(), component.Item{Type: "bench", ID: fmt.Sprint(i)}, false); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	filling.Wait()
	for _, p := range []component.Procedure{component.Many, component.One} {
		b.Run(fmt.Sprintf("procedure=%d", p), func(b *testing.B) {
			for round := range b.N {
				held, claimed, done, took := drainBench(b, nodes, p, fmt.Sprintf("bench%d-%d-%d", p, b.N, round), items)
				if len(held) == 0 {
					b.Fatalf("nobody had the poll lock in %s", took)
				}
				all := time.Duration(0)
				for _, h := range held {
					all += h
				}
				slices.Sort(held)
				b.ReportMetric(float64(done), "items")
				b.ReportMetric(float64(done)/took.Seconds(), "items/s")
				b.ReportMetric(float64(claimed)/all.Seconds(), "claims/held-s")
				b.ReportMetric(float64(len(held))/took.Seconds(), "polls/s")
				b.ReportMetric(held[len(held)/2].Seconds()*1000, "poll-ms-p50")
				b.ReportMetric(held[len(held)*99/100].Seconds()*1000, "poll-ms-p99")
				b.ReportMetric(held[len(held)-1].Seconds()*1000, "poll-ms-max")
			}
		})
	}
}

const (
	benchTicks = 64          // of procedure 1 that go on at once on a node
	benchFor   = time.Minute // of one procedure
)

// drainBench has one runner on each node work until all items are done by a component of that name, or the time is over.
func drainBench(b *testing.B, nodes []*App, p component.Procedure, name string, items int) (held []time.Duration, claimed, done int, took time.Duration) {
	ctx, cancel := context.WithTimeout(b.Context(), benchFor)
	defer cancel()
	var mu sync.Mutex
	var running sync.WaitGroup
	places, ticks := 256, 1
	if p == component.One {
		places, ticks = benchTicks, benchTicks
	}
	began := time.Now()
	for _, a := range nodes {
		r, err := component.New(component.Config{
			Component: name, Node: a.cfg.Node, Trigger: component.Trigger{Types: []string{"bench"}, Future: []string{name}},
			Procedure: p, SimultaneousProcesses: places, QueryLimit: 1000, PollWait: time.Minute,
			Worker: component.Func(func(context.Context, component.Job) (component.Report, error) {
				<-time.After(time.Millisecond)
				return component.Report{}, nil
			}),
			Locks: a.work.bridge, Claims: a.work.bridge, Gate: a.work.bridge, Index: a.work.items, Store: a.work.items,
		})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = r.Stop(context.Background()) }()
		for range ticks {
			running.Go(func() {
				for over := false; !over; {
					t := r.RunOnce(ctx)
					mu.Lock()
					if t.PollHeld > 0 {
						held = append(held, t.PollHeld)
					}
					claimed, done = claimed+t.Claimed, done+t.Done
					over = done >= items || ctx.Err() != nil
					mu.Unlock()
					if t.Err != nil && !over { // the timer of a runner would wait longer
						b.Logf("%s: %v", a.cfg.Node, t.Err)
						<-time.After(100 * time.Millisecond)
					}
				}
			})
		}
	}
	running.Wait()
	return held, claimed, done, time.Since(began)
}
