package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// statusOutput is how the daemon is.
type statusOutput api.Status

func (r *root) statusCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show how the daemon is doing", Args: arguments(0, 0)}
	return live(r, cmd, func([]string) string { return api.PathStatus }, func(s api.Status) output { return statusOutput(s) })
}

func (s statusOutput) text(w io.Writer, _ time.Time) {
	var f facts
	f.add("node", s.Node)
	f.add("group", s.Group)
	f.add("state", s.State)
	f.add("lease", s.Lease)
	f.add("leader", s.Leader)
	f.add("view", number(s.View))
	f.add("run", s.Run)
	f.add("epoch", number(s.Epoch))
	f.add("version", s.Version)
	for _, p := range s.Problems {
		f.add("problem", p)
	}
	f.write(w)
}
