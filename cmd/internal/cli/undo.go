package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (r *root) undoCommand() *cobra.Command {
	var sure bool
	cmd := &cobra.Command{
		Use:   "undo TASK",
		Short: "Give a database that a restore replaced its name back",
		Long: "Undo a restore, at once: the database that it replaced gets its name back, and what the restore made is kept for as\n" +
			"long (restore.keep_old) under the other name. Clients of both are disconnected. A second undo takes the first one back.",
		Args: arguments(1, 1),
	}
	cmd.Flags().BoolVar(&sure, "yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		if !sure {
			t, err := c.Task(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := r.confirmUndo(t); err != nil {
				return err
			}
		}
		t, err := c.Undo(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return r.print(taskOutput(t))
	}
	return cmd
}

func (r *root) confirmUndo(t api.Task) error {
	if !r.Interactive {
		return &api.Error{Code: api.CodeUsage, Message: "undo replaces a database, and nobody can be asked here", Hint: "add --yes"}
	}
	return r.typed(t.Target, fmt.Sprintf("This gives the name of database %s back to the one that restore %s replaced.", t.Target, t.ID))
}
