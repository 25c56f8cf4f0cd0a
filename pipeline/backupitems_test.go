package pipeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// A verification is an event of its backup's item, good or bad, once, whichever node looks and however often; what has the
// trigger for it is wanted again after each. One that was cancelled says nothing.
func TestVerificationsAreEvents(t *testing.T) {
	inRig(t, func(r *rig) {
		keeper, b := r.kept(1)
		id := b[0].Backup
		nodes := []BackupItems{{keeper.items(), r.led}, {r.node("n2", nil, nil).items(), r.led}}
		good := component.Trigger{Types: []string{BackupItem}, Past: []string{VerifyEvent}, Old: []string{"publish"}}
		bad := component.Trigger{Types: []string{BackupItem}, PastFailed: []string{VerifyEvent}, Old: []string{"ring"}}
		wanted := func(by component.Trigger) bool {
			r.Helper()
			var last []component.Item
			for range 2 {
				for _, n := range nodes {
					list, err := n.Query(r.Context(), component.Query{Component: "host", Triggers: []component.Trigger{by}, At: time.Now()})
					r.must(err)
					last = list
				}
			}
			return slices.ContainsFunc(last, func(it component.Item) bool { return it.ID == id })
		}
		events := func(want int) component.Event {
			r.Helper()
			it, err := nodes[0].Get(r.Context(), "host", id)
			r.must(err)
			n := 0
			for _, e := range it.Events {
				if e.Type == VerifyEvent {
					n++
				}
			}
			if n != want {
				r.Errorf("%d events of verifications, want %d: %+v", n, want, it.Events)
			}
			e, _ := it.Newest(VerifyEvent)
			return e
		}
		verify := func(end ledger.State) ledger.Task {
			r.Helper()
			r.must(pause(r.Context(), time.Minute))
			task, err := r.planner(nil).PlanVerify(r.Context(), CheckRequest{Backup: id})
			r.must(err)
			return r.awaitState(task.ID, end)
		}
		if wanted(good) || wanted(bad) {
			r.Error("wanted without a verification")
		}
		task := verify(ledger.Completed)
		if !wanted(good) || wanted(bad) {
			r.Error("a good verification is not seen as one")
		}
		if e := events(1); !e.Success || e.Token != task.Token || e.Attempt != 1 || !e.Start.Equal(task.Begun) || e.Details != "" || e.Agent != "verify@keeper" {
			r.Errorf("event %+v of task %+v", e, task)
		}
		r.must(pause(r.Context(), time.Second))
		r.must(nodes[0].Append(r.Context(), id, component.Event{Type: "publish", Start: time.Now(), Success: true}))
		if wanted(good) {
			r.Error("what has been done since is wanted again")
		}
		verify(ledger.Completed)
		if !wanted(good) {
			r.Error("the next verification is not seen")
		}
		r.rewrite(b[0], source.PartData, flip)
		verify(ledger.Failed)
		if wanted(good) || !wanted(bad) {
			r.Error("a bad verification is not seen as one")
		}
		if e := events(3); e.Success || !strings.Contains(e.Details, "one: corrupt") {
			r.Errorf("event %+v", e)
		}
		lab := r.planner(func(c *PlannerConfig) { c.Catalog.Scratch = map[string]source.Source{"lab": nil} }) // which no node has
		waits, err := lab.PlanVerify(r.Context(), CheckRequest{Backup: id, Scratch: "lab"})
		r.must(err)
		r.must(r.planner(nil).Cancel(r.Context(), waits.ID, "ann"))
		r.awaitState(waits.ID, ledger.Cancelled)
		wanted(bad)
		events(3)
	})
}
