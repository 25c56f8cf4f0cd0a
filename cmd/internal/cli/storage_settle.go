package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// storageFlags are those of commands that prepare a storage without a daemon.
func storageFlags(cmd *cobra.Command) *offline.StorageOptions {
	var o offline.StorageOptions
	cmd.Flags().StringVar(&o.Config, "config", "", "configuration file of the node")
	cmd.Flags().StringVar(&o.Signers, "signers", "", "list of keys that tells which group this is (default signers.json in the node's home)")
	return &o
}

func named(o *offline.StorageOptions, storage string) (offline.StorageOptions, error) {
	if o.Config == "" {
		return *o, &api.Error{Code: api.CodeUsage, Message: "which node?", Hint: "name its configuration by --config FILE"}
	}
	o.Storage = storage
	return *o, nil
}

// probeOutput is what a storage can do.
type probeOutput offline.StorageProbe

func (r *root) storageTestCommand() *cobra.Command {
	return r.probeCommand("test", "Try all that backups need of a storage", "Write, read, list and delete an object of a name of its own in a storage of the configuration, see that a second writer of\n"+
		"one name is refused and that an upload whose source fails leaves nothing, and clean up. Nothing is written to a storage\n"+
		"that another group owns. It fails when something is wrong. With --config it needs no daemon, and is tried from here;\n"+
		"without, the daemon is asked to try a storage of its file or of the group's settings. Run it on each node.", offline.ProbeStorage,
		func(ctx context.Context, name string) error {
			return r.tried(ctx, "storage", func(ctx context.Context, c *api.Client) (api.Tried, error) { return c.TryStorage(ctx, name) })
		})
}

func (r *root) storageAddCommand() *cobra.Command {
	return r.probeCommand("add", "Try a new storage, and mark it as the group's", "Test a storage that was written into the configuration (see storage test), and mark it as the group's own\n"+
		"(_fencepost/owner.json). It is used from the node's next start, which does the same; one that another group owns is\n"+
		"refused (see storage adopt). It needs no daemon.", offline.AddStorage, nil)
}

// probeCommand is a command that tries a storage from here, or where there is such a way and no configuration is named, by the
// daemon.
func (r *root) probeCommand(name, short, long string, do func(context.Context, offline.StorageOptions, bool) (offline.StorageProbe, error), byDaemon func(ctx context.Context, name string) error) *cobra.Command {
	var appendOnly bool
	use := name + " NAME --config FILE"
	if byDaemon != nil {
		use = name + " NAME [--config FILE]"
	}
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: arguments(1, 1)}
	o := storageFlags(cmd)
	cmd.Flags().BoolVar(&appendOnly, "append-only", false, "the credentials may not delete: see that they are refused; what the test has written stays")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if byDaemon != nil && *o == (offline.StorageOptions{}) && !appendOnly {
			return byDaemon(cmd.Context(), args[0])
		}
		one, err := named(o, args[0])
		if err != nil {
			return err
		}
		p, err := do(cmd.Context(), one, appendOnly)
		if err != nil {
			return err
		}
		if err := r.print(probeOutput(p)); err != nil {
			return err
		}
		if !p.Well() {
			return &api.Error{Code: api.CodeFailed, Message: fmt.Sprintf("storage %s cannot do all that backups need", args[0])}
		}
		return nil
	}
	return cmd
}

func (o probeOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"STEP", "TOOK", "PROBLEM"}}
	for _, s := range o.Steps {
		t.rows = append(t.rows, []string{s.Step, s.Took.Round(time.Millisecond).String(), s.Problem})
	}
	t.write(w)
	for _, text := range o.Warnings {
		fmt.Fprintf(w, "warning: %s\n", printable(text))
	}
	for _, name := range o.Left {
		fmt.Fprintf(w, "left behind: %s\n", printable(name))
	}
	if o.Owner.Cluster == "" {
		fmt.Fprintln(w, "Nobody owns it yet: the group marks it when a node starts that has it in its configuration.")
		return
	}
	fmt.Fprintf(w, "It is the group's own (%s).\n", o.Owner.Cluster)
}

// adoptOutput says whose a storage was, and is.
type adoptOutput struct {
	Storage string          `json:"storage"`
	Was     offline.OwnedBy `json:"was"`
	Is      offline.OwnedBy `json:"is"`
}

func (r *root) storageAdoptCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "adopt NAME --config FILE",
		Short: "Make a storage that another group owns the own group's",
		Long: "Take over a storage that belongs to another group, which is refused there from then on: for one that is no more. The\n" +
			"backups in it stay; they are foreign ones, which a restore asks about. Start the node afterwards. It needs no daemon.",
		Args: arguments(1, 1),
	}
	o := storageFlags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		one, err := named(o, args[0])
		if err != nil {
			return err
		}
		was, is, err := offline.AdoptStorage(cmd.Context(), one, func(other offline.OwnedBy) error {
			switch {
			case yes:
				return nil
			case !r.Interactive:
				return &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("storage %s belongs to group %s, and nobody can be asked here", args[0], other.Cluster), Hint: "add --yes"}
			}
			return r.typed(args[0], fmt.Sprintf("This takes storage %s away from group %s.", args[0], other.Cluster))
		})
		if err != nil {
			return err
		}
		return r.print(adoptOutput{Storage: args[0], Was: was, Is: is})
	}
	return cmd
}

func (o adoptOutput) text(w io.Writer, _ time.Time) {
	if o.Was == o.Is {
		fmt.Fprintf(w, "Storage %s is the group's own already.\n", o.Storage)
		return
	}
	fmt.Fprintf(w, "Storage %s is the group's own; it was that of %s.\n", o.Storage, o.Was.Cluster)
}

func (r *root) storageSetCommand() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "set NAME --config FILE --secret-file FILE",
		Short: "Give a storage another secret",
		Long: "Put another secret into the file that the storage's secret_key (s3) or refresh_token (dropbox) names, all at once, after\n" +
			"the storage was read with it; - reads it from standard input. It never is an argument. All else of a storage is changed\n" +
			"in the configuration. A running node has the new secret from its next start; do it on each node. It needs no daemon.",
		Args: arguments(1, 1),
	}
	o := storageFlags(cmd)
	cmd.Flags().StringVar(&from, "secret-file", "", "file with the new secret, or -")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		one, err := named(o, args[0])
		if err != nil {
			return err
		}
		if from == "" {
			return &api.Error{Code: api.CodeUsage, Message: "which secret?", Hint: "name a file that holds it by --secret-file FILE, or - for standard input"}
		}
		value, err := r.secretFrom(from)
		if err != nil {
			return err
		}
		file, err := offline.SetStorageSecret(cmd.Context(), one, value)
		if err != nil {
			return err
		}
		return r.print(storageSetOutput{Storage: args[0], File: file})
	}
	return cmd
}

// maxSecret bounds what is read of a secret, in bytes.
const maxSecret = 16 << 10

func (r *root) secretFrom(path string) (string, error) {
	from := r.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("read the secret: %w", err)
		}
		defer f.Close()
		from = f
	}
	var b strings.Builder
	if _, err := io.Copy(&b, io.LimitReader(from, maxSecret)); err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	return b.String(), nil
}

// storageSetOutput says where the secret is.
type storageSetOutput storageAuthOutput

func (o storageSetOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "The secret of %s is in %s.\n", o.Storage, o.File)
}
