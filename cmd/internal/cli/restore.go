package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (r *root) restoreCommand() *cobra.Command {
	var want api.RestoreBackup
	var sure bool
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Plan the restore of a backup into a database",
		Long: "Plan the restore of a backup and print its task. The backup is filled into a new database, checked, and swapped in\n" +
			"under the target's name in one transaction. An existing database of that name is replaced only with --replace,\n" +
			"and kept for a while under another name. With --in-place the backup goes into the database itself, in one\n" +
			"transaction: it replaces what has its names, all else stays, and there is no undo.",
		Args: arguments(1, 1),
	}
	cmd.Flags().StringVar(&want.Target, "as", "", "name of the database to make (default that of the one that was backed up)")
	cmd.Flags().BoolVar(&want.Replace, "replace", false, "an existing database may be replaced")
	cmd.Flags().StringVar(&want.Storage, "storage", "", "storage to read from (default any that has a copy)")
	cmd.Flags().BoolVar(&want.AcceptForeign, "accept-foreign", false, "also a backup that this group has not made, or whose manifest is not signed")
	cmd.Flags().BoolVar(&want.InPlace, "in-place", false, "restore into the database itself, all or nothing, without an undo")
	cmd.Flags().BoolVar(&want.Disconnect, "disconnect", false, "in place: disconnect the clients that it waits for")
	cmd.Flags().BoolVar(&want.NoOwner, "no-owner", false, "all belongs to the role that restores")
	cmd.Flags().BoolVar(&want.NoPrivileges, "no-privileges", false, "grant no rights")
	cmd.Flags().BoolVar(&want.NoSubscriptions, "no-subscriptions", false, "no subscriptions: replication does not go on from the copy")
	cmd.Flags().BoolVar(&want.NoEventTriggers, "no-event-triggers", false, "no event triggers")
	cmd.Flags().BoolVar(&want.SchemaOnly, "schema-only", false, "no rows and no large objects")
	cmd.Flags().StringArrayVar(&want.Schemas, "schema", nil, "only what is in this schema; may be repeated")
	cmd.Flags().StringArrayVar(&want.Tables, "table", nil, "only this table, without indexes and keys; may be repeated")
	cmd.Flags().IntVar(&want.Jobs, "jobs", 0, "sessions at the same time, also for indexes and keys (default as many as the backup has streams)")
	cmd.Flags().BoolVar(&sure, "yes", false, "do not ask before replacing")
	wait := waitFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		want.Backup = args[0]
		c := r.client()
		defer c.Close()
		if want.Replace && !sure {
			if err := r.confirm(cmd.Context(), c, want); err != nil {
				return err
			}
		}
		t, err := c.Restore(cmd.Context(), want)
		if err != nil {
			return err
		}
		return r.finish(cmd.Context(), c, t, *wait, api.TaskError)
	}
	return cmd
}

// confirm asks a person to type the name of what will be replaced.
func (r *root) confirm(ctx context.Context, c *api.Client, want api.RestoreBackup) error {
	if !r.Interactive {
		return &api.Error{Code: api.CodeUsage, Message: "--replace replaces a database, and nobody can be asked here", Hint: "add --yes"}
	}
	b, err := c.Backup(ctx, want.Backup)
	if err != nil {
		return err
	}
	name := want.Target
	if name == "" {
		name = b.Database
	}
	what := "This replaces database"
	if want.InPlace {
		what = "This replaces, without an undo, what is in database"
	}
	return r.typed(name, fmt.Sprintf("%s %s by backup %s of %s.", what, name, b.ID, b.Database))
}

// typed says what is about to be done, and goes on when a person types the name.
func (r *root) typed(name, what string) error {
	fmt.Fprintf(r.Stderr, "%s Type %s to go on: ", printable(what), printable(name))
	answer, err := bufio.NewReader(r.Stdin).ReadString('\n')
	if strings.TrimSpace(answer) == name {
		return nil
	}
	if err != nil {
		fmt.Fprintln(r.Stderr)
	}
	return &api.Error{Code: api.CodeFailed, Message: "not confirmed: nothing was done"}
}
