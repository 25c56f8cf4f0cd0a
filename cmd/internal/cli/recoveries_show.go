package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// recoveryOutput is one recovery with all of its steps.
type recoveryOutput api.Recovery

func (r *root) recoveriesShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show COMPONENT RUN",
		Short: "Show each step of a recovery; RUN is the closed run, or its first digits",
		Args:  arguments(2, 2),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		y, err := recoveryNamed(cmd.Context(), c, args[0], args[1])
		if err != nil {
			return err
		}
		return r.print(recoveryOutput(y))
	}
	return cmd
}

// recoveryNamed is the newest recovery of the component whose run begins so.
func recoveryNamed(ctx context.Context, c *api.Client, component, run string) (api.Recovery, error) {
	list, err := c.Recoveries(ctx)
	if err != nil {
		return api.Recovery{}, err
	}
	for _, y := range list {
		if y.Component == component && strings.HasPrefix(y.Run, run) {
			return y, nil
		}
	}
	return api.Recovery{}, &api.Error{
		Code: api.CodeNotFound, Message: "no recovery of " + component + " of a run " + run + " is known",
		Hint: "fencepost recoveries lists them: the component, and the first digits of the run",
	}
}

func (y recoveryOutput) text(w io.Writer, now time.Time) {
	var f facts
	f.add("component", y.Component)
	f.add("node", y.Node)
	f.add("run", y.Run)
	f.add("evidence", y.Evidence)
	f.add("state", y.State)
	f.add("closed", ago(y.Since, now))
	f.add("view", number(y.Opened))
	f.add("tried", strings.Join(y.Tried, ", "))
	f.add("problem", y.Problem)
	f.write(w)
	t := table{heading: []string{"AFTER", "WHAT", "NODE", "RUN", "TOKEN", "POSITION", "WHY"}, none: "no steps are known"}
	for _, s := range y.Steps {
		t.rows = append(t.rows, []string{after(api.Recovery(y), s), s.What, s.Node, short(s.Run), number(s.Token), number(s.Position), s.Why})
	}
	t.write(w)
}
