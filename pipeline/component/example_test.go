package component_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
)

// A host's own step: after each backup, export a table to CSV. Here the group and the ledger are those of one process.
func Example() {
	export := func(ctx context.Context, j component.Job) (component.Report, error) {
		out := csv.NewWriter(os.Stdout)
		for _, row := range [][]string{{"customer", "total"}, {"ann", "12"}, {"bob", "30"}} {
			if err := out.Write(append(row, j.Item.ID)); err != nil {
				return component.Report{}, err
			}
		}
		out.Flush()
		return component.Report{}, out.Error()
	}
	single := &single{item: component.Item{Type: "backup", ID: "shop-1", Events: []component.Event{
		{Type: "backup", Start: time.Date(2026, 5, 2, 2, 0, 0, 0, time.UTC), Success: true},
	}}}
	r, err := component.New(component.Config{
		Component: "export", Node: "n1", Worker: component.Func(export),
		Trigger: component.Trigger{Past: []string{"backup"}, Future: []string{"export"}},
		Locks:   single, Claims: single, Gate: single, Index: single, Store: single,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		tick := r.RunOnce(context.Background())
		fmt.Println("done:", tick.Done, "exit code:", int(tick.Code()))
	}
	_, why := component.Trigger{Future: []string{"export"}}.Match(single.item)
	fmt.Println(why[0])
	// Output:
	// customer,total,shop-1
	// ann,12,shop-1
	// bob,30,shop-1
	// done: 1 exit code: 0
	// done: 0 exit code: 0
	// there is already an event export (succeeded)
}

// single is a group of one process that calls one tick at a time, with one item: nobody else is there to be locked out.
type single struct {
	item  component.Item
	token uint64
}

func (s *single) LockPoll(context.Context, string) (component.Unlock, error) {
	return func(context.Context) error { return nil }, nil
}

func (s *single) LockRun(context.Context, string, int) (component.Unlock, error) {
	return func(context.Context) error { return nil }, nil
}

func (s *single) TryClaim(_ context.Context, name, item string, roundTrip int) (component.Claim, error) {
	s.token++
	return component.Claim{Component: name, Item: item, RoundTrip: roundTrip, Token: s.token}, nil
}

func (s *single) EndClaim(context.Context, component.Claim, bool) error { return nil }

func (s *single) Standing(ctx context.Context) (context.Context, error) { return ctx, nil }
func (s *single) AwaitHeld(ctx context.Context) error                   { return ctx.Err() }
func (s *single) AwaitUnfenced(ctx context.Context, _ string) error     { return ctx.Err() }

func (s *single) Query(_ context.Context, q component.Query) ([]component.Item, error) {
	if ok, _ := component.MatchAny(q.Triggers, s.item); !ok {
		return nil, nil
	}
	return []component.Item{s.item}, nil
}

func (s *single) Begin(_ context.Context, _ component.Claim, at time.Time) (component.Item, error) {
	s.item.Record.Attempts++
	s.item.Record.LastAttempt = at
	return s.item, nil
}

func (s *single) Finish(_ context.Context, _ component.Claim, r component.Result) error {
	s.item.Events = append(s.item.Events, r.Event)
	s.item.Record = r.Record
	return nil
}
