package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/signals"
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

// RunComponent implements admin.Autonomous. The tick goes on when the caller does not wait for it.
func (j jobs) RunComponent(ctx context.Context, name string) (api.Tick, error) {
	_, r, err := j.runner(name)
	if err != nil {
		return api.Tick{}, err
	}
	ticks := make(chan component.Tick, 1)
	go func() { ticks <- r.RunOnce(context.WithoutCancel(ctx)) }() // Stop of the runner waits for it
	select {
	case t := <-ticks:
		out := api.Tick{Component: name, Code: int(t.Code()), Queried: t.Queried, Claimed: t.Claimed, Busy: t.Busy, Done: t.Done, Failed: t.Failed}
		if t.Err != nil {
			out.Problem = t.Err.Error()
		} else if details := t.Report.Details(); details != "" {
			out.Problem = details
		}
		return out, nil
	case <-time.After(runWithin):
		return api.Tick{}, &api.Error{Code: api.CodeBusy, Message: fmt.Sprintf("component %s still works on what it has claimed", name), Hint: "it goes on: see fencepost component ls and fencepost tasks"}
	case <-ctx.Done():
		return api.Tick{}, context.Cause(ctx)
	}
}

// runWithin is how long a tick that somebody asked for is waited for.
const runWithin = 25 * time.Second

// PauseComponent implements admin.Autonomous.
func (j jobs) PauseComponent(ctx context.Context, name string, on bool) (api.Component, error) {
	_, r, err := j.runner(name)
	if err != nil {
		return api.Component{}, err
	}
	if err := j.a.pause(ctx, name, on, j.asker()); err != nil {
		return api.Component{}, err
	}
	r.Wake()
	c := j.component(ctx, name, r)
	c.Paused = on
	return c, nil
}

// Items implements admin.Autonomous.
func (j jobs) Items(ctx context.Context, name string) ([]api.Item, error) {
	w, err := j.now()
	if err != nil {
		return nil, err
	}
	triggers, err := j.triggers(w, name)
	if err != nil {
		return nil, err
	}
	all, err := w.items.All(ctx, name, "")
	if err != nil {
		return nil, err
	}
	list := []api.Item{}
	for _, it := range all {
		list = append(list, itemShown(it, triggers, j.a.clock.Now()))
	}
	return list, nil
}

func (j jobs) triggers(w *work, name string) ([]component.Trigger, error) {
	if name == "" {
		return nil, nil
	}
	t, ok := w.triggers[name]
	if !ok {
		return nil, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no component %q that works on items", name), Hint: "those of tasks have their items among fencepost tasks"}
	}
	return t, nil
}

// Item implements admin.Autonomous.
func (j jobs) Item(ctx context.Context, name, id string) (api.Item, error) {
	w, err := j.now()
	if err != nil {
		return api.Item{}, err
	}
	triggers, err := j.triggers(w, name)
	if err != nil {
		return api.Item{}, err
	}
	it, err := w.items.Get(ctx, name, id)
	return itemShown(it, triggers, j.a.clock.Now()), err
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
	e := component.Event{Type: r.Type, Start: j.a.clock.Now().UTC(), Success: !r.Failed, Agent: j.asker(), Details: r.Details}
	if err := component.CheckEvent(e); err != nil {
		return api.Item{}, &api.Error{Code: api.CodeUsage, Message: err.Error()}
	}
	if err := w.items.Append(ctx, id, e); err != nil {
		return api.Item{}, err
	}
	return j.Item(ctx, "", id)
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

// Claims implements admin.Autonomous.
func (j jobs) Claims(ctx context.Context) ([]api.Claim, error) {
	people(j).fresh(ctx)
	list := []api.Claim{}
	for _, c := range j.a.group.Claims() {
		list = append(list, claimShown(c))
	}
	slices.SortFunc(list, func(a, b api.Claim) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Item, b.Item))
	})
	return list, nil
}

func claimShown(c gms.ClaimState) api.Claim {
	out := api.Claim{
		Component: c.Component, Item: c.Item, RoundTrip: int(c.RoundTrip), Token: c.Token, Node: c.Node, Run: c.Run, State: "held",
		Orphanings: int(c.Orphanings), HolderLives: !c.Orphan && !c.Quarantined,
	}
	switch {
	case c.Quarantined:
		out.State = "quarantined"
	case c.Orphan:
		out.State = "orphan"
	case c.Adopted:
		out.State = "adopted"
	}
	return out
}

// EndClaim implements admin.Autonomous. Only a claim of this node's run can be ended here: what others hold, they work on,
// and orphans are for recovery.
func (j jobs) EndClaim(ctx context.Context, r api.ClaimName, quarantine bool) (api.Claim, error) {
	all := j.a.group.Claims()
	i := slices.IndexFunc(all, func(c gms.ClaimState) bool {
		return c.Component == r.Component && c.Item == r.Item && c.Token == r.Token
	})
	if i < 0 {
		return api.Claim{}, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("nobody claims %s of %s with token %d", r.Item, r.Component, r.Token), Hint: "see fencepost claim ls: it may have moved"}
	}
	c := all[i]
	_, self := j.a.group.Self()
	switch {
	case c.Orphan || c.Adopted:
		return api.Claim{}, &api.Error{Code: api.CodeConflict, Message: "the claim is a dead run's: its recovery ends it", Hint: "see fencepost recoveries"}
	case c.Run != self && !c.Quarantined:
		return api.Claim{}, &api.Error{Code: api.CodeConflict, Message: "the claim is held by node " + c.Node, Hint: "ask that node, with its socket"}
	}
	how, shown := signals.Abandon, claimShown(c)
	shown.State = "free"
	if quarantine {
		how, shown.State = signals.Quarantine, "quarantined"
	}
	err := j.a.group.EndClaim(ctx, c.Claim, how)
	if errors.Is(err, gms.ErrNotFound) || errors.Is(err, gms.ErrNotHolder) {
		return api.Claim{}, &api.Error{Code: api.CodeConflict, Message: "the claim has moved meanwhile", Hint: "see fencepost claim ls"}
	}
	return shown, err
}
