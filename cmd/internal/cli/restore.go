package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// restoring is one restore command.
type restoring struct {
	*root
	want   api.RestoreBackup
	newest bool   // a database was named, not a backup
	sure   string // name of the database that may be replaced
	dryRun bool
	wait   *bool
	asked  bool // --wait was given, one way or the other
	server *restoringServer
}

func (r *root) restoreCommand() *cobra.Command {
	c := &restoring{root: r}
	cmd := &cobra.Command{
		Use:   "restore DATABASE|BACKUP",
		Short: "Restore the newest good backup of a database, a given one, or a whole server",
		Long: "Restore a backup. Given a database, its newest good backup is proposed: the plan is shown, and goes on when the\n" +
			"database's name was typed (or given with --yes); on a terminal it is waited for. Given a backup, an existing\n" +
			"database is replaced only with --replace.\n\n" +
			"The backup is filled into a new database, checked, and swapped in under the target's name in one transaction; the\n" +
			"replaced database is kept for a while, and fencepost undo gives it its name back. With --in-place the backup goes into\n" +
			"the database itself, in one transaction: it replaces what has its names, all else stays, and there is no undo.\n\n" +
			"With --server a whole server is restored into another one, --to: first the roles and tablespaces that it lacks, then each\n" +
			"database of which there is a good backup by --as-of, into a new database. It is read straight from the storages of --config\n" +
			"and needs no daemon, no group and no ledger: that of a kit does (fencepost kit open). The plan is shown, and goes on when\n" +
			"the server's name was typed (or given with --yes). After an interruption of any kind the same command goes on: nothing is\n" +
			"done twice. No database that is there is replaced.",
	}
	c.server = r.serverFlags(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if c.server.want.Server != "" {
			return arguments(0, 0)(cmd, args)
		}
		return arguments(1, 1)(cmd, args)
	}
	want := &c.want
	cmd.Flags().StringVar(&want.Target, "as", "", "name of the database to make (default that of the one that was backed up)")
	cmd.Flags().StringVar(&want.Database, "on", "", "configured database whose server receives it (default that of the backup)")
	cmd.Flags().BoolVar(&want.Replace, "replace", false, "an existing database may be replaced")
	c.server.stores = r.storesFlags(cmd)
	cmd.Flags().BoolVar(&want.InPlace, "in-place", false, "restore into the database itself, all or nothing, without an undo")
	cmd.Flags().BoolVar(&want.Disconnect, "disconnect", false, "in place: disconnect the clients that it waits for")
	cmd.Flags().BoolVar(&want.NoOwner, "no-owner", false, "all belongs to the role that restores")
	cmd.Flags().BoolVar(&want.NoPrivileges, "no-privileges", false, "grant no rights")
	cmd.Flags().BoolVar(&want.NoSubscriptions, "no-subscriptions", false, "no subscriptions: replication does not go on from the copy")
	cmd.Flags().BoolVar(&want.NoTablespaces, "no-tablespaces", false, "all lies where the server puts it by default")
	cmd.Flags().BoolVar(&want.NoEventTriggers, "no-event-triggers", false, "no event triggers")
	cmd.Flags().BoolVar(&want.SchemaOnly, "schema-only", false, "no rows and no large objects")
	cmd.Flags().StringArrayVar(&want.Needs, "needs", nil, "label that the node must carry that does it; may be repeated")
	cmd.Flags().StringArrayVar(&want.Schemas, "schema", nil, "only what is in this schema; may be repeated")
	cmd.Flags().StringArrayVar(&want.Tables, "table", nil, "only this table, without indexes and keys; may be repeated")
	cmd.Flags().IntVar(&want.Jobs, "jobs", 0, "sessions at the same time, also for indexes and keys (default as many as the backup has streams)")
	cmd.Flags().StringVar(&c.sure, "yes", "", "do not ask: the name of the database that may be replaced, or of the server")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "check everything and show the plan; change nothing")
	c.wait = waitFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.oneOrAll(cmd); err != nil {
			return err
		}
		if c.server.want.Server != "" {
			c.server.sure, c.server.dryRun = c.sure, c.dryRun
			return c.server.run(cmd.Context())
		}
		c.asked = cmd.Flags().Changed("wait")
		return c.run(cmd.Context(), args[0])
	}
	return cmd
}

func (c *restoring) run(ctx context.Context, name string) error {
	client := c.client()
	defer client.Close()
	if err := c.choose(ctx, client, name); err != nil {
		return err
	}
	plan, err := client.PreviewRestore(ctx, c.want)
	if err != nil {
		return err
	}
	out := planOutput{RestorePlan: plan, Leaves: c.leaves(), replace: c.want.Replace}
	if c.dryRun {
		return c.print(out)
	}
	if err := c.confirm(out); err != nil {
		return err
	}
	c.want.Backup = plan.Backup.ID // the very one that was shown
	t, err := client.Restore(ctx, c.want)
	if err != nil {
		return err
	}
	wait := *c.wait || c.newest && c.Interactive && !c.asked // somebody sits there
	return c.finish(ctx, client, t, wait, api.TaskError)
}

// ofServer are the flags that a whole server has a use for, ofBoth those that a single database has, too.
var (
	ofServer = []string{"to", "as-of", "plan", "no-globals", "skip-existing", "config", "signers", "settings"}
	ofBoth   = []string{"server", "storage", "accept-foreign", "yes", "dry-run"}
)

