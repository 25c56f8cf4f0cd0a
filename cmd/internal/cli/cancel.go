package cli

import (
	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (r *root) cancelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel TASK",
		Short: "Ask for the end of a task",
		Long: "Ask for the end of a task, from any node. Whoever carries it out stops and takes away what was half done. With\n" +
			"--wait the command succeeds when the task was cancelled.",
		Args: arguments(1, 1),
	}
	wait := waitFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		t, err := c.Cancel(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return r.finish(cmd.Context(), c, t, *wait, cancelled)
	}
	return cmd
}

// cancelled is what the end of a task means to the one who wanted it cancelled.
func cancelled(t api.Task) error {
	switch t.State {
	case "cancelled":
		return nil
	case api.Completed:
		return &api.Error{Code: api.CodeConflict, Message: "task " + t.ID + " completed before it could be cancelled"}
	default:
		return api.TaskError(t)
	}
}
