package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (r *root) recoveriesRetryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry COMPONENT RUN",
		Short: "Let every member try a parked recovery again; RUN is the closed run, or its first digits",
		Args:  arguments(2, 2),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		y, err := c.RetryRecovery(cmd.Context(), api.RecoveryName{Component: args[0], Run: args[1]})
		if err != nil {
			return err
		}
		return r.print(recoveryOutput(y))
	}
	return cmd
}

func (r *root) recoveriesDropCommand() *cobra.Command {
	var want api.DropRecovery
	var sure bool
	cmd := &cobra.Command{
		Use:   "drop COMPONENT RUN",
		Short: "End a recovery for good, without recovering anything; RUN is the closed run, or its first digits",
		Long: "End a recovery for good: nothing is recovered, and what the closed run had claimed is free for everybody, but for what\n" +
			"was orphaned too often, which is quarantined. It cannot be taken back.",
		Args: arguments(2, 2),
	}
	cmd.Flags().BoolVar(&sure, "yes", false, "do not ask")
	whyFlag(cmd, &want.Why)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		want.RecoveryName = api.RecoveryName{Component: args[0], Run: args[1]}
		c := r.client()
		defer c.Close()
		if !sure {
			if !r.Interactive {
				return &api.Error{Code: api.CodeUsage, Message: "drop gives up what the run had begun, and nobody can be asked here", Hint: "add --yes"}
			}
			y, err := recoveryNamed(cmd.Context(), c, args[0], args[1])
			if err != nil {
				return err
			}
			want.Run = y.Run // what is confirmed is what is dropped
			if err := r.typed(y.Node, fmt.Sprintf("This gives up, for good, the recovery of %s of run %s of %s.", y.Component, short(y.Run), y.Node)); err != nil {
				return err
			}
		}
		y, err := c.DropRecovery(cmd.Context(), want)
		if err != nil {
			return err
		}
		return r.print(recoveryOutput(y))
	}
	return cmd
}
