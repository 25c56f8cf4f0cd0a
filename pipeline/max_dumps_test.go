package pipeline

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// Twelve backups of six databases on one server, by three nodes that could make six at once: never more than two at a time,
// each once, and nobody uses up attempts with waiting.
func TestMaxDumpsOfAServer(t *testing.T) {
	inRig(t, func(r *rig) {
		var now, most atomic.Int32
		r.server.onWrite = func(ctx context.Context, part string, sent int64) error {
			if part != source.PartData || sent != 0 {
				return nil
			}
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			return pause(ctx, 10*time.Second)
		}
		names := []string{"shop", "b", "c", "d", "e", "f"}
		all, limits := map[string]source.Source{}, map[string]int{}
		for _, name := range names {
			all[name], limits[name] = r.server, 2
		}
		for _, node := range []string{"n1", "n2", "n3"} {
			r.start(node, func(c *Config) { c.Catalog.Sources = all }, nil)
		}
		p := r.planner(func(c *PlannerConfig) { c.Catalog.Sources, c.MaxDumps = all, limits })
		var ids []string
		for range 2 {
			for _, name := range names {
				task, err := p.PlanBackup(r.Context(), BackupRequest{Database: name})
				r.must(err)
				ids = append(ids, task.ID)
			}
		}
		for _, id := range ids {
			if done := r.awaitState(id, ledger.Completed); done.Attempt != 1 || done.Server != "fake:5432" {
				r.Errorf("done: %+v", done)
			}
		}
		if n := most.Load(); n != 2 {
			r.Errorf("%d at a time, want 2", n)
		}
	})
}
