package postgres

import "github.com/fencepost/fencepost/pipeline/source"

// restoreArgs are the arguments of pg_restore that say what of an archive is wanted.
func restoreArgs(o source.RestoreOptions) []string {
	var args []string
	for _, option := range []struct {
		on  bool
		arg string
	}{
		{o.NoOwner, "--no-owner"}, {o.NoPrivileges, "--no-privileges"}, {o.NoSubscriptions, "--no-subscriptions"}, {o.SchemaOnly, "--schema-only"},
	} {
		if option.on {
			args = append(args, option.arg)
		}
	}
	if len(o.Schemas)+len(o.Tables) > 0 {
		args = append(args, "--strict-names") // a name that the backup does not hold is an error
	}
	for _, name := range o.Schemas {
		args = append(args, "--schema="+name)
	}
	for _, name := range o.Tables {
		args = append(args, "--table="+name)
	}
	return args
}
