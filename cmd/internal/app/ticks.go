package app

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/component"
)

// ticks are those that somebody has asked for. The last ones can be asked about when they have ended.
type ticks struct {
	mu   sync.Mutex
	last int
	list []*api.Tick // oldest first
}

// keptTicks bounds them; of those that go on there is one for each place of a component.
const keptTicks = 1000

func (t *ticks) begin(component string, at time.Time) *api.Tick {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	tick := &api.Tick{ID: strconv.Itoa(t.last), Component: component, Started: at.UTC(), Failures: []api.Failure{}}
	if t.list = append(t.list, tick); len(t.list) > keptTicks {
		t.list = t.list[1:]
	}
	return tick
}

// end notes what a tick has done.
func (t *ticks) end(tick *api.Tick, did component.Tick, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at = at.UTC()
	tick.Ended, tick.Code, tick.PollHeldMS, tick.Outcome = &at, int(did.Code()), did.PollHeld.Milliseconds(), string(did.Report.Outcome)
	tick.Queried, tick.Claimed, tick.Busy = did.Queried, did.Claimed, did.Busy
	tick.Done, tick.Failed, tick.Stale, tick.Unpreserved = did.Done, did.Failed, did.Stale, did.Unpreserved
	tick.Lost, tick.NotStored, tick.NotStopped, tick.Kept = did.Lost, did.NotStored, did.NotStopped, did.Kept
	if did.Err != nil {
		tick.Problem = did.Err.Error()
	}
	for _, f := range did.Report.List() {
		tick.Failures = append(tick.Failures, api.Failure(f))
	}
}

// get is a tick as it is now.
func (t *ticks) get(component, id string) (api.Tick, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tick := range t.list {
		if tick.Component == component && tick.ID == id {
			return *tick, true
		}
	}
	return api.Tick{}, false
}

// tickSoon is how long the answer to whoever begins a tick waits for its end: most have nothing to do.
const tickSoon = time.Second

// RunComponent implements admin.Autonomous. The tick goes on when the caller does not wait for it.
func (j jobs) RunComponent(ctx context.Context, name string) (api.Tick, error) {
	_, r, err := j.runner(name)
	if err != nil {
		return api.Tick{}, err
	}
	tick, ended := j.a.ticks.begin(name, j.a.clock.Now()), make(chan struct{})
	go func() { // Stop of the runner waits for it
		defer close(ended)
		did := r.RunOnce(context.WithoutCancel(ctx))
		if did.Err == nil && ofTasks(name) && j.a.paused(name) {
			did.Err = component.ErrPaused // it has looked for what was cancelled, and at nothing else
		}
		j.a.ticks.end(tick, did, j.a.clock.Now())
	}()
	soon := time.NewTimer(tickSoon)
	defer soon.Stop()
	select {
	case <-ended:
	case <-soon.C:
	case <-ctx.Done():
	}
	return j.Tick(ctx, name, tick.ID)
}

// Tick implements admin.Autonomous.
func (j jobs) Tick(_ context.Context, name, id string) (api.Tick, error) {
	t, ok := j.a.ticks.get(name, id)
	if !ok {
		return api.Tick{}, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("this node knows of no tick %s of component %s", id, name), Hint: "it forgets its ticks when it stops; what they did is in the events: fencepost event ls ITEM"}
	}
	return t, nil
}
