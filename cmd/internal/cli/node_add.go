package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// addedOutput is what was written for a new node.
type addedOutput offline.AddedNode

func (r *root) nodeAddCommand() *cobra.Command {
	var o offline.AddOptions
	cmd := &cobra.Command{
		Use:   "add NAME[=IP] --like FILE --dir DIR",
		Short: "Write what a new node needs to join a group that is there",
		Long: "Write NAME.yaml, NAME.pem and NAME.key: the configuration of a node of the group, given by --like, with a name, addresses\n" +
			"and files of its own, and a certificate. Without IP the new node is on the machine of that one. It joins by the others as\n" +
			"seeds; nothing is changed on them. --dir has the authority's ca.pem and ca.key. It overwrites nothing. It needs no daemon.",
		Args: arguments(1, 1),
	}
	f := cmd.Flags()
	f.StringVar(&o.Like, "like", "", "configuration file of a node of the group")
	f.StringVar(&o.Dir, "dir", ".", "directory of the authority's ca.pem and ca.key, and of what is written")
	f.DurationVar(&o.Valid, "valid", offline.NodeValid, "how long the certificate lasts")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if o.Like == "" {
			return &api.Error{Code: api.CodeUsage, Message: "like which node of the group?", Hint: "name the configuration of one by --like FILE"}
		}
		o.Node = args[0]
		made, err := offline.AddNode(o)
		switch {
		case errors.Is(err, fs.ErrExist):
			return &api.Error{Code: api.CodeConflict, Message: err.Error(), Hint: "it overwrites nothing: choose another name or directory"}
		case errors.Is(err, fs.ErrNotExist):
			return &api.Error{Code: api.CodeNotFound, Message: err.Error(), Hint: "--dir is where ca.pem and ca.key are, --like a node's configuration"}
		case err != nil:
			return &api.Error{Code: api.CodeUsage, Message: err.Error(), Hint: "nothing was written; see fencepost node add --help"}
		}
		return r.print(addedOutput(made))
	}
	return cmd
}

func (a addedOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "Wrote the configuration of %s. Its machine needs these, at these paths:\n\n  %s %s\n\n", a.Node, a.Config, strings.Join(a.Secrets, " "))
	fmt.Fprintf(w, "It joins by %s when it is started:\n\n  fencepostd --config %s\n\n", strings.Join(a.Seeds, ", "), a.Config)
	fmt.Fprintln(w, "If the gossip keys were changed since that file was written, it needs the one that is in use: see fencepost keyring list.")
}
