package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

type tickOutput api.Tick

// Exit codes of component run, which are those of a tick: 2 is whatever kept it from running, the command line included.
const (
	tickCannotRun = 2
	tickMostOld   = 2 // the largest that older schedulers know
)

func (r *root) runComponentCommand() *cobra.Command {
	var compat, once bool
	cmd := &cobra.Command{
		Use:   "run COMPONENT",
		Short: "Make one tick of a component on this node now, as cron would",
		Long: "Have the daemon of this node make one tick of a component now: look for items, claim, work, tell; wait for the end of it,\n" +
			"and show its report. The tick is the daemon's: it goes on when the command is interrupted.\n\n" +
			"Exit codes: 0 done or nothing to do, 1 some item failed, 2 it could not run, 3 busy or paused, 4 lease lost, 5 some\n" +
			"work is not proven to have stopped. With --compat-exit 3, 4 and 5 are 2.",
		Args: arguments(1, 1),
	}
	cmd.Flags().BoolVar(&once, "once", true, "make one tick and end; the daemon's own timer makes the others")
	cmd.Flags().BoolVar(&compat, "compat-exit", false, "only the exit codes 0, 1 and 2, for schedulers that know no others")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !once {
			return &api.Error{Code: api.CodeUsage, Message: "--once=false: only the daemon makes one tick after the other", Hint: "every in the component's configuration says how often"}
		}
		err := r.runComponent(cmd.Context(), args[0])
		var e exitError
		if errors.As(err, &e) && compat {
			e.code = min(e.code, tickMostOld)
			return e
		}
		return err
	}
	return cmd
}

func (r *root) runComponent(ctx context.Context, name string) error {
	c := r.client()
	defer c.Close()
	t, err := c.RunComponent(ctx, name)
	if err == nil {
		t, err = c.AwaitTick(ctx, t)
	}
	if err != nil && ctx.Err() != nil {
		err = &api.Error{Code: api.CodeFailed, Message: "interrupted: the tick goes on", Hint: "fencepost component ls, fencepost claim ls"}
	}
	if err != nil {
		code := api.ExitCode(err)
		if code < api.ExitBusy || code > api.ExitNotStopped {
			code = tickCannotRun
		}
		return exitError{err, code}
	}
	if err := r.print(tickOutput(t)); err != nil {
		return exitError{err, tickCannotRun}
	}
	return tickError(t)
}

// tickError is what a tick's code means to whoever asked for it.
func tickError(t api.Tick) error {
	if t.Code == 0 {
		return nil
	}
	text := cmp.Or(t.Problem, fmt.Sprintf("%d of %d items failed", t.Failed, t.Claimed))
	switch {
	case t.NotStopped > 0:
		text = fmt.Sprintf("the work on %d of %d items is not proven to have stopped", t.NotStopped, t.Claimed)
	case t.Lost > 0:
		text = fmt.Sprintf("the claims on %d of %d items were lost, their results are dropped", t.Lost, t.Claimed)
	}
	return exitError{&api.Error{Code: api.CodeFailed, Message: "component " + t.Component + ": " + text}, t.Code}
}

func (t tickOutput) text(w io.Writer, now time.Time) {
	var f facts
	f.add("component", t.Component)
	f.add("found", number(t.Queried))
	f.add("claimed", number(t.Claimed))
	f.add("held by others", number(t.Busy))
	f.add("done", number(t.Done))
	f.add("failed", number(t.Failed))
	for _, more := range []struct {
		what string
		n    int
	}{
		{"not wanted any more", t.Stale}, {"as if never tried", t.Unpreserved}, {"lost", t.Lost}, {"not stored", t.NotStored},
		{"not stopped", t.NotStopped}, {"left to recovery", t.Kept},
	} {
		if more.n > 0 {
			f.add(more.what, number(more.n))
		}
	}
	f.add("poll lock held", (time.Duration(t.PollHeldMS) * time.Millisecond).String())
	f.add("problem", t.Problem)
	f.write(w)
	if len(t.Failures) == 0 {
		return
	}
	failures := table{heading: []string{"ITEM", "FAILURE", "TEXT"}}
	for _, x := range t.Failures {
		failures.rows = append(failures.rows, []string{x.Item, x.Type, x.Text})
	}
	failures.write(w)
}
