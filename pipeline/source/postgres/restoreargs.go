package postgres

import "github.com/fencepost/fencepost/pipeline/source"

// restoreArgs are the arguments of pg_restore that say what of an archive is wanted. strict: a name that the archive does
// not hold is an error.
func restoreArgs(o source.RestoreOptions, strict bool) []string {
	var args []string
	for _, option := range []struct {
		on  bool
		arg string
	}{
		{o.NoOwner, "--no-owner"}, {o.NoPrivileges, "--no-privileges"}, {o.NoSubscriptions, "--no-subscriptions"}, {o.SchemaOnly, "--schema-only"},
		{o.NoTablespaces, "--no-tablespaces"},
	} {
		if option.on {
			args = append(args, option.arg)
		}
	}
	if strict && len(o.Schemas)+len(o.Tables) > 0 {
		args = append(args, "--strict-names")
	}
	for _, name := range o.Schemas {
		args = append(args, "--schema="+name)
	}
	for _, name := range o.Tables {
		args = append(args, "--table="+name)
	}
	return args
}
