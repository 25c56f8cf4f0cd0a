package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// fenceOutput is what is there after a fence was raised or lowered.
type fenceOutput api.Fence

func (r *root) fenceCommand() *cobra.Command {
	return group("fence", "Raise and lower fences by hand", r.fenceRaiseCommand(), r.fenceLowerCommand())
}

func (r *root) fenceRaiseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "raise COMPONENT NODE",
		Short: "Keep new work of a component away from a living node",
		Long: "Keep new work of a component away from a living node, for maintenance. The fence belongs to the node that is asked:\n" +
			"it is lowered there, by its token, and ends when that node stops.",
		Args: arguments(2, 2),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		f, err := c.RaiseFence(cmd.Context(), api.FenceName{Component: args[0], Node: args[1]})
		if err != nil {
			return err
		}
		return r.print(fenceOutput(f))
	}
	return cmd
}

func (r *root) fenceLowerCommand() *cobra.Command {
	var want api.LowerFence
	cmd := &cobra.Command{
		Use:   "lower COMPONENT NODE --token TOKEN",
		Short: "Lower a maintenance fence, or take a recovery's fence from its holder",
		Long: "Lower a maintenance fence. The fence of a recovery is lowered by its holder alone: --force takes it from the holder,\n" +
			"whose effects are refused from then on, and the next candidate recovers under a larger token. The token says which\n" +
			"fence is meant; fencepost fences shows it.",
		Args: arguments(2, 2),
	}
	cmd.Flags().Uint64Var(&want.Token, "token", 0, "token of the fence (required)")
	cmd.Flags().BoolVar(&want.Force, "force", false, "take a recovery's fence from its holder")
	whyFlag(cmd, &want.Why)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if want.Token == 0 {
			return &api.Error{Code: api.CodeUsage, Message: "--token is missing: it says which fence is meant", Hint: "fencepost fences shows it"}
		}
		want.Component, want.Node = args[0], args[1]
		c := r.client()
		defer c.Close()
		f, err := c.LowerFence(cmd.Context(), want)
		if err != nil {
			return err
		}
		return r.print(fenceOutput(f))
	}
	return cmd
}

// whyFlag is the reason that an operator gives, for the log.
func whyFlag(cmd *cobra.Command, why *string) {
	cmd.Flags().StringVar(why, "why", "an operator's decision", "reason, for the log")
}

func (f fenceOutput) text(w io.Writer, _ time.Time) {
	switch f.State {
	case api.FenceMaintenance:
		fmt.Fprintf(w, "raised on %s of %s\n", printable(f.Component), printable(f.Node))
	case api.FenceLowered:
		fmt.Fprintf(w, "lowered on %s of %s\n", printable(f.Component), printable(f.Node))
	default:
		fmt.Fprintf(w, "taken from its holder: %s of %s is %s\n", printable(f.Component), printable(f.Node), printable(f.State))
	}
	var list facts
	list.add("token", number(f.Token))
	list.add("holder", f.Holder)
	list.add("waiting for", f.WaitingFor)
	list.write(w)
}
