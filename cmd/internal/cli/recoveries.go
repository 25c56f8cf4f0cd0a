package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// recoveriesOutput are open and ended recoveries.
type recoveriesOutput []api.Recovery

func (r *root) recoveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recoveries",
		Short: "List the open and the lately ended recoveries, newest first, each with its time line",
		Long: "List the open and the lately ended recoveries, newest first: why and when the run was closed, the view without it, who\n" +
			"was appointed last and how long after the closing, when the fence was raised, how often it was handed over, and when\n" +
			"the recovery ended. `fencepost recoveries show` has each step.",
		Args: arguments(0, 0),
	}
	cmd.AddCommand(r.recoveriesShowCommand(), r.recoveriesRetryCommand(), r.recoveriesDropCommand())
	return live(r, cmd, func([]string) string { return api.PathRecoveries }, func(x []api.Recovery) output { return recoveriesOutput(x) })
}

func (x recoveriesOutput) text(w io.Writer, now time.Time) {
	t := table{
		heading: []string{"COMPONENT", "NODE", "RUN", "STATE", "EVIDENCE", "VIEW", "CLOSED", "APPOINTED", "RAISED", "HANDED OVER", "ENDED", "TOKEN", "PROBLEM"},
		none:    "no recoveries",
	}
	for _, y := range x {
		l := lineOf(y)
		t.rows = append(t.rows, []string{
			y.Component, y.Node, short(y.Run), y.State, y.Evidence, number(y.Opened), ago(y.Since, now), l.appointed, l.raised,
			l.handedOver, l.ended, number(y.Token), y.Problem,
		})
	}
	t.write(w)
}

// line is a recovery's time line in one row: how long after the closing the last of each kind was.
type line struct{ appointed, raised, handedOver, ended string }

func lineOf(y api.Recovery) (l line) {
	moves := 0
	for _, s := range y.Steps {
		switch s.What {
		case "appointed":
			l.appointed, l.raised = strings.TrimSpace(s.Node+" "+after(y, s)), ""
		case "raised":
			l.raised = after(y, s)
		case "handed over":
			moves++
		case "released", "dropped":
			l.ended = after(y, s)
		}
	}
	if moves > 0 {
		l.handedOver = fmt.Sprintf("%d times", moves)
	}
	if moves == 1 {
		l.handedOver = "once"
	}
	return l
}

// after is how long after the closing of the run a step was.
func after(y api.Recovery, s api.Step) string {
	if s.At == nil || y.Since == nil {
		return ""
	}
	d := max(0, s.At.Sub(*y.Since))
	if d < 10*time.Second {
		return "+" + d.Round(time.Millisecond).String()
	}
	return "+" + span(d)
}
