package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// rotatedOutput is what a step has changed.
type rotatedOutput offline.Rotated

func (r *root) certsRotateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate-ca begin|sign|finish",
		Short: "Replace the group's authority while the group runs, in three steps",
		Long: "Replace the group's authority while the group runs, because its key was seen by others, or it expires. begin makes the\n" +
			"next one, and ca.pem has both; sign makes all certificates of the directory the next one's; finish leaves it alone in\n" +
			"ca.pem. After each step copy what has changed to every node before the next one: a node that lacks it is refused by the\n" +
			"others, and so are they by it. Nodes take up new files by themselves. A step may be done again. It needs no daemon.",
		Args: arguments(1, 1), ValidArgs: []string{offline.RotateBegin, offline.RotateSign, offline.RotateFinish},
	}
	dir := certsDir(cmd)
	valid := cmd.Flags().Duration("valid", 0, "how long the next authority lasts (begin), or the certificates do (sign)")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		done, err := offline.RotateAuthority(*dir, args[0], *valid)
		if err != nil {
			return certsProblem(err)
		}
		return r.print(rotatedOutput(done))
	}
	return cmd
}

func (d rotatedOutput) text(w io.Writer, now time.Time) {
	certsOutput(d.Certs).text(w, now)
	fmt.Fprintf(w, "\nCopy to every node %s: %s\n", map[string]string{
		offline.RotateBegin: "the file", offline.RotateSign: "its own", offline.RotateFinish: "the file",
	}[d.Step], strings.Join(d.Changed, " "))
	switch d.Step {
	case offline.RotateBegin:
		fmt.Fprintln(w, "When all have it: fencepost certs rotate-ca sign")
	case offline.RotateSign:
		fmt.Fprintln(w, "When all have theirs, and fencepost members names no problem: fencepost certs rotate-ca finish")
	case offline.RotateFinish:
		fmt.Fprintln(w, "The former authority counts for nothing where it is.")
	}
}
