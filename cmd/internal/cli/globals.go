package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
)

func (r *root) globalsCommand() *cobra.Command {
	cmd := group("globals", "Compare and restore the roles and tablespaces of a whole server", r.globalsDiffCommand(), r.globalsRestoreCommand())
	cmd.Long = "What belongs to a whole server and to none of its databases: roles, who is a member of which, settings of roles, rights on\n" +
		"parameters, tablespaces. Each backup has those of its server. They are read straight from a storage, and need no daemon, no\n" +
		"group and no ledger. Passwords are never shown; they are in a backup when that was asked for (globals: passwords)."
	return cmd
}

// storesFlags are those of commands that read from whatever storages are there, and write to a server that is handed over.
type storesFlags struct {
	shelf    *offline.ShelfOptions
	storages []string
	settings string
	to       string
}

func (r *root) storesFlags(cmd *cobra.Command) *storesFlags {
	f := &storesFlags{shelf: shelfFlags(cmd)}
	cmd.Flags().StringArrayVar(&f.storages, "storage", nil, "storage to read from; may be repeated (default all that are there)")
	cmd.Flags().StringVar(&f.settings, "settings", "", "settings of the group, as fencepost export writes them (default: the daemon is asked, if it is there)")
	cmd.Flags().StringVar(&f.to, "to", "", "the server: file:PATH, env:NAME, or a connection without a password")
	return f
}

// open finds out what the flags stand for.
func (f *storesFlags) open(ctx context.Context, r *root) (o offline.ShelfOptions, err error) {
	switch {
	case f.shelf.Config == "":
		return o, &api.Error{Code: api.CodeUsage, Message: "which storages?", Hint: "name the configuration of a node, or of a kit, by --config FILE"}
	case f.to == "":
		return o, &api.Error{Code: api.CodeUsage, Message: "which server?", Hint: "--to file:new.dsn, a file that holds postgres://postgres:PASSWORD@HOST/postgres"}
	}
	c := r.daemonOf(f.shelf.Config)
	defer c.Close()
	var settings *configs.Settings
	if settings, err = groupSettings(ctx, c, f.settings); err != nil && !(away(err) && f.settings == "") {
		return o, err
	}
	f.shelf.Settings = settings
	return *f.shelf, nil
}

func (r *root) globalsDiffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff BACKUP|SERVER|DATABASE --to SERVER --config FILE",
		Short: "Show what a server lacks of the roles and tablespaces of a backup",
		Long: "Compare the roles and tablespaces that a backup holds with those of a server: what would be made, what differs, what is only\n" +
			"there. Given a server or a database, its newest backup that holds them is taken. Nothing is changed.",
		Args: arguments(1, 1),
	}
	f := r.storesFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return r.globals(cmd.Context(), f, args[0], nil) }
	return cmd
}

func (r *root) globalsRestoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore BACKUP|SERVER|DATABASE --to SERVER --config FILE",
		Short: "Make the roles and tablespaces of a backup that a server lacks",
		Long: "Make on a server what it lacks of the roles and tablespaces that a backup holds. Nothing that is there is changed or dropped:\n" +
			"what differs is shown. Roles are made all or none, then tablespaces, whose directories must be there; after an error the\n" +
			"same command makes the rest.",
		Args: arguments(1, 1),
	}
	f := r.storesFlags(cmd)
	sure := cmd.Flags().Bool("yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*sure && !r.Interactive {
			return &api.Error{Code: api.CodeUsage, Message: "this makes roles on a server, and nobody can be asked here", Hint: "see globals diff; add --yes"}
		}
		return r.globals(cmd.Context(), f, args[0], func(d offline.GlobalsDiff) error {
			if *sure || len(d.Missing) == 0 {
				return nil
			}
			var b strings.Builder
			globalsOutput{GlobalsResult: offline.GlobalsResult{GlobalsDiff: d}}.text(&b, r.Now())
			fmt.Fprint(r.Stderr, b.String())
			return r.typed("make", "These are made on the server.")
		})
	}
	return cmd
}

func (r *root) globals(ctx context.Context, f *storesFlags, of string, sure func(offline.GlobalsDiff) error) error {
	shelf, err := f.open(ctx, r)
	if err != nil {
		return err
	}
	result, err := offline.Globals(ctx, offline.GlobalsOptions{Shelf: shelf, Storages: f.storages, Of: of, To: f.to, Sure: sure})
	if err != nil {
		if len(result.Made) > 0 {
			fmt.Fprintf(r.Stderr, "made before that: %s\n", printable(strings.Join(globalNames(result.Made), ", ")))
		}
		return hinted(err)
	}
	return r.print(globalsOutput{GlobalsResult: result, restores: sure != nil})
}

// globalsOutput is how a backup and a server differ, and what was made.
type globalsOutput struct {
	offline.GlobalsResult
	restores bool
}

func (o globalsOutput) text(w io.Writer, _ time.Time) {
	if o.Backup != "" {
		fmt.Fprintf(w, "Roles and tablespaces of backup %s, and the server %s.\n", o.Backup, printable(o.To))
	}
	if o.restores {
		section(w, "Made:", o.Made)
	} else {
		section(w, "Missing on the server, would be made:", o.Missing)
	}
	section(w, "Different, and left as it is:", o.Differ)
	for _, g := range o.Differ {
		for _, side := range []struct {
			name string
			list []string
		}{{"backup", g.Want}, {"server", g.Have}} {
			for _, text := range side.list {
				fmt.Fprintf(w, "    %s: %s\n", side.name, printable(text))
			}
		}
	}
	section(w, "Only on the server:", o.Extra)
	if len(o.Missing)+len(o.Differ)+len(o.Made) == 0 {
		fmt.Fprintln(w, "The server lacks nothing.")
	}
	if names := withoutPassword(o.Missing); len(names) > 0 {
		fmt.Fprintf(w, "No passwords are in the backup for: %s. They log in by one after ALTER ROLE name PASSWORD '...'.\n", printable(strings.Join(names, ", ")))
	}
}

func section(w io.Writer, heading string, list []offline.Global) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w, heading)
	for _, name := range globalNames(list) {
		fmt.Fprintf(w, "  %s\n", printable(name))
	}
}

func globalNames(list []offline.Global) (names []string) {
	for _, g := range list {
		names = append(names, g.Kind+" "+g.Name)
	}
	return names
}

// withoutPassword are roles that log in, and have no password in the backup.
func withoutPassword(list []offline.Global) (names []string) {
	for _, g := range list {
		if g.NoPassword {
			names = append(names, g.Name)
		}
	}
	return names
}
