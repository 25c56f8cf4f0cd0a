package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// planned is the event that every task has; the other one is its end, named as its component.
const planned = "planned"

// trigger is what the component of a task type wants: tasks that have not ended.
func trigger(t ledger.TaskType) component.Trigger {
	return component.Trigger{Past: []string{planned}, Future: []string{Component(t)}}
}

// itemOf is a task as a component sees it.
func itemOf(t ledger.Task) component.Item {
	it := component.Item{
		Type: string(t.Type), ID: t.ID, RoundTrip: t.Attempt + 1, ChangedAt: t.Created,
		Events: []component.Event{{Type: planned, Start: t.Created, Success: true}},
		Record: component.Record{Created: t.Created, Attempts: t.Attempt},
	}
	if t.CancelBy == "" {
		it.Record.NotBefore = t.NotBefore
	}
	if t.Attempt > 0 {
		it.Record.LastAttempt = t.Updated
	}
	if t.State.Final() {
		it.Events = append(it.Events, component.Event{
			Type: Component(t.Type), Start: t.Finished, Success: t.State == ledger.Completed, Details: t.Error, Token: t.Token, Attempt: t.Attempt,
		})
	}
	return it
}

// candidates is the index of one task type: tasks that this node could work on, those that it waits with included.
type candidates struct {
	w    *Worker
	kind ledger.TaskType
}

// Query implements component.Index.
func (c candidates) Query(ctx context.Context, q component.Query) ([]component.Item, error) {
	all, err := c.w.cfg.Ledger.Tasks(ctx, ledger.TaskFilter{Active: true})
	if err != nil {
		return nil, err
	}
	flying := make(map[string]bool) // flights of which a task has begun
	var list []ledger.Task
	for _, t := range all {
		if t.State != ledger.Planned {
			flying[t.Flight] = true
		}
		if t.Type == c.kind {
			list = append(list, t)
		}
	}
	delete(flying, "")
	c.w.keepDue(c.kind, list)
	who := c.w.cfg.Gate.Self()
	paused := c.w.cfg.Paused(Component(c.kind))
	var items []component.Item
	for _, t := range slices.Backward(list) { // oldest first
		if paused && t.CancelBy == "" || !c.w.able(t) || c.w.runs(t.ID) || t.State == ledger.Planned && (flying[t.Flight] || t.TooMany(all)) {
			continue
		}
		it := itemOf(t)
		if wait := c.w.notYet(t, who); wait > 0 {
			it.Record.NotBefore = q.At.Add(wait)
		}
		if items = append(items, it); len(items) == q.Limit {
			break
		}
	}
	return items, nil
}

// strayAfter is how long a task that has begun may lie still, as this node sees it, before this node tries to claim it.
const strayAfter = time.Minute

// stray tells whether a task has begun under a run that is not this node's. Then its claim is that run's or an orphan
// for recovery, but for one: a run that gave the claim back without being able to say in the row that it did, and is
// gone, or a recovery that was dropped, leave a row that nobody holds. The claim tells them apart: who tries it, is
// refused while anybody holds it.
func stray(t ledger.Task, who Standing) bool { return t.State != ledger.Planned && t.Run != who.Run }

// notYet says how long this node still waits with a task that failed for a passing reason, or is stray. The wait is
// counted from when this node saw the failure, or the last change of the stray: clocks of nodes are not compared.
func (w *Worker) notYet(t ledger.Task, who Standing) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := stray(t, who)
	if !lost && (t.Attempt == 0 || t.Error == "" || t.CancelBy != "") {
		return 0
	}
	d, ok := w.due[t.ID]
	if !ok || d.token != t.Token || lost && !d.updated.Equal(t.Updated) {
		d = dueAt{kind: t.Type, token: t.Token, updated: t.Updated, at: time.Now().Add(strayAfter)}
		if !lost {
			d.at = time.Now().Add(w.cfg.RetryAfter << min(t.Attempt-1, 6))
		}
		w.due[t.ID] = d
	}
	return time.Until(d.at)
}

// refused has the wait with a stray whose claim was refused begin anew.
func (w *Worker) refused(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.due, id)
}

// keepDue forgets the waits of tasks that are not in list.
func (w *Worker) keepDue(kind ledger.TaskType, list []ledger.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, d := range w.due {
		if d.kind == kind && !slices.ContainsFunc(list, func(t ledger.Task) bool { return t.ID == id }) {
			delete(w.due, id)
		}
	}
}
