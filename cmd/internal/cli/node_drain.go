package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// drainOutput is how far a node is on its way to doing nothing.
type drainOutput api.Drain

// restartOutput is whether a node may be stopped now.
type restartOutput api.MayRestart

func (r *root) nodeDrainCommand() *cobra.Command {
	var wait bool
	var deadline time.Duration
	cmd := &cobra.Command{
		Use:   "drain [NAME]",
		Short: "Have a node begin nothing new, so that it can be stopped without ending any work",
		Long: "Have a node begin nothing new, so that it can be stopped without ending any work; without NAME the one that answers.\n" +
			"It claims nothing, hands leadership of the log over, and goes on with what it had begun. Exit code 0 when it does\n" +
			"nothing any more, or does not run; 3 while it is busy, with an estimate of how long. It stays drained, whatever stops\n" +
			"and starts, until fencepost node undrain.",
		Args: arguments(0, 1),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the node does nothing any more")
	cmd.Flags().DurationVar(&deadline, "deadline", 0, "with --wait: how long to wait at most; the node stays drained")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if deadline < 0 || deadline > 0 && !wait {
			return &api.Error{Code: api.CodeUsage, Message: "--deadline bounds the wait, and must be positive", Hint: "add --wait"}
		}
		c := r.client()
		defer c.Close()
		node, err := nodeOf(cmd.Context(), c, args)
		if err != nil {
			return err
		}
		d, err := c.DrainNode(cmd.Context(), api.NodeName{Node: node})
		if err != nil {
			return err
		}
		if wait && d.State != api.DrainIdle {
			if d, err = r.awaitDrained(cmd.Context(), c, d, deadline); err != nil {
				return err
			}
		}
		if err := r.print(drainOutput(d)); err != nil || d.State == api.DrainIdle {
			return err
		}
		return &api.Error{Code: api.CodeBusy, Message: stillBusy(d), Hint: "fencepost node drain " + d.Node + " --wait waits for it; it begins nothing in between"}
	}
	return cmd
}

// awaitDrained waits until a node does nothing any more; when the deadline comes first it returns what the node still does.
func (r *root) awaitDrained(ctx context.Context, c *api.Client, last api.Drain, deadline time.Duration) (api.Drain, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if deadline > 0 {
		limited, cancel = context.WithTimeout(ctx, deadline)
	}
	defer cancel()
	said := ""
	say := func(d api.Drain) {
		if line := stillBusy(d); d.State == api.DrainBusy && line != said {
			said = line
			fmt.Fprintln(r.Stderr, printable(line))
		}
	}
	say(last)
	err := api.Watch(limited, c, api.DrainPath(last.Node), func(d api.Drain) bool {
		last = d
		say(d)
		return d.State == api.DrainBusy
	})
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded):
		return last, nil
	case err != nil:
		return last, err
	case last.State == api.DrainNone:
		return last, &api.Error{Code: api.CodeConflict, Message: "somebody lets " + last.Node + " work again"}
	}
	return last, nil
}

// stillBusy says what a node is still busy with, and how long that takes.
func stillBusy(d api.Drain) string {
	var with []string
	for _, t := range d.Tasks {
		what := t.Type + " " + t.ID
		if t.Database != "" {
			what += " of " + t.Database
		}
		if t.LeftMS > 0 {
			what += ", about " + span(time.Duration(t.LeftMS)*time.Millisecond) + " left"
		}
		with = append(with, what)
	}
	switch {
	case len(with) > 0:
	case d.Claims > 0:
		with = []string{number(d.Claims) + " claims"}
	case d.Leads:
		with = []string{"leading the log, until another member does"}
	default:
		return d.Node + " has not said yet that it does nothing any more"
	}
	text := d.Node + " is busy: " + strings.Join(with, "; ")
	if d.LeftMS == 0 && len(d.Tasks) > 0 {
		text += "; how long altogether is not known"
	}
	return text
}

func (r *root) nodeUndrainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "undrain [NAME]", Short: "Let a node that was drained work again",
		Long: "Let a node that was drained work again; without NAME the one that answers. One that was not drained stays as it is.",
		Args: arguments(0, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		node, err := nodeOf(cmd.Context(), c, args)
		if err != nil {
			return err
		}
		d, err := c.UndrainNode(cmd.Context(), api.NodeName{Node: node})
		if err != nil {
			return err
		}
		return r.print(drainOutput(d))
	}
	return cmd
}

func (r *root) nodeMayRestartCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "may-restart [NAME]",
		Short: "Tell whether a node may be stopped now without hurting the group",
		Long: "Tell whether a node may be stopped now without hurting the group; without NAME the one that answers. It may when all who\n" +
			"shall vote do and are well, nobody else is drained or stops, and no fence is open. Exit code 0 for yes, 3 for no, with\n" +
			"all that stands against it. What the node itself works on is not looked at: drain it then.",
		Args: arguments(0, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		node, err := nodeOf(cmd.Context(), c, args)
		if err != nil {
			return err
		}
		m, err := c.MayRestart(cmd.Context(), node)
		if err != nil {
			return err
		}
		if err := r.print(restartOutput(m)); err != nil || m.May {
			return err
		}
		return &api.Error{Code: api.CodeBusy, Message: m.Node + " may not be restarted now: " + strings.Join(m.Why, "; "), Hint: "ask again when that has passed"}
	}
	return cmd
}

// nodeOf is the node that was named, or the one that answers.
func nodeOf(ctx context.Context, c *api.Client, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	s, err := c.Status(ctx)
	return s.Node, err
}

func (d drainOutput) text(w io.Writer, _ time.Time) {
	switch {
	case d.State == api.DrainNone:
		fmt.Fprintf(w, "%s works\n", printable(d.Node))
	case d.State == api.DrainIdle && !d.Here:
		fmt.Fprintf(w, "%s does not run; it begins nothing when it is started, until fencepost node undrain %[1]s\n", printable(d.Node))
	case d.State == api.DrainIdle:
		fmt.Fprintf(w, "%s is drained: it does nothing and may be stopped\n", printable(d.Node))
	default:
		fmt.Fprintf(w, "%s begins nothing any more\n", printable(d.Node))
	}
}

func (m restartOutput) text(w io.Writer, _ time.Time) {
	if m.May {
		fmt.Fprintf(w, "%s may be restarted\n", printable(m.Node))
		return
	}
	fmt.Fprintf(w, "%s may not be restarted now\n", printable(m.Node))
}
