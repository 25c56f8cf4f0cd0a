package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (r *root) backupDeleteCommand() *cobra.Command {
	var want api.DeleteBackup
	cmd := &cobra.Command{
		Use:   "delete BACKUP",
		Short: "Plan the deletion of a backup from all storages",
		Long: "Plan the deletion of a backup from all storages and print its task. It waits for backup.delete_delay, in which\n" +
			"fencepost backup undelete takes it back. Refused for a pinned backup, one that is read, and the last good one of\n" +
			"its database; whether it may go is looked at again when it goes.",
		Args: arguments(1, 1),
	}
	cmd.Flags().BoolVar(&want.Now, "now", false, "without the delay: it cannot be taken back")
	wait := waitFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.taskOf(cmd.Context(), *wait, func(ctx context.Context, c *api.Client) (api.Task, error) {
			return c.DeleteBackup(ctx, args[0], want)
		})
	}
	return cmd
}

func (r *root) backupUndeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undelete BACKUP",
		Short: "Take the deletion of a backup back, as long as it waits",
		Args:  arguments(1, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.backupOf(cmd.Context(), func(ctx context.Context, c *api.Client) (api.Backup, error) {
			return c.UndeleteBackup(ctx, args[0])
		})
	}
	return cmd
}

// markCommand is a command that changes what people say of a backup.
func (r *root) markCommand(use, short string, most int, mark func(args []string) api.MarkBackup) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: arguments(most, most)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.backupOf(cmd.Context(), func(ctx context.Context, c *api.Client) (api.Backup, error) {
			return c.MarkBackup(ctx, args[0], mark(args))
		})
	}
	return cmd
}

func (r *root) backupMarkCommands() []*cobra.Command {
	pin := func(on bool) func([]string) api.MarkBackup {
		return func([]string) api.MarkBackup { return api.MarkBackup{Pinned: &on} }
	}
	yes := true
	return []*cobra.Command{
		r.markCommand("pin BACKUP", "Keep a backup whatever retention says", 1, pin(true)),
		r.markCommand("unpin BACKUP", "Leave a pinned backup to retention again", 1, pin(false)),
		r.markCommand("accept BACKUP", "Say that a suspect backup is wanted as it is, so that retention goes on", 1,
			func([]string) api.MarkBackup { return api.MarkBackup{Accepted: &yes} }),
		r.markCommand("note BACKUP TEXT", "Write a note to a backup; an empty text takes it away", 2,
			func(args []string) api.MarkBackup { return api.MarkBackup{Note: &args[1]} }),
	}
}

func (r *root) backupReplicateCommand() *cobra.Command {
	var want api.ReplicateBackup
	cmd := &cobra.Command{
		Use:   "replicate BACKUP",
		Short: "Plan the making or mending of copies of a backup",
		Long: "Plan the making or mending of copies of a backup from one that is whole, byte by byte, and print its task. Missing\n" +
			"and corrupt copies are also mended without being asked.",
		Args: arguments(1, 1),
	}
	cmd.Flags().StringSliceVar(&want.Storages, "storage", nil, "storage that shall have a whole copy; may be repeated (default those whose copy is missing or corrupt)")
	wait := waitFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.taskOf(cmd.Context(), *wait, func(ctx context.Context, c *api.Client) (api.Task, error) {
			return c.ReplicateBackup(ctx, args[0], want)
		})
	}
	return cmd
}

// taskOf asks for a task and shows it, or waits for its end.
func (r *root) taskOf(ctx context.Context, wait bool, ask func(context.Context, *api.Client) (api.Task, error)) error {
	c := r.client()
	defer c.Close()
	t, err := ask(ctx, c)
	if err != nil {
		return err
	}
	return r.finish(ctx, c, t, wait, api.TaskError)
}

// backupOf asks for something that answers with a backup, and shows it.
func (r *root) backupOf(ctx context.Context, ask func(context.Context, *api.Client) (api.Backup, error)) error {
	c := r.client()
	defer c.Close()
	b, err := ask(ctx, c)
	if err != nil {
		return err
	}
	return r.print(backupOutput(b))
}
