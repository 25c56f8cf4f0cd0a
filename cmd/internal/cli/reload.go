package cli

import (
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// reloadOutput says what took effect.
type reloadOutput api.Reload

func (r *root) reloadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have the daemon read its configuration again",
		Long: "Have the daemon of this machine read its configuration again, as SIGHUP does. It says which of the keys that have changed\n" +
			"took effect (log.level, and the section notify), and which need a restart. A configuration that is not valid changes\n" +
			"nothing, and exits 2. Certificates and their keys are taken up by themselves.",
		Args: arguments(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c := r.client()
		defer c.Close()
		got, err := c.Reload(cmd.Context())
		if err != nil {
			return err
		}
		return r.print(reloadOutput(got))
	}
	return cmd
}

func (o reloadOutput) text(w io.Writer, _ time.Time) {
	var f facts
	f.add("read", o.File)
	applied := strings.Join(o.Applied, ", ")
	if applied == "" {
		applied = "nothing that can change while the node runs has changed"
	}
	f.add("took effect", applied)
	f.add("needs a restart", strings.Join(o.Restart, ", "))
	f.write(w)
}
