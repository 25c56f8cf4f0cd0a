package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/component"
)

func (j jobs) runner(name string) (*work, *component.Runner, error) {
	w, err := j.now()
	if err != nil {
		return nil, nil, err
	}
	r, ok := w.runners[name]
	if !ok {
		return nil, nil, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no component %q on this node", name), Hint: "fencepost component ls lists them"}
	}
	return w, r, nil
}

// Components implements admin.Autonomous.
func (j jobs) Components(ctx context.Context) ([]api.Component, error) {
	w, err := j.now()
	if err != nil {
		return nil, err
	}
	list := []api.Component{}
	for _, name := range slices.Sorted(maps.Keys(w.runners)) {
		list = append(list, j.component(ctx, name, w.runners[name]))
	}
	return list, nil
}

func (j jobs) component(ctx context.Context, name string, r *component.Runner) api.Component {
	t := r.Totals()
	c := api.Component{
		Name: name, Paused: j.a.paused(name), Queried: t.Queried, Claimed: t.Claimed, Done: t.Done, Failed: t.Failed, Stale: t.Stale, Lost: t.Lost,
		NotStored: t.NotStored, NotStopped: len(r.Stuck()), Unpreserved: t.Unpreserved,
	}
	ctx, cancel := context.WithTimeout(ctx, syncWithin)
	defer cancel()
	if fenced, err := j.a.manager.IsFenced(ctx, name, j.a.cfg.Node); err == nil {
		c.Fenced = fenced
	}
	for _, claim := range j.a.group.Claims() {
		if claim.Component == name {
			c.Claims++
		}
	}
	return c
}

// PauseComponent implements admin.Autonomous.
func (j jobs) PauseComponent(ctx context.Context, name string, on bool) (api.Component, error) {
	_, r, err := j.runner(name)
	if err != nil {
		return api.Component{}, err
	}
	if err := j.a.pause(ctx, name, on, j.asker(ctx)); err != nil {
		return api.Component{}, err
	}
	r.Wake()
	c := j.component(ctx, name, r)
	c.Paused = on
	return c, nil
}

// Items implements admin.Autonomous.
func (j jobs) Items(ctx context.Context, q api.ItemQuery) ([]api.Item, error) {
	w, err := j.now()
	if err != nil {
		return nil, err
	}
	triggers, err := j.triggers(w, q)
	if err != nil {
		return nil, err
	}
	all, err := w.items.All(ctx, q.Component, "")
	if err != nil {
		return nil, err
	}
	list := []api.Item{}
	for _, it := range all {
		list = append(list, j.claimedToo(itemShown(it, triggers, j.a.clock.Now()), q.Component))
	}
	return list, nil
}

// triggers are those by which items are looked at: the query's own, else the component's, else none.
func (j jobs) triggers(w *work, q api.ItemQuery) ([]component.Trigger, error) {
	if q.Own() {
		return []component.Trigger{{Past: q.Past, PastFailed: q.PastFailed, Future: q.Future, Old: q.Old, Types: q.Types}}, nil
	}
	if q.Component == "" {
		return nil, nil
	}
	t, ok := w.triggers[q.Component]
	if !ok {
		return nil, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no component %q that works on items", q.Component), Hint: "those of tasks have their items among fencepost tasks"}
	}
	return t, nil
}

// Item implements admin.Autonomous.
func (j jobs) Item(ctx context.Context, q api.ItemQuery, id string) (api.Item, error) {
	w, err := j.now()
	if err != nil {
		return api.Item{}, err
	}
	triggers, err := j.triggers(w, q)
	if err != nil {
		return api.Item{}, err
	}
	it, err := w.items.Get(ctx, q.Component, id)
	return j.claimedToo(itemShown(it, triggers, j.a.clock.Now()), q.Component), err
}

// claimedToo says of an item that a component wants who keeps it from being claimed.
func (j jobs) claimedToo(it api.Item, name string) api.Item {
	c, claimed := j.a.group.ClaimOn(name, it.ID)
	if !claimed || !it.Wanted {
		return it
	}
	why := fmt.Sprintf("node %s has claimed it", c.Node)
	if c.Quarantined {
		why = fmt.Sprintf("it is set aside: fencepost claim free %s %s --token %d", name, it.ID, c.Token)
	}
	it.Wanted, it.Why = false, append(it.Why, why)
	return it
}

// itemShown is an item with what a component with these triggers thinks of it; no triggers: nobody was asked.
func itemShown(it component.Item, triggers []component.Trigger, now time.Time) api.Item {
	out := api.Item{
		ID: it.ID, Type: it.Type, RoundTrip: it.RoundTrip, ChangedAt: it.ChangedAt, Events: []api.Event{}, Data: it.Data,
		Failures: it.Record.Failures, Quarantined: it.Record.Quarantined, NotBefore: optional(it.Record.NotBefore), Why: []string{},
	}
	for _, e := range it.Events {
		out.Events = append(out.Events, api.Event(e))
	}
	if len(triggers) == 0 {
		return out
	}
	wanted, why := component.MatchAny(triggers, it)
	if it.Record.Quarantined {
		why = append(why, fmt.Sprintf("it is quarantined after %d failures in a row", it.Record.Failures))
	} else if !it.Record.Ready(now) {
		why = append(why, fmt.Sprintf("it waits until %s after %d failures", it.Record.NotBefore.UTC().Format(time.RFC3339), it.Record.Failures))
	}
	out.Wanted, out.Why = wanted && it.Record.Ready(now), slices.Concat([]string{}, why)
	return out
}

// PutItem implements admin.Autonomous.
func (j jobs) PutItem(ctx context.Context, r api.PutItem) (api.Item, error) {
	w, err := j.now()
	if err != nil {
		return api.Item{}, err
	}
	put := component.Item{ID: r.ID, Type: r.Type, Data: r.Data}
	if err := component.CheckItem(put); err != nil {
		return api.Item{}, &api.Error{Code: api.CodeUsage, Message: err.Error()}
	}
	it, err := w.items.Put(ctx, put, true)
	return itemShown(it, nil, j.a.clock.Now()), err
}

// AppendEvent implements admin.Autonomous.
func (j jobs) AppendEvent(ctx context.Context, id string, r api.AppendEvent) (api.Item, error) {
	w, err := j.now()
	if err != nil {
		return api.Item{}, err
	}
	e := component.Event{Type: r.Type, Start: j.a.clock.Now().UTC(), Success: !r.Failed, Agent: j.asker(ctx), Details: r.Details}
	if err := component.CheckEvent(e); err != nil {
		return api.Item{}, &api.Error{Code: api.CodeUsage, Message: err.Error()}
	}
	if err := w.items.Append(ctx, id, e); err != nil {
		return api.Item{}, err
	}
	return j.Item(ctx, api.ItemQuery{}, id)
}

// ForgetEvents implements admin.Autonomous.
func (j jobs) ForgetEvents(ctx context.Context, id string, r api.ForgetEvents) (api.Forgotten, error) {
	w, err := j.now()
	if err != nil {
		return api.Forgotten{}, err
	}
	n, err := w.items.Forget(ctx, id, r.Type)
	return api.Forgotten{Events: n}, err
}
