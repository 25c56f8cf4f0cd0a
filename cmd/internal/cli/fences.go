package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// fencesOutput are the open recoveries and the maintenance fences.
type fencesOutput []api.Fence

func (r *root) fencesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fences",
		Short: "List the open fences",
		Long: "List the open fences: for each component of each closed run that is not settled yet, who recovers it.\n\n" +
			"States: queued (an older run goes first), waiting (nobody can yet), appointed, raised, parked (all have failed,\n" +
			"an operator decides), maintenance.",
		Args: arguments(0, 0),
	}
	return live(r, cmd, func([]string) string { return api.PathFences }, func(f []api.Fence) output { return fencesOutput(f) })
}

func (f fencesOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"COMPONENT", "NODE", "RUN", "STATE", "HOLDER", "TOKEN", "EVIDENCE", "TRIED", "FAILED", "SINCE", "WAITING FOR"}, none: "no open fences"}
	for _, x := range f {
		t.rows = append(t.rows, []string{
			x.Component, x.Node, short(x.Run), x.State, x.Holder, number(x.Token), x.Evidence,
			strings.Join(x.Tried, ","), number(x.Attempts), ago(x.Since, now), x.WaitingFor,
		})
	}
	t.write(w)
	for _, x := range f {
		if x.Problem != "" {
			fmt.Fprintf(w, "%s of %s: %s\n", printable(x.Component), printable(x.Node), printable(x.Problem))
		}
	}
}
