package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// removalOutput is how far a node is on its way out.
type removalOutput api.Removal

func (r *root) nodeRemoveCommand() *cobra.Command {
	var sure bool
	var deadline time.Duration
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Have a node leave for good: drained, stopped, and forgotten",
		Long: "Have a node leave for good: it begins nothing new, ends what it had begun, stops by itself, and is forgotten. Storages\n" +
			"that no other node has are listed first, with the backups in them: nobody reads those any more. Ask another member than\n" +
			"the one that goes. It waits for the end; exit code 3 when --deadline comes first, and the removal goes on. Until the node\n" +
			"has left, fencepost node undrain takes it back. One that is dead is only forgotten, like by fencepost node forget.",
		Args: arguments(1, 1),
	}
	cmd.Flags().BoolVar(&sure, "yes", false, "do not ask")
	cmd.Flags().DurationVar(&deadline, "deadline", 0, "how long to wait at most (default for ever)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if deadline < 0 {
			return &api.Error{Code: api.CodeUsage, Message: "--deadline must be positive"}
		}
		c := r.client()
		defer c.Close()
		before, err := c.Removal(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := r.sureOfRemoval(before, sure); err != nil {
			return err
		}
		last, err := c.RemoveNode(cmd.Context(), api.NodeName{Node: args[0]})
		if err == nil {
			last, err = r.awaitRemoved(cmd.Context(), c, last, deadline)
		}
		if err != nil {
			return err
		}
		if err := r.print(removalOutput(last)); err != nil || last.State == api.RemovalDone {
			return err
		}
		return &api.Error{Code: api.CodeBusy, Message: removalStep(last), Hint: "it goes on by itself; fencepost node remove " + args[0] + " --yes waits for it"}
	}
	return cmd
}

// sureOfRemoval asks whoever does not see yet what goes with the node.
func (r *root) sureOfRemoval(m api.Removal, sure bool) error {
	if m.State != api.RemovalNone || sure {
		return nil
	}
	lost := ""
	for _, s := range m.Storages {
		lost += " " + boundWords(s, "has") + "."
	}
	if !r.Interactive {
		return &api.Error{Code: api.CodeUsage, Message: "remove takes " + m.Node + " away for good, and nobody can be asked here." + lost, Hint: "add --yes"}
	}
	return r.typed(m.Node, "This takes "+m.Node+" out of the group, which refuses its home from then on."+lost)
}

// boundWords say what goes with a node.
func boundWords(s api.BoundStorage, verb string) string {
	return fmt.Sprintf("Nobody else %s storage %s, with %s, %d of them nowhere else", verb, s.Name, count(s.Backups, "backup"), s.Only)
}

// awaitRemoved waits until the group does not know the node any more; when the deadline comes first it returns how far it is.
func (r *root) awaitRemoved(ctx context.Context, c *api.Client, last api.Removal, deadline time.Duration) (api.Removal, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if deadline > 0 {
		limited, cancel = context.WithTimeout(ctx, deadline)
	}
	defer cancel()
	storages, said := last.Storages, ""
	say := func(m api.Removal) {
		if line := removalStep(m); m.State != api.RemovalNone && line != said {
			said = line
			fmt.Fprintln(r.Stderr, printable(line))
		}
	}
	say(last)
	err := api.Watch(limited, c, api.RemovalPath(last.Node), func(m api.Removal) bool {
		last = m
		say(m)
		return m.State != api.RemovalNone
	})
	var gone *api.Error
	switch {
	case errors.As(err, &gone) && gone.Code == api.CodeNotFound:
		return api.Removal{Node: last.Node, State: api.RemovalDone, By: last.By, Since: last.Since, Drain: last.Drain, Storages: storages}, nil
	case err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded):
		return last, nil
	case err != nil:
		return last, err
	}
	return last, &api.Error{Code: api.CodeConflict, Message: "somebody lets " + last.Node + " work again"}
}

// removalStep says what a removal waits for.
func removalStep(m api.Removal) string {
	switch m.State {
	case api.RemovalLeaving:
		return m.Node + " is idle and leaves"
	case api.RemovalForgetting:
		return m.Node + " has left; it is forgotten when all that it had begun is recovered, and its vote is another's"
	}
	return stillBusy(m.Drain)
}

func (m removalOutput) text(w io.Writer, _ time.Time) {
	if m.State != api.RemovalDone {
		fmt.Fprintf(w, "%s is on its way out\n", printable(m.Node))
		return
	}
	fmt.Fprintf(w, "%s is removed; its home is refused from now on\n", printable(m.Node))
	for _, s := range m.Storages {
		fmt.Fprintln(w, printable(boundWords(s, "had")))
	}
	if len(m.Storages) > 0 {
		fmt.Fprintln(w, "fencepost storage list and storage restore read them on its machine, with its configuration, without a daemon")
	}
}
