package cli

import (
	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (r *root) backupCommand() *cobra.Command {
	return group("backup", "Make backups and look at them", r.backupCreateCommand(), r.backupListCommand(), r.backupShowCommand())
}

func (r *root) backupCreateCommand() *cobra.Command {
	var want api.CreateBackup
	cmd := &cobra.Command{
		Use:   "create DATABASE",
		Short: "Plan a backup of a database",
		Long: "Plan a backup of a database and print its task. Any node of the group may carry it out, and another one takes\n" +
			"over when that one dies.",
		Args: arguments(1, 1),
	}
	cmd.Flags().StringSliceVar(&want.Storages, "storage", nil, "storage that shall get a copy; may be repeated (default all)")
	wait := waitFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		want.Database = args[0]
		c := r.client()
		defer c.Close()
		t, err := c.CreateBackup(cmd.Context(), want)
		if err != nil {
			return err
		}
		return r.finish(cmd.Context(), c, t, *wait, api.TaskError)
	}
	return cmd
}
