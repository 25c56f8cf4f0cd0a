package pipeline

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	"github.com/fencepost/fencepost/pipeline/source"
)

// keepsOld is a source that keeps what restores replaced.
type keepsOld struct {
	source.Source
	asked []source.Attempt
}

func (k *keepsOld) ExpireOld(_ context.Context, a source.Attempt) ([]string, error) {
	k.asked = append(k.asked, a)
	return []string{"shop__was_1"}, nil
}

// TestHousekeeping: storages are swept each hour and replaced databases dropped each minute, by one node at a time, whichever
// runs, under a token of its own each time.
func TestHousekeeping(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		old := b.Token - 3
		kept := &keepsOld{Source: r.server}
		sweeps := map[string][]*component.Runner{}
		for _, name := range []string{"n1", "n2"} {
			n := r.node(name, func(c *Config) { c.Catalog.Sources["shop"] = kept }, nil)
			items := embedded.NewItems(r.led, func() string { return n.run })
			h := NewHousekeeper(n.w, items)
			r.must(h.Begin(r.Context()))
			for _, cfg := range h.Components() {
				cfg.Node, cfg.Locks, cfg.Claims, cfg.Gate = name, n, n, n
				runner, err := component.New(cfg)
				r.must(err)
				r.must(runner.Start(r.Context()))
				sweeps[cfg.Component] = append(sweeps[cfg.Component], runner)
				r.Cleanup(func() { r.must(runner.Stop(context.Background())) })
			}
		}
		pass := func(d time.Duration) { <-time.After(d) }
		pass(2 * time.Minute)
		r.put("one", ObjectPath(b.Backup, old, "data"))
		pass(2 * time.Hour)
		whole := []string{fmt.Sprintf("%d/data", b.Token), fmt.Sprintf("%d/database.sql", b.Token), fmt.Sprintf("%d/manifest.json", b.Token)}
		r.wantObjects("one", whole...)
		done := func(name string) (n int) {
			for _, runner := range sweeps[name] {
				got := runner.Totals()
				n += got.Done
				if got.Failed > 0 {
					t.Errorf("%s: %+v", name, got)
				}
			}
			return n
		}
		if n := done(SweepComponent); n != 3*len(r.disks) {
			t.Errorf("%d sweeps of %d storages in two hours, want three each", n, len(r.disks))
		}
		if n := done(TidyComponent); n != len(kept.asked) || n < 115 || n > 123 {
			t.Errorf("tidied %d times in two hours, want each minute", n)
		}
		var tokens []uint64
		for _, a := range kept.asked {
			tokens = append(tokens, a.Token)
		}
		if !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != len(kept.asked) {
			t.Errorf("tokens do not grow: %v", tokens)
		}
	})
}
