package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// recoveriesOutput are open and ended recoveries.
type recoveriesOutput []api.Recovery

func (r *root) recoveriesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "recoveries", Short: "List the open and the lately ended recoveries, newest first", Args: arguments(0, 0)}
	return live(r, cmd, func([]string) string { return api.PathRecoveries }, func(x []api.Recovery) output { return recoveriesOutput(x) })
}

func (x recoveriesOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"COMPONENT", "NODE", "RUN", "STATE", "RECOVERER", "TOKEN", "EVIDENCE", "SINCE", "TOOK", "PROBLEM"}, none: "no recoveries"}
	for _, y := range x {
		took := ""
		if y.Since != nil && y.EndedAt != nil {
			took = span(y.EndedAt.Sub(*y.Since))
		}
		t.rows = append(t.rows, []string{
			y.Component, y.Node, short(y.Run), y.State, y.Recoverer, number(y.Token), y.Evidence, ago(y.Since, now), took, y.Problem,
		})
	}
	t.write(w)
}
