package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// nodeOutput is what was decided about a node.
type nodeOutput api.Node

func (r *root) nodeCommand() *cobra.Command {
	return group("node", "Add and remove nodes, stop one without harm, and decide what becomes of one whose home is lost, or that is gone for good",
		r.nodeAddCommand(), r.nodeRemoveCommand(), r.nodeMayRestartCommand(), r.nodeDrainCommand(), r.nodeUndrainCommand(), r.nodeForgetCommand(), r.nodeReplaceCommand())
}

func (r *root) nodeForgetCommand() *cobra.Command {
	var sure bool
	cmd := &cobra.Command{
		Use:   "forget NAME",
		Short: "Remove a node for good",
		Long: "Remove a node for good: it must be stopped, and what it had begun recovered. Its vote goes as soon as another member\n" +
			"votes in its place, or the rest is a healthy majority without it. Its home is refused from then on; another home may\n" +
			"come under the same name, as a newcomer. It cannot be taken back.",
		Args: arguments(1, 1),
	}
	cmd.Flags().BoolVar(&sure, "yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		if !sure {
			if !r.Interactive {
				return &api.Error{Code: api.CodeUsage, Message: "forget removes the node for good, and nobody can be asked here", Hint: "add --yes"}
			}
			if err := r.typed(args[0], "This has the group refuse the home of "+args[0]+" for good."); err != nil {
				return err
			}
		}
		n, err := c.ForgetNode(cmd.Context(), api.NodeName{Node: args[0]})
		if err != nil {
			return err
		}
		return r.print(nodeOutput(n))
	}
	return cmd
}

func (r *root) nodeReplaceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replace NAME",
		Short: "Let a node come back with another home, because its old one is lost",
		Long: "Let a node come back with another home, once, because its old one is lost. Start it with an empty home afterwards: it\n" +
			"follows the log first, and votes when it has caught up. A node that has its old home needs none of this.",
		Args: arguments(1, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		n, err := c.ReplaceNode(cmd.Context(), api.NodeName{Node: args[0]})
		if err != nil {
			return err
		}
		return r.print(nodeOutput(n))
	}
	return cmd
}

func (n nodeOutput) text(w io.Writer, _ time.Time) {
	switch n.State {
	case api.NodeForgotten:
		fmt.Fprintf(w, "%s is forgotten; its home is refused from now on\n", printable(n.Node))
	case api.NodeReplaceable:
		fmt.Fprintf(w, "%s may come back with another home\n", printable(n.Node))
	}
}
