package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

type (
	componentsOutput []api.Component
	tickOutput       api.Tick
)

func (r *root) componentCommand() *cobra.Command {
	ls := live(r, &cobra.Command{Use: "ls", Short: "List the components of this node", Args: arguments(0, 0)},
		func([]string) string { return api.PathComponents }, func(c []api.Component) output { return componentsOutput(c) })
	run := &cobra.Command{
		Use:   "run COMPONENT",
		Short: "Make one tick of a component on this node now",
		Long: "Make one tick of a component on this node now: look for items, claim, work, and wait for the end of it. The exit code\n" +
			"is the tick's: 0 done or nothing to do, 1 some item failed or it could not run, 3 busy or paused, 4 lease lost, 5\n" +
			"not proven stopped.",
		Args: arguments(1, 1),
	}
	run.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		t, err := c.RunComponent(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := r.print(tickOutput(t)); err != nil {
			return err
		}
		return tickError(t)
	}
	return group("component", "Look at the autonomous components, run and pause them", ls, run,
		r.pauseCommand("pause COMPONENT", "Have no node claim anything new for a component", true),
		r.pauseCommand("resume COMPONENT", "Let all nodes claim for a component again", false))
}

// tickError is what a tick's code means to whoever asked for it.
func tickError(t api.Tick) error {
	codes := map[int]api.Code{1: api.CodeFailed, 2: api.CodeUnavailable, 3: api.CodeBusy, 4: api.CodeLeaseLost, 5: api.CodeNotStopped}
	if t.Code == 0 {
		return nil
	}
	text := t.Problem
	if text == "" {
		text = fmt.Sprintf("%d of %d items failed", t.Failed, t.Claimed)
	}
	return &api.Error{Code: codes[t.Code], Message: "component " + t.Component + ": " + text}
}

func (r *root) pauseCommand(use, short string, on bool) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: arguments(1, 1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		got, err := c.PauseComponent(cmd.Context(), args[0], on)
		if err != nil {
			return err
		}
		return r.print(componentsOutput{got})
	}
	return cmd
}

func (c componentsOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"COMPONENT", "STATE", "CLAIMS", "DONE", "FAILED", "STALE", "LOST", "NOT STOPPED"}, none: "no components"}
	for _, x := range c {
		state := "runs"
		switch {
		case x.Paused:
			state = "paused"
		case x.Fenced:
			state = "fenced"
		}
		t.rows = append(t.rows, []string{x.Name, state, number(x.Claims), number(x.Done), number(x.Failed), number(x.Stale), number(x.Lost), number(x.NotStopped)})
	}
	t.write(w)
}

func (t tickOutput) text(w io.Writer, _ time.Time) {
	var f facts
	f.add("component", t.Component)
	f.add("found", number(t.Queried))
	f.add("claimed", number(t.Claimed))
	f.add("held by others", number(t.Busy))
	f.add("done", number(t.Done))
	f.add("failed", number(t.Failed))
	f.add("problem", t.Problem)
	f.write(w)
}

type claimsOutput []api.Claim

func (r *root) claimCommand() *cobra.Command {
	ls := live(r, &cobra.Command{Use: "ls", Short: "List the claims of the group", Args: arguments(0, 0)},
		func([]string) string { return api.PathClaims }, func(c []api.Claim) output { return claimsOutput(c) })
	show := &cobra.Command{Use: "show COMPONENT ITEM", Short: "Show the claim on an item", Args: arguments(2, 2)}
	show.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		all, err := api.Get[[]api.Claim](cmd.Context(), c, api.PathClaims)
		if err != nil {
			return err
		}
		for _, x := range all {
			if x.Component == args[0] && x.Item == args[1] {
				return r.print(claimsOutput{x})
			}
		}
		return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("nobody claims %s of %s", args[1], args[0])}
	}
	return group("claim", "Look at claims, and end those that this node holds for nothing", ls, show,
		r.endClaimCommand("free COMPONENT ITEM", "Give a claim of this node back; whoever works under it is fenced", (*api.Client).FreeClaim),
		r.endClaimCommand("quarantine COMPONENT ITEM", "Set the item of a claim of this node aside: nobody claims it any more", (*api.Client).QuarantineClaim))
}

func (r *root) endClaimCommand(use, short string, end func(*api.Client, context.Context, api.ClaimName) (api.Claim, error)) *cobra.Command {
	var want api.ClaimName
	cmd := &cobra.Command{Use: use, Short: short, Args: arguments(2, 2)}
	cmd.Flags().Uint64Var(&want.Token, "token", 0, "of the claim that is meant (required)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		want.Component, want.Item = args[0], args[1]
		c := r.client()
		defer c.Close()
		got, err := end(c, cmd.Context(), want)
		if err != nil {
			return err
		}
		return r.print(claimsOutput{got})
	}
	return cmd
}

func (c claimsOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"COMPONENT", "ITEM", "TRIP", "TOKEN", "NODE", "RUN", "STATE", "DEATHS"}, none: "no claims"}
	for _, x := range c {
		t.rows = append(t.rows, []string{x.Component, x.Item, fmt.Sprint(x.RoundTrip), number(x.Token), x.Node, short(x.Run), x.State, number(x.Orphanings)})
	}
	t.write(w)
}
