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

// initOutput are the configurations that were written.
type initOutput []offline.InitFile

func (r *root) initCommand() *cobra.Command {
	var o offline.InitOptions
	cmd := &cobra.Command{
		Use:   "init --nodes n1,n2,n3 --dir DIR",
		Short: "Write configurations, certificates and keys for a new group",
		Long: "Write one configuration per node, the group's authority, a certificate per node and a gossip key. With names only, all\n" +
			"nodes are on this machine: loopback addresses, and a port, a socket and a home of its own for each. With --nodes\n" +
			"n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 each is on a machine of its own: copy its files there, to the same paths. It\n" +
			"overwrites nothing. It needs no daemon.\n\n" +
			"A connection string on a command line can be seen by others on the machine: where it has a password, use\n" +
			"env:NAME (an environment variable of the daemon) or file:PATH instead.",
		Args: arguments(0, 0),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Nodes, "nodes", nil, "names of the nodes, or name=IP for all, with commas between them")
	f.StringVar(&o.Dir, "dir", "", "directory to write to; made when missing")
	f.IntVar(&o.BasePort, "base-port", offline.DefaultBasePort, "gossip port of the first node; nodes of one address take three ports of ten each")
	f.StringVar(&o.Group, "group", "", "name of the group (default fencepost)")
	f.StringVar(&o.Profile, "profile", "", "time-outs: local, lan, wan or patient (default patient)")
	f.StringArrayVar(&o.Databases, "database", nil, "name=dsn of a database to make backups of; may be repeated")
	f.StringArrayVar(&o.Storages, "storage", nil, "name=path of a directory to keep backups in; may be repeated")
	cmd.RunE = func(*cobra.Command, []string) error {
		files, err := offline.Init(o)
		var broken *fs.PathError
		switch {
		case errors.As(err, &broken):
			return err
		case errors.Is(err, fs.ErrExist):
			return &api.Error{Code: api.CodeConflict, Message: err.Error()}
		case err != nil:
			return &api.Error{Code: api.CodeUsage, Message: err.Error(), Hint: "nothing was written; see fencepost init --help"}
		}
		return r.print(initOutput(files))
	}
	return cmd
}

func (files initOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "Wrote %d configurations. Start each node with\n\n", len(files))
	for _, f := range files {
		fmt.Fprintf(w, "  fencepostd --config %s\n", f.Config)
	}
	fmt.Fprintf(w, "\nand look at the group with\n\n  fencepost members --socket %s\n", files[0].Socket)
	fmt.Fprintf(w, "\nThe page and the API are at %s, for users and tokens; the first user is made over the socket\n\n  fencepost user add NAME --role admin --socket %s\n", files[0].Admin, files[0].Socket)
	fmt.Fprintf(w, "\nA node on another machine needs its configuration and these, as they are:\n\n")
	for _, f := range files {
		fmt.Fprintf(w, "  %s: %s\n", f.Node, strings.Join(f.Secrets, " "))
	}
	fmt.Fprintf(w, "\nca.key beside them signs certificates, and is for no node: keep it safe.\n")
}
