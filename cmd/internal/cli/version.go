package cli

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"
)

// versionOutput is what this program is.
type versionOutput struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

func (r *root) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this command", Args: arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return r.print(versionOutput{r.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
		},
	}
}

func (v versionOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "fencepost %s (%s, %s)\n", v.Version, v.Go, v.System)
}
