package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func waitFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("wait", false, "wait until the task has ended; fail when it does")
}

// finish is the end of a command that made or changed the task t: print it, or wait for
// its end first and let judge decide what that means.
func (r *root) finish(ctx context.Context, c *api.Client, t api.Task, wait bool, judge func(api.Task) error) error {
	if !wait {
		return r.print(taskOutput(t))
	}
	said, bar := "", progressBar{w: r.Stderr, columns: r.Columns}
	last, err := c.WaitTask(ctx, t.ID, func(now api.Task) {
		if line := step(now); line != said {
			said = line
			bar.clear()
			fmt.Fprintln(r.Stderr, printable(line))
		}
		bar.draw(now)
	})
	bar.clear()
	if err != nil && ctx.Err() != nil {
		return &api.Error{Code: api.CodeFailed, Message: "interrupted: the task goes on", Hint: fmt.Sprintf("fencepost tasks %s --watch, fencepost cancel %s", t.ID, t.ID)}
	}
	if err != nil {
		return err
	}
	if err := r.print(taskOutput(last)); err != nil {
		return err
	}
	return judge(last)
}

// step is what is said of a task on the way.
func step(t api.Task) string {
	line := "task " + t.ID + ": " + taskState(t)
	if t.Attempt > 0 {
		line += fmt.Sprintf(", attempt %d", t.Attempt)
	}
	if t.Node != "" && !t.Final {
		line += " on " + t.Node
	}
	return line
}
