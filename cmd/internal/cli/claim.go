package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

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
	return group("claim", "Look at claims, and have them end", ls, show,
		r.endClaimCommand(false, "free COMPONENT ITEM", "Have a claim end, and its item be for whoever comes next",
			"Have a claim end, and its item be for whoever comes next. Its holder, on whichever node, is asked to end the work, and\n"+
				"gives the claim back when the work is proven to have ended: the item never has two workers. What a dead run claimed\n"+
				"is settled by its recovery first. A quarantined item may be claimed again."),
		r.endClaimCommand(true, "quarantine COMPONENT ITEM", "Have a claim end, and nobody claim its item any more",
			"Have a claim end, as claim free does, and nobody claim its item any more until claim free."))
}

func (r *root) endClaimCommand(quarantine bool, use, short, long string) *cobra.Command {
	var want api.ClaimName
	var within time.Duration
	cmd := &cobra.Command{
		Use: use, Short: short, Args: arguments(2, 2),
		Long: long + "\n\nExit code 5: the work is not proven to have stopped within --within, and the claim is still held.",
	}
	cmd.Flags().Uint64Var(&want.Token, "token", 0, "of the claim that is meant (required)")
	cmd.Flags().DurationVar(&within, "within", 2*time.Minute, "how long to wait for the end of the work")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		want.Component, want.Item = args[0], args[1]
		if want.WithinMS = within.Milliseconds(); want.WithinMS < 1 {
			return &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("--within is %s: want 1ms or more", within)}
		}
		c := r.client()
		defer c.Close()
		end := c.FreeClaim
		if quarantine {
			end = c.QuarantineClaim
		}
		got, err := end(cmd.Context(), want)
		if e := new(api.Error); errors.As(err, &e) && e.Code == api.CodeBusy {
			return &api.Error{Code: api.CodeNotStopped, Message: e.Message, Hint: e.Hint}
		}
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
