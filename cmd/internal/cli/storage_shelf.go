package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// shelfFlags are those of commands that look into a storage without a daemon.
func shelfFlags(cmd *cobra.Command) *offline.ShelfOptions {
	var o offline.ShelfOptions
	cmd.Flags().StringVar(&o.Config, "config", "", "configuration file of the node")
	cmd.Flags().StringVar(&o.Signers, "signers", "", "list of keys that sign for the group (default signers.json in the node's home)")
	cmd.Flags().BoolVar(&o.AcceptForeign, "accept-foreign", false, "also backups that the group has not made, or whose manifest is not signed")
	return &o
}

func openShelf(o *offline.ShelfOptions, storage string) (*offline.Shelf, error) {
	if o.Config == "" {
		return nil, &api.Error{Code: api.CodeUsage, Message: "which node?", Hint: "name its configuration by --config FILE"}
	}
	o.Storage = storage
	return offline.OpenShelf(*o)
}

// shelfOutput are the backups of a storage, and what is wrong there.
type shelfOutput struct {
	Backups  []api.Backup  `json:"backups"`
	Findings []api.Finding `json:"findings"`
}

func (r *root) storageListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list NAME --config FILE",
		Short: "List the backups of a storage by its manifests alone",
		Long: "List the whole backups that lie in a storage, and what else lies there, by the manifests alone. It needs no daemon,\n" +
			"no group and no ledger, and writes nothing.",
		Args: arguments(1, 1),
	}
	o := shelfFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		shelf, err := openShelf(o, args[0])
		if err != nil {
			return err
		}
		defer shelf.Close()
		list, found, err := shelf.List(cmd.Context())
		if err != nil {
			return err
		}
		out := shelfOutput{Backups: []api.Backup{}, Findings: []api.Finding{}}
		for _, b := range list {
			one := api.Backup{ID: b.ID, Database: b.Database, State: string(b.State), Token: b.Token, RawBytes: b.RawBytes, SHA256: b.SHA256,
				Created: b.Created, AsOf: &b.AsOf, Storages: []api.Copy{}}
			for _, c := range b.Copies {
				one.StoredBytes = c.Bytes
				one.Storages = append(one.Storages, api.Copy{Storage: c.Storage, State: c.State, Bytes: c.Bytes})
			}
			out.Backups = append(out.Backups, one)
		}
		for _, f := range found {
			out.Findings = append(out.Findings, api.Finding{Storage: f.Storage, Kind: f.Kind, Backup: f.Backup, Token: f.Token, Object: f.Object, Problem: f.Problem})
		}
		return r.print(out)
	}
	return cmd
}

func (o shelfOutput) text(w io.Writer, now time.Time) {
	backupsOutput(o.Backups).text(w, now)
	if len(o.Findings) > 0 {
		fmt.Fprintln(w)
		findingsOutput(o.Findings).text(w, now)
	}
}

// shelfRestoreOutput says what was made.
type shelfRestoreOutput struct {
	Backup string `json:"backup"`
	Target string `json:"target"`
	Undo   string `json:"undo,omitempty"`
}

func (r *root) storageRestoreCommand() *cobra.Command {
	var want offline.ShelfRestore
	var sure bool
	cmd := &cobra.Command{
		Use:   "restore NAME BACKUP --config FILE --database NAME",
		Short: "Restore a backup straight from a storage",
		Long: "Restore a backup from a storage by its manifest alone, into a new database that is checked and then swapped in under\n" +
			"the target's name. It needs no daemon, no group and no ledger: when the group is there, use restore.",
		Args: arguments(2, 2),
	}
	o := shelfFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&want.Database, "database", "", "database of the configuration whose server gets it")
	f.StringVar(&want.Target, "as", "", "name of the database to make (default that of the one that was backed up)")
	f.BoolVar(&want.Replace, "replace", false, "an existing database may be replaced; it is kept under another name")
	f.BoolVar(&sure, "yes", false, "do not ask before replacing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if want.Database == "" {
			return &api.Error{Code: api.CodeUsage, Message: "into which server?", Hint: "name a database of the configuration by --database NAME"}
		}
		want.Backup = args[1]
		switch {
		case want.Replace && want.Target == "":
			return &api.Error{Code: api.CodeUsage, Message: "--replace needs the name of the database that it replaces", Hint: "name it by --as NAME"}
		case want.Replace && !sure && !r.Interactive:
			return &api.Error{Code: api.CodeUsage, Message: "--replace replaces a database, and nobody can be asked here", Hint: "add --yes"}
		case want.Replace && !sure:
			if err := r.typed(want.Target, fmt.Sprintf("This replaces database %s by backup %s.", want.Target, want.Backup)); err != nil {
				return err
			}
		}
		shelf, err := openShelf(o, args[0])
		if err != nil {
			return err
		}
		defer shelf.Close()
		target, undo, err := shelf.Restore(cmd.Context(), want)
		if err != nil {
			return hinted(err)
		}
		return r.print(shelfRestoreOutput{Backup: want.Backup, Target: target, Undo: undo})
	}
	return cmd
}

// hinted is err with the remedy that it carries.
func hinted(err error) error {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return &api.Error{Code: api.CodeFailed, Message: err.Error(), Hint: h.Hint()}
	}
	return err
}

func (o shelfRestoreOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "Backup %s is database %s.\n", o.Backup, o.Target)
	if o.Undo != "" {
		fmt.Fprintf(w, "The one that it replaced is %s.\n", o.Undo)
	}
}

// shelfGlobalsOutput says where the roles are.
type shelfGlobalsOutput struct {
	Backup string `json:"backup"`
	File   string `json:"file"`
}

func (r *root) storageGlobalsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "globals NAME BACKUP --config FILE --out FILE",
		Short: "Write the roles and tablespaces of a backup's server into a file",
		Long: "Write what a backup holds of its whole server, roles and tablespaces as SQL, into a new file. A restore makes no\n" +
			"roles: read the file, and run with psql what is missing. It needs no daemon, no group and no ledger.",
		Args: arguments(2, 2),
	}
	o := shelfFlags(cmd)
	out := cmd.Flags().String("out", "", "file to write; must not be there")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *out == "" {
			return &api.Error{Code: api.CodeUsage, Message: "where to?", Hint: "name a file that is not there by --out FILE"}
		}
		shelf, err := openShelf(o, args[0])
		if err != nil {
			return err
		}
		defer shelf.Close()
		if err := shelf.Globals(cmd.Context(), args[1], *out); err != nil {
			return hinted(err)
		}
		return r.print(shelfGlobalsOutput{Backup: args[1], File: *out})
	}
	return cmd
}

func (o shelfGlobalsOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "The roles and tablespaces of backup %s are in %s. Read it before you run what you need of it.\n", o.Backup, o.File)
}
