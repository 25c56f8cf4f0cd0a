package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// viewOutput is the agreed list of members at one position.
type viewOutput api.View

func (r *root) viewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "view",
		Short: "Show the present membership view",
		Long:  "Show the present membership view: its version, which never goes back, the leader and the members.",
		Args:  arguments(0, 0),
	}
	return live(r, cmd, func([]string) string { return api.PathView }, func(v api.View) output { return viewOutput(v) })
}

func (v viewOutput) text(w io.Writer, now time.Time) {
	leader := v.Leader
	if leader == "" {
		leader = "none"
	}
	fmt.Fprintf(w, "view %d, leader %s", v.Version, printable(leader))
	if v.Stale {
		fmt.Fprint(w, ", STALE: no majority confirms it")
	}
	fmt.Fprintln(w)
	membersOutput(v.Members).text(w, now)
}
