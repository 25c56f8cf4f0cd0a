package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (f *fake) Components(context.Context) ([]api.Component, error) {
	return []api.Component{
		{Name: "backup", Claims: 1, Queried: 9, Claimed: 4, Done: 3, Failed: 1},
		{Name: "export", Paused: true, Claims: 2, Queried: 70, Claimed: 30, Done: 21, Failed: 5, Stale: 2, Lost: 1, NotStored: 1, NotStopped: 1},
		{Name: "restore", Fenced: true},
	}, nil
}

// fakeTicks are the ticks of the components: each is named after what it does.
func fakeTicks() map[string]api.Tick {
	ended := *before(0)
	tick := func(code int) api.Tick {
		return api.Tick{Started: *before(3 * time.Second), Ended: &ended, Code: code, PollHeldMS: 4, Outcome: "done", Failures: []api.Failure{}}
	}
	done, failed, cannot, busy, lost, stuck := tick(0), tick(1), tick(2), tick(3), tick(4), tick(5)
	done.Queried, done.Claimed, done.Done, done.Busy, done.Stale = 5, 2, 1, 1, 1
	failed.Queried, failed.Claimed, failed.Done, failed.Failed, failed.Outcome = 3, 3, 1, 2, "failed"
	failed.Failures = []api.Failure{{Item: "b7", Type: "worker", Text: "child process: exit code 3: disk full"}, {Type: "overflow", Text: "and 41 more failures"}}
	cannot.Problem = "query: ledger is not available now"
	busy.Problem = "component is paused"
	lost.Claimed, lost.Lost, lost.Problem = 1, 1, "claim was lost, the result is dropped: run is closed"
	stuck.Claimed, stuck.NotStopped, stuck.Problem = 2, 1, "work is not proven to have stopped: time limit reached"
	return map[string]api.Tick{"done": done, "failed": failed, "cannot": cannot, "busy": busy, "lost": lost, "stuck": stuck}
}

func (f *fake) RunComponent(_ context.Context, name string) (api.Tick, error) {
	if _, ok := fakeTicks()[name]; !ok {
		return api.Tick{}, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no component %q on this node", name), Hint: "fencepost component ls lists them"}
	}
	return api.Tick{ID: "17", Component: name, Started: *before(3 * time.Second), Failures: []api.Failure{}}, nil
}

func (f *fake) Tick(_ context.Context, name, id string) (api.Tick, error) {
	t := fakeTicks()[name]
	t.ID, t.Component = id, name
	return t, nil
}

func (f *fake) PauseComponent(_ context.Context, name string, on bool) (api.Component, error) {
	return api.Component{Name: name, Paused: on, Done: 21}, nil
}

func fakeItems() []api.Item {
	exported := api.Event{Type: "export", Start: *before(time.Hour), Success: true, Agent: "export@n2", Token: 81, Attempt: 1}
	failed := api.Event{Type: "export", Start: *before(2 * time.Minute), Agent: "export@n1", Details: "child process: exit code 3: disk full", Token: 90, Attempt: 5}
	made := api.Event{Type: "backup", Start: *before(2 * time.Hour), Success: true, Agent: "the operator of n1"}
	item := func(id string, events ...api.Event) api.Item {
		return api.Item{ID: id, Type: "backup", RoundTrip: 1, ChangedAt: *before(2 * time.Hour), Events: events, Why: []string{}, Data: json.RawMessage(`{"database":"shop"}`)}
	}
	list := []api.Item{item("b5", made), item("b6", made, exported), item("b7", made, failed)}
	list[2].Failures, list[2].Quarantined = 5, true
	return list
}

func (f *fake) Items(_ context.Context, q api.ItemQuery) ([]api.Item, error) {
	list := fakeItems()
	switch {
	case q.Own():
		list = slices.DeleteFunc(list, func(it api.Item) bool {
			return !slices.ContainsFunc(it.Events, func(e api.Event) bool { return slices.Contains(q.PastFailed, e.Type) && !e.Success })
		})
		for i := range list {
			list[i].Wanted = true
		}
	case q.Component != "":
		list[0].Wanted = true
		list[1].Why = []string{"there is already an event export (succeeded)"}
		list[2].Why = []string{"there is already an event export (failed)", "it is quarantined after 5 failures in a row"}
	}
	return list, nil
}

func (f *fake) Item(ctx context.Context, q api.ItemQuery, id string) (api.Item, error) {
	list, err := f.Items(ctx, api.ItemQuery{Component: q.Component})
	for _, it := range list {
		if it.ID == id {
			return it, err
		}
	}
	return api.Item{}, &api.Error{Code: api.CodeNotFound, Message: "read item " + id + ": not found"}
}

func (f *fake) PutItem(_ context.Context, r api.PutItem) (api.Item, error) {
	return api.Item{ID: r.ID, Type: r.Type, Data: r.Data, ChangedAt: now(), Events: []api.Event{}, Why: []string{}}, nil
}

func (f *fake) AppendEvent(_ context.Context, id string, r api.AppendEvent) (api.Item, error) {
	it := fakeItems()[0]
	it.ID = id
	it.Events = append(it.Events, api.Event{Type: r.Type, Success: !r.Failed, Details: r.Details, Start: now(), Agent: "the operator of n1"})
	return it, nil
}

func (f *fake) ForgetEvents(_ context.Context, _ string, r api.ForgetEvents) (api.Forgotten, error) {
	return api.Forgotten{Events: len(r.Type) / 6}, nil
}

func (f *fake) Claims(context.Context) ([]api.Claim, error) {
	return []api.Claim{
		{Component: "backup", Item: "t3", RoundTrip: 2, Token: 77, Node: "n1", Run: runA, State: "held", HolderLives: true},
		{Component: "export", Item: "b5", RoundTrip: 1, Token: 93, Node: "n3", Run: runC, State: "held", HolderLives: true},
		{Component: "export", Item: "b6", RoundTrip: 1, Token: 91, Node: "n2", Run: runB, State: "orphan", Orphanings: 1},
		{Component: "restore", Item: "t9", RoundTrip: 3, Token: 60, Node: "n2", Run: runB, State: "quarantined", Orphanings: 3},
	}, nil
}

func (f *fake) EndClaim(ctx context.Context, r api.ClaimName, quarantine bool) (api.Claim, error) {
	list, _ := f.Claims(ctx)
	i := slices.IndexFunc(list, func(c api.Claim) bool {
		return c.Component == r.Component && c.Item == r.Item && c.Token == r.Token
	})
	if i < 0 {
		return api.Claim{}, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("nobody claims %s of %s with token %d", r.Item, r.Component, r.Token), Hint: "see fencepost claim ls: it may have moved"}
	}
	c := list[i]
	switch {
	case c.State == "orphan":
		return api.Claim{}, &api.Error{Code: api.CodeNeedsOperator, Message: "the claim is that of a dead run of n2, whose recovery is parked",
			Hint: "fencepost recoveries retry export bbbbbbbb has it tried again, drop frees what the run had claimed"}
	case c.Component == "backup":
		return api.Claim{}, &api.Error{Code: api.CodeBusy, Message: "node n1 was asked to end its work on t3, and still holds the claim", Hint: "it gives the claim back when the work has ended"}
	}
	c.State, c.HolderLives = "free", false
	if quarantine {
		c.State = "quarantined"
	}
	return c, nil
}