// oneOrAll refuses flags that are not for what is restored, and hands the others on.
func (c *restoring) oneOrAll(cmd *cobra.Command) (err error) {
	whole := c.server.want.Server != ""
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case cmd.InheritedFlags().Lookup(f.Name) != nil, slices.Contains(ofBoth, f.Name), whole == slices.Contains(ofServer, f.Name):
		case whole:
			err = &api.Error{Code: api.CodeUsage, Message: "--" + f.Name + " is not for a whole server", Hint: "leave it out, or restore the databases one by one"}
		default:
			err = &api.Error{Code: api.CodeUsage, Message: "--" + f.Name + " is for a whole server", Hint: "name the server by --server"}
		}
	})
	if err != nil || whole {
		return err
	}
	c.want.AcceptForeign = c.server.stores.shelf.AcceptForeign
	switch list := c.server.stores.storages; len(list) {
	case 0:
	case 1:
		c.want.Storage = list[0]
	default:
		return &api.Error{Code: api.CodeUsage, Message: "a backup is read from one storage", Hint: "name one, or none: then it is any that has a copy"}
	}
	return nil
}

// choose finds out whether a backup or a database was named.
func (c *restoring) choose(ctx context.Context, client *api.Client, name string) error {
	_, err := client.Backup(ctx, name)
	var e *api.Error
	switch {
	case err == nil:
		c.want.Backup = name
		return nil
	case !errors.As(err, &e) || e.Code != api.CodeNotFound:
		return err
	}
	list, err := client.Backups(ctx, api.BackupFilter{Database: name, Limit: 1})
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return &api.Error{Code: api.CodeNotFound, Message: "there is no backup " + name + ", and none of a database of that name", Hint: "fencepost backup list shows them"}
	}
	if c.want.Database != "" && c.want.Database != name {
		return &api.Error{Code: api.CodeUsage, Message: "a database was named, and --on another one", Hint: "name the backup, from fencepost backup list"}
	}
	c.newest, c.want.Database = true, name
	c.want.Replace = c.want.Replace || c.want.Target == "" // the name is asked for below
	return nil
}

// leaves says in a few words what of the backup is left out.
func (c *restoring) leaves() []string {
	var out []string
	add := func(on bool, text string) {
		if on {
			out = append(out, text)
		}
	}
	add(c.want.SchemaOnly, "definitions only")
	add(len(c.want.Schemas) > 0, "only schema "+strings.Join(c.want.Schemas, ", "))
	add(len(c.want.Tables) > 0, "only table "+strings.Join(c.want.Tables, ", ")+", without indexes and keys")
	add(c.want.NoOwner, "no owners")
	add(c.want.NoPrivileges, "no rights")
	add(c.want.NoSubscriptions, "no subscriptions")
	add(c.want.NoEventTriggers, "no event triggers")
	add(c.want.NoTablespaces, "no tablespaces")
	return out
}

// confirm asks a person to type the name of what will be replaced, or of what is made of the newest backup.
func (c *restoring) confirm(plan planOutput) error {
	if !c.newest && !(plan.Exists && c.want.Replace) {
		return nil
	}
	switch {
	case c.sure == plan.Target:
		return nil
	case c.sure != "":
		return &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("--yes names %s, and the restore is of database %s: nothing was done", c.sure, plan.Target), Hint: "--yes " + plan.Target + " agrees to it"}
	case !c.Interactive:
		return &api.Error{Code: api.CodeUsage, Message: "this restores database " + plan.Target + ", and nobody can be asked here", Hint: "add --yes " + plan.Target}
	}
	var b strings.Builder
	plan.text(&b, c.Now())
	fmt.Fprint(c.Stderr, b.String())
	return c.typed(plan.Target, "This restores database "+plan.Target+".")
}

// planOutput is what a restore would do.
type planOutput struct {
	api.RestorePlan
	Leaves  []string `json:"leaves_out,omitempty"`
	replace bool
}

func (p planOutput) text(w io.Writer, now time.Time) {
	var f facts
	f.add("backup", p.Backup.ID)
	f.add("of database", p.Backup.Database)
	f.add("as of", ago(p.Backup.AsOf, now))
	f.add("size", size(p.Backup.RawBytes)+", "+size(p.Backup.StoredBytes)+" to read from storage "+p.Storage)
	f.add("verified", verified(p.Backup, now))
	f.add("suspect", strings.Join(p.Backup.Suspect, "; "))
	f.add("holds", p.Backup.Partial)
	f.add("leaves out", strings.Join(p.Leaves, "; "))
	f.add("into", "database "+p.Target+on(p.RestorePlan))
	f.add("replaces", p.replaces())
	f.add("clients", p.clients())
	f.write(w)
}

func on(p api.RestorePlan) string {
	if p.Server == "" {
		return ""
	}
	return ", PostgreSQL " + p.Server
}

// replaces says what becomes of the database that is there.
func (p planOutput) replaces() string {
	switch keep := time.Duration(p.KeepOldMS) * time.Millisecond; {
	case !p.Exists:
		return "nothing: there is no database of that name"
	case p.InPlace && !p.replace:
		return "nothing: the database must be empty"
	case p.InPlace:
		return "what has the names of the backup, in the database itself, WITHOUT an undo"
	case keep == 0:
		return "the database of " + size(p.Bytes) + ", which is DROPPED: restore.keep_old is 0"
	default:
		return "the database of " + size(p.Bytes) + ", which is kept for " + span(keep)
	}
}

// clients says who is in the database, and what happens to them.
func (p planOutput) clients() string {
	if len(p.Clients) == 0 {
		return ""
	}
	text := strings.Join(p.Clients, ", ")
	if p.More > 0 {
		text += fmt.Sprintf(" and %d more", p.More)
	}
	if p.InPlace {
		return text + " are connected: it waits for those who use what it replaces (--disconnect ends them)"
	}
	return text + " will be disconnected"
}

// verified says when a backup was last read back.
func verified(b api.Backup, now time.Time) string {
	if b.Verified == nil {
		return "never"
	}
	return ago(b.Verified, now)
}
