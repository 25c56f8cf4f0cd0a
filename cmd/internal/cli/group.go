package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// numbersOutput is how far the group's numbers have come.
type numbersOutput api.Numbers

func (r *root) groupCommand() *cobra.Command {
	return group("group", "Look after what the group as a whole keeps", r.groupRebaseCommand(), r.groupRestoreCommand())
}

func (r *root) groupRebaseCommand() *cobra.Command {
	var want api.Rebase
	cmd := &cobra.Command{
		Use:   "rebase",
		Short: "Have positions and tokens go on above all that were ever given out",
		Long: "Have positions and tokens go on above all that were ever given out, as far as this group, its clock, its ledger and the\n" +
			"storages of the node that answers know. It is the way out when a storage or a ledger has seen a higher number than the\n" +
			"group has given out, because the group was rolled back: nothing is begun until then. When something else has seen a\n" +
			"still higher one, name it with --above. Before, see that no other group uses the same storages or ledger: that looks\n" +
			"just the same. What was begun before goes on; numbers are all that is spent.",
		Args: arguments(0, 0),
	}
	cmd.Flags().Uint64Var(&want.Above, "above", 0, "go on above this number, too")
	whyFlag(cmd, &want.Why)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c := r.client()
		defer c.Close()
		n, err := c.Rebase(cmd.Context(), want)
		if err != nil {
			return err
		}
		return r.print(numbersOutput(n))
	}
	return cmd
}

func (n numbersOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "numbers go on above %d; the highest one before was %d\n", n.Base, n.Before)
}
