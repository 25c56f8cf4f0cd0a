package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// triedOutput is what became of a try by a daemon.
type triedOutput api.Tried

func (r *root) databaseTestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "test DATABASE", Short: "Have the node try a database as a backup would use it",
		Long: "Have the node try a database, of its file or of the group's settings, as a backup would use it: that the server answers,\n" +
			"that a client program fits it, that the role may read everything. Nothing is read. It fails when something is wrong.",
		Args: arguments(1, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.tried(cmd.Context(), "database", func(ctx context.Context, c *api.Client) (api.Tried, error) { return c.TryDatabase(ctx, args[0]) })
	}
	return cmd
}

// tried shows what became of a try. What does not work is an error.
func (r *root) tried(ctx context.Context, what string, try func(context.Context, *api.Client) (api.Tried, error)) error {
	c := r.client()
	defer c.Close()
	t, err := try(ctx, c)
	if err != nil {
		return err
	}
	if err := r.print(triedOutput(t)); err != nil || t.Good || t.Skipped {
		return err
	}
	return &api.Error{Code: api.CodeFailed, Message: fmt.Sprintf("%s %s does not work from node %s", what, t.Name, t.Node), Hint: t.Hint}
}

func (t triedOutput) text(w io.Writer, _ time.Time) {
	if len(t.Steps) > 0 {
		out := table{heading: []string{"STEP", "TOOK", "PROBLEM"}}
		for _, s := range t.Steps {
			out.rows = append(out.rows, []string{s.Step, (time.Duration(s.TookMS) * time.Millisecond).String(), s.Problem})
		}
		out.write(w)
	}
	fmt.Fprintf(w, "%s, from node %s: %s\n", printable(t.Name), printable(t.Node), printable(t.Found))
	for _, name := range t.Left {
		fmt.Fprintf(w, "left behind: %s\n", printable(name))
	}
}

// manifestOutput is a manifest as it lies in a storage.
type manifestOutput api.Manifest

func (r *root) backupManifestCommand() *cobra.Command {
	var storage string
	cmd := &cobra.Command{
		Use: "manifest BACKUP", Short: "Show the manifest of a backup as it lies in a storage",
		Long: "Show the manifest of a backup as it lies in a storage: its own description, which is all that a restore without this group\n" +
			"needs to know, and its commit.",
		Args: arguments(1, 1),
	}
	cmd.Flags().StringVar(&storage, "storage", "", "storage to read it from (default the first that has a copy)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		m, err := c.Manifest(cmd.Context(), args[0], storage)
		if err != nil {
			return err
		}
		return r.print(manifestOutput(m))
	}
	return cmd
}

func (m manifestOutput) text(w io.Writer, _ time.Time) {
	var b bytes.Buffer
	_ = json.Indent(&b, m.Manifest, "", "  ") // the answer was JSON, and so is what is in it
	fmt.Fprintf(w, "%s in storage %s:\n%s\n", printable(m.Object), printable(m.Storage), b.Bytes())
}
