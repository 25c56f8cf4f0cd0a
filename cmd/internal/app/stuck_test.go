package app

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/component"
)

// addRunner gives a node that works already a runner more.
func addRunner(a *App, name string, r *component.Runner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := *a.work
	w.runners = maps.Clone(w.runners)
	w.runners[name] = r
	a.work = &w
}

// Work that goes on past its time limit, past the end of its context and past its killing keeps its claim at a daemon, and is
// an alarm there; no operator's command takes the claim away; and when it has ended at last it has failed, whatever it says,
// the claim is given back, and the alarm is over.
func TestWorkThatDoesNotEnd(t *testing.T) {
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	released := make(chan struct{})
	r, err := component.New(component.Config{
		Component: "hand", Node: c.Node, Trigger: component.Trigger{Types: []string{"thing"}, Future: []string{"hand"}},
		Worker: component.Func(func(context.Context, component.Job) (component.Report, error) {
			<-released // deaf to its context
			return component.Report{}, nil
		}),
		Limit: 50 * time.Millisecond, Grace: 50 * time.Millisecond, Proof: 50 * time.Millisecond, Fairness: component.Fairness{BackOff: time.Hour},
		Locks: a.work.bridge, Claims: a.work.bridge, Gate: a.work.bridge, Index: a.work.items, Store: a.work.items, Now: a.clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	addRunner(a, "hand", r)
	ctx, client := t.Context(), api.NewClient(c.Admin.Socket)
	defer client.Close()
	if _, err := client.PutItem(ctx, api.PutItem{Type: "thing", ID: "x"}); err != nil {
		t.Fatal(err)
	}
	tick, err := client.RunComponent(ctx, "hand")
	if err == nil {
		tick, err = client.AwaitTick(ctx, tick)
	}
	if err != nil || tick.Code != int(component.ExitNotStopped) || tick.NotStopped != 1 || tick.Outcome != "failed" {
		t.Errorf("the tick: %+v, %v", tick, err)
	}
	stuck := func(o api.Overview) bool { return alarmed(o, "stuck", "hand x") }
	awaitOverview(t, c, func(o api.Overview) string {
		if !stuck(o) {
			return "alarm about work that does not end"
		}
		return ""
	})
	held, ok := a.group.ClaimOn("hand", "x")
	if !ok {
		t.Fatal("the claim was given back while the work goes on")
	}
	if _, err := a.group.Claim(ctx, "hand", "x", 1); !errors.Is(err, gms.ErrBusy) {
		t.Errorf("claimed by another: %v", err)
	}
	for name, end := range map[string]func(context.Context, api.ClaimName) (api.Claim, error){"free": client.FreeClaim, "quarantine": client.QuarantineClaim} {
		_, err := end(ctx, api.ClaimName{Component: "hand", Item: "x", Token: held.Token, WithinMS: 100})
		if api.ExitCode(err) != api.ExitNotStopped {
			t.Errorf("%s of a claim whose work goes on: %v", name, err)
		}
	}
	if it, err := a.work.items.Get(ctx, "hand", "x"); err != nil || len(it.Events) != 0 {
		t.Errorf("told before it has ended: %+v, %v", it.Events, err)
	}
	close(released)
	until(t, a, "the item is set aside, as was asked", func() bool {
		now, held := a.group.ClaimOn("hand", "x")
		return held && now.Quarantined && len(r.Stuck()) == 0
	})
	it, err := a.work.items.Get(ctx, "hand", "x")
	if err != nil || len(it.Events) != 1 || it.Events[0].Success || it.Events[0].Token != held.Token {
		t.Errorf("events at the end: %+v, %v", it.Events, err)
	}
	awaitOverview(t, c, func(o api.Overview) string {
		if stuck(o) {
			return "end of the alarm"
		}
		return ""
	})
	if err := r.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// A program of a component's that is deaf is ended by force at its time limit, with all that it has started; that is a failed
// event, and its claim is given back.
func TestProgramPastItsTimeLimit(t *testing.T) {
	c := config(t)
	program := filepath.Join(t.TempDir(), "deaf")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ntrap '' TERM\n(trap '' TERM; while :; do sleep 60; done) &\nwhile :; do sleep 60; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.Components = []configs.Component{{
		Name: "deaf", Exec: program, Types: []string{"thing"}, Future: []string{"deaf"}, Procedure: 1, Simultaneous: 1,
		Every: time.Minute, Limit: 200 * time.Millisecond, Grace: 100 * time.Millisecond, BackOff: time.Hour, QuarantineAfter: 5,
	}}
	a, _ := start(t, c)
	ready(t, a)
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	if _, err := client.PutItem(t.Context(), api.PutItem{Type: "thing", ID: "x"}); err != nil {
		t.Fatal(err)
	}
	until(t, a, "it has failed, and its claim is given back", func() bool {
		it, err := a.work.items.Get(t.Context(), "deaf", "x")
		e, ok := it.Newest("deaf")
		_, held := a.group.ClaimOn("deaf", "x")
		return err == nil && ok && !e.Success && strings.Contains(e.Details, "time limit") && !held
	})
	if n := len(a.runnerOf("deaf").Stuck()); n != 0 {
		t.Errorf("%d are not proven to have stopped", n)
	}
}
