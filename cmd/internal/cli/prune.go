package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

type pruneOutput api.Prune

func (r *root) pruneCommand() *cobra.Command {
	var confirm bool
	cmd := &cobra.Command{
		Use:   "prune DATABASE",
		Short: "Show what retention does with the backups of a database, and why",
		Long: "Show what retention does with the backups of a database, and why. It is a dry run: what is to be removed goes by\n" +
			"itself after the next backup, with backup.delete_delay. --confirm has it done now, and lets more go at once than\n" +
			"max_percent; nothing else that stops it is lifted by that.",
		Args: arguments(1, 1),
	}
	cmd.Flags().BoolVar(&confirm, "confirm", false, "do it now, whatever the share that goes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		ask := func() (api.Prune, error) { return api.Get[api.Prune](cmd.Context(), c, api.RetentionPath(args[0])) }
		if confirm {
			ask = func() (api.Prune, error) { return c.ConfirmPrune(cmd.Context(), args[0]) }
		}
		p, err := ask()
		if err != nil {
			return err
		}
		return r.print(pruneOutput(p))
	}
	return cmd
}

func (p pruneOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"BACKUP", "ACTION", "RULES", "WHY"}, none: "no backups"}
	for _, d := range p.Decisions {
		t.rows = append(t.rows, []string{d.Backup, d.Action, strings.Join(d.Rules, ", "), d.Reason})
	}
	t.write(w)
	for _, s := range p.Stops {
		fmt.Fprintf(w, "nothing goes: %s\n", printable(s))
	}
}
