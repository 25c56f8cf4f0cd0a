package cli

import (
	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (r *root) backupCommand() *cobra.Command {
	below := []*cobra.Command{
		r.backupCreateCommand(), r.backupListCommand(), r.backupShowCommand(), r.backupManifestCommand(), r.backupDeleteCommand(), r.backupUndeleteCommand(),
		r.backupReplicateCommand(),
	}
	return group("backup", "Make backups, look at them and after them", append(below, r.backupMarkCommands()...)...)
}

func (r *root) backupCreateCommand() *cobra.Command {
	var want api.CreateBackup
	cmd := &cobra.Command{
		Use:   "create DATABASE",
		Short: "Plan a backup of a database",
		Long: "Plan a backup of a database and print its task. Any node of the group may carry it out, and another one takes\n" +
			"over when that one dies. A filter that matches nothing is an error; put names with dots or quotes in double quotes.",
		Args: arguments(1, 1),
	}
	cmd.Flags().StringSliceVar(&want.Storages, "storage", nil, "storage that shall get a copy; may be repeated (default all)")
	cmd.Flags().StringVar(&want.Format, "format", "", "custom or plain (SQL for psql; not with large objects)")
	cmd.Flags().StringArrayVar(&want.Needs, "needs", nil, "label that the node must carry that makes it; may be repeated")
	cmd.Flags().StringArrayVar(&want.Schemas, "schema", nil, "only this schema; may be repeated, and hold * and ?")
	cmd.Flags().StringArrayVar(&want.Tables, "table", nil, "only this table, or schema.table; may be repeated, and hold * and ?")
	cmd.Flags().StringArrayVar(&want.ExcludeSchemas, "exclude-schema", nil, "not this schema; may be repeated")
	cmd.Flags().StringArrayVar(&want.ExcludeTables, "exclude", nil, "not this table, or schema.table; may be repeated")
	cmd.Flags().BoolVar(&want.SchemaOnly, "schema-only", false, "no rows and no large objects")
	cmd.Flags().BoolVar(&want.NoLargeObjects, "no-large-objects", false, "no large objects, which no other filter leaves out")
	cmd.Flags().BoolVar(&want.NoGlobals, "no-globals", false, "without the roles and tablespaces of the server")
	cmd.Flags().BoolVar(&want.RolePasswords, "role-passwords", false, "with the hashes of the roles' passwords: takes a superuser, and is a secret")
	cmd.Flags().IntVar(&want.Jobs, "jobs", 0, "streams that the rows are divided among, at most 32 (default as configured)")
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
