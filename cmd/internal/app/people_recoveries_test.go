package app

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// fence waits until the component has a fence in that state.
func (p people) await(t *testing.T, component, state string) api.Fence {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, changed := p.a.group.Recoveries()
		list, err := p.Fences(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(list, func(f api.Fence) bool { return f.Component == component && f.State == state }); i >= 0 {
			return list[i]
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("no fence on %s is %s: %+v", component, state, list)
		}
	}
}

func wantCode(t *testing.T, what string, err error, code api.Code) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) {
		e = translate(err)
	}
	if e == nil || e.Code != code || code != api.CodeUsage && e.Hint == "" && code != api.CodeNotFound {
		t.Errorf("%s: %v, want %s with a hint", what, err, code)
	}
}

// TestAnOperatorDecides: a recovery that its holder does not finish is taken from it, parks, is retried, and another that
// nobody can do is dropped; each step is in the time line.
func TestAnOperatorDecides(t *testing.T) {
	cfg := config(t)
	first, stop := start(t, cfg)
	ready(t, first)
	for _, component := range []string{"slow", "odd"} {
		if _, err := first.group.Claim(t.Context(), component, "item", 1); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	a, _ := start(t, cfg)
	ready(t, a)
	for _, name := range a.components() { // whoever hangs does not keep what it holds
		if c, ok := a.router.Component(name); !ok || c.Progress != components.RecoveryStep {
			t.Errorf("recoveries of %s promise progress each %v, want %v", name, c.Progress, components.RecoveryStep)
		}
	}
	p, ctx := people{a}, t.Context()
	finish := make(chan struct{})
	err := a.router.AddRecoveryFactory("slow", signals.HandleRecovery(func(ctx context.Context, s signals.FailureRecoverySignal) error {
		fence, err := s.Acquire(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-finish:
		}
		orphans, err := fence.Orphans(ctx)
		for _, o := range orphans {
			err = errors.Join(err, fence.Free(ctx, o))
		}
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	f := p.await(t, "slow", api.FenceRaised)
	if f.Holder != "n1" || f.WaitingFor != "n1 to finish" || f.Token == 0 || f.Since == nil {
		t.Errorf("fence %+v", f)
	}
	name := api.RecoveryName{Component: "slow", Run: f.Run[:6]}
	_, err = p.RetryRecovery(ctx, name)
	wantCode(t, "retry while somebody is at it", err, api.CodeBusy)
	_, err = p.RetryRecovery(ctx, api.RecoveryName{Component: "slow", Run: "ffff"})
	wantCode(t, "retry of nothing", err, api.CodeNotFound)
	lower := api.LowerFence{FenceName: api.FenceName{Component: "slow", Node: "n1"}, Token: f.Token, Why: "test"}
	_, err = p.LowerFence(ctx, lower)
	wantCode(t, "lower what somebody holds", err, api.CodeConflict)
	lower.Force = true
	other := lower
	other.Token++
	_, err = p.LowerFence(ctx, other)
	wantCode(t, "force under another token", err, api.CodeConflict)
	other.Component = "backup"
	_, err = p.LowerFence(ctx, other)
	wantCode(t, "force of nothing", err, api.CodeNotFound)
	if now, err := p.LowerFence(ctx, lower); err != nil || now.State != api.FenceParked || now.WaitingFor == "" {
		t.Errorf("taken by force: %+v, %v", now, err)
	}
	close(finish)
	if r, err := p.RetryRecovery(ctx, name); err != nil || r.State == api.FenceParked {
		t.Errorf("retried: %+v, %v", r, err)
	}
	ended := awaitEnded(t, p, "slow")
	var what []string
	for _, s := range ended.Steps {
		what = append(what, s.What)
	}
	want := []string{"closed", "waiting", "appointed", "raised", "handed over", "parked", "retried", "appointed", "raised", "released"}
	if !slices.Equal(what, want) || ended.State != "released" || ended.EndedAt == nil || ended.Token <= f.Token || ended.Opened == 0 {
		t.Errorf("time line %q of %+v, want %q", what, ended, want)
	}

	odd := p.await(t, "odd", api.FenceWaiting)
	if odd.WaitingFor != "a core member that recovers odd" {
		t.Errorf("waiting for %q", odd.WaitingFor)
	}
	r, err := p.DropRecovery(ctx, api.DropRecovery{RecoveryName: api.RecoveryName{Component: "odd", Run: odd.Run}, Why: "nobody needs it"})
	if err != nil || r.State != "dropped" || r.Steps[len(r.Steps)-1].Why != "nobody needs it" {
		t.Errorf("dropped: %+v, %v", r, err)
	}
	if _, err := a.group.Claim(ctx, "odd", "item", 2); err != nil {
		t.Errorf("what was dropped is not free: %v", err)
	}
}

func awaitEnded(t *testing.T, p people, component string) api.Recovery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, changed := p.a.group.Recoveries()
		list, err := p.Recoveries(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(list, func(r api.Recovery) bool { return r.Component == component && r.Ended > 0 }); i >= 0 {
			return list[i]
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("the recovery of %s has not ended: %+v", component, list)
		}
	}
}

// TestAnOperatorMaintains: a maintenance fence keeps the component's new work away until it is lowered, by its token.
func TestAnOperatorMaintains(t *testing.T) {
	a, _ := start(t, config(t))
	ready(t, a)
	p, ctx := people{a}, t.Context()
	name := api.FenceName{Component: "backup", Node: "n1"}
	_, err := p.RaiseFence(ctx, api.FenceName{Component: "backup", Node: "n9"})
	wantCode(t, "raise on a node that is not there", err, api.CodeNotFound)
	f, err := p.RaiseFence(ctx, name)
	if err != nil || f.Token == 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	_, err = p.RaiseFence(ctx, name)
	wantCode(t, "raise twice", err, api.CodeBusy)
	if fenced, err := a.manager.IsFenced(ctx, "backup", "n1"); err != nil || !fenced {
		t.Errorf("fenced: %t, %v", fenced, err)
	}
	_, err = p.LowerFence(ctx, api.LowerFence{FenceName: name, Token: f.Token + 1})
	wantCode(t, "lower under another token", err, api.CodeConflict)
	if got, err := p.LowerFence(ctx, api.LowerFence{FenceName: name, Token: f.Token}); err != nil || got.State != api.FenceLowered {
		t.Errorf("%+v, %v", got, err)
	}
	if fenced, err := a.manager.IsFenced(ctx, "backup", "n1"); err != nil || fenced {
		t.Errorf("fenced after it was lowered: %t, %v", fenced, err)
	}
}

// TestWaitingFor says for each state what has to happen next.
func TestWaitingFor(t *testing.T) {
	for state, want := range map[string]string{
		api.FenceQueued: "the recovery of an older run of n2", api.FenceWaiting: "a core member that recovers backup",
		api.FenceAppointed: "n1 to raise it", api.FenceRaised: "n1 to finish", api.FenceParked: "an operator: fencepost recoveries retry, or drop",
	} {
		r := gms.Recovery{Appointment: gms.Appointment{Component: "backup", Node: "n2"}, State: state, AppointeeNode: "n1"}
		if got := waitingFor(r, 0); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
		if state != api.FenceRaised {
			continue
		}
		if got := waitingFor(r, 2600*time.Millisecond); got != "the lease of n2 to run out, 3s" {
			t.Errorf("%s: %q", state, got)
		}
	}
}
