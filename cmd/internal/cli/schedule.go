package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

type schedulesOutput []api.Schedule

func (r *root) scheduleCommand() *cobra.Command {
	ls := live(r, &cobra.Command{Use: "ls", Short: "List the schedules with their next five runs", Args: arguments(0, 0)},
		func([]string) string { return api.PathSchedules }, func(s []api.Schedule) output { return schedulesOutput(s) })
	run := &cobra.Command{Use: "run SCHEDULE", Short: "Plan a task of a schedule now, beside its occurrences", Args: arguments(1, 1)}
	wait := waitFlag(run)
	run.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		t, err := c.RunSchedule(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return r.finish(cmd.Context(), c, t, *wait, api.TaskError)
	}
	return group("schedule", "Look at recurring work, and switch it", ls, run,
		r.switchSchedule("enable SCHEDULE", "Let a schedule make tasks again; what was due meanwhile is not made up", true),
		r.switchSchedule("disable SCHEDULE", "Have a schedule make no tasks, on all nodes", false))
}

func (r *root) switchSchedule(use, short string, on bool) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: arguments(1, 1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		s, err := c.EnableSchedule(cmd.Context(), args[0], on)
		if err != nil {
			return err
		}
		return r.print(schedulesOutput{s})
	}
	return cmd
}

func (s schedulesOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"SCHEDULE", "KIND", "DATABASE", "CRON", "ZONE", "LAST", "NEXT"}, none: "no schedules"}
	for _, x := range s {
		last, next := "", "disabled"
		if x.Last != nil {
			last = x.Last.State + " " + ago(&x.Last.Created, now)
		}
		if !x.Disabled {
			next = ""
		}
		if len(x.Next) > 0 {
			next = stamp(x.Next[0])
		}
		t.rows = append(t.rows, []string{x.Name, x.Kind, x.Database, x.Cron, x.Zone, last, next})
		for _, o := range x.Next[min(1, len(x.Next)):] {
			t.rows = append(t.rows, []string{" ", " ", " ", " ", " ", " ", stamp(o)})
		}
	}
	t.write(w)
}

// stamp is an occurrence with the offset of its zone.
func stamp(o api.Occurrence) string {
	text := o.Due.Format("Mon 2006-01-02 15:04 -07:00")
	if late := o.Start.Sub(o.Due); late > 0 {
		text += " +" + late.String()
	}
	return text
}
