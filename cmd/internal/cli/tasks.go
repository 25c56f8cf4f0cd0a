package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// tasksOutput is a list of tasks, taskOutput one of them with everything, taskLogOutput what happened to it.
type (
	tasksOutput   []api.Task
	taskOutput    api.Task
	taskLogOutput api.TaskLog
)

func (r *root) tasksCommand() *cobra.Command {
	var filter api.TaskFilter
	cmd := &cobra.Command{
		Use:   "tasks [TASK]",
		Short: "List the tasks, newest first, or show one",
		Long: "List the tasks, newest first. With a TASK show all about it: how far it is, and why nobody begins it when it waits;\n" +
			"with --log what happened to it, as far as the group keeps it: the newest lines, of all its attempts.",
		Args: arguments(0, 1),
	}
	cmd.Flags().BoolVar(&filter.Active, "active", false, "only those that have not ended")
	cmd.Flags().BoolVar(&filter.Internal, "internal", false, "those that nobody asked for by hand, too")
	cmd.Flags().StringVar(&filter.Database, "database", "", "only those of this database")
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "at most so many, 0 for all")
	cmd.Flags().StringVar(&filter.After, "after", "", "the page behind this task")
	log := cmd.Flags().Bool("log", false, "what happened to TASK")
	watch := watchFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if filter.Limit < 0 {
			return &api.Error{Code: api.CodeUsage, Message: "--limit: want a number from 0"}
		}
		switch {
		case *log && len(args) == 0:
			return &api.Error{Code: api.CodeUsage, Message: "--log: whose?", Hint: "name a task: fencepost tasks TASK --log"}
		case *log:
			return show(cmd.Context(), r, *watch, api.TaskLogPath(args[0]), func(l api.TaskLog) output { return taskLogOutput(l) })
		case len(args) > 0:
			return show(cmd.Context(), r, *watch, api.TaskPath(args[0]), func(t api.Task) output { return taskOutput(t) })
		}
		return show(cmd.Context(), r, *watch, api.TasksPath(filter), func(t []api.Task) output { return tasksOutput(t) })
	}
	return cmd
}

func (ts tasksOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"TASK", "TYPE", "DATABASE", "STATE", "ATTEMPT", "NODE", "PROGRESS", "BACKUP", "UPDATED"}, none: "no tasks"}
	for _, x := range ts {
		t.rows = append(t.rows, []string{
			x.ID, x.Type, x.Database, taskState(x), attempt(x), x.Node, progress(x), x.Backup, ago(&x.Updated, now),
		})
	}
	t.write(w)
}

func (t taskOutput) text(w io.Writer, now time.Time) {
	x := api.Task(t)
	var f facts
	f.add("task", x.ID)
	f.add("type", x.Type)
	f.add("state", taskState(x))
	f.add("database", x.Database)
	f.add("backup", x.Backup)
	f.add("target", x.Target)
	f.add("storages", strings.Join(x.Storages, ", "))
	f.add("attempt", attempt(x))
	f.add("node", x.Node)
	f.add("run", x.Run)
	f.add("token", number(x.Token))
	if x.Needs != nil {
		f.add("needs labels", strings.Join(x.Needs.Labels, ", "))
		if x.Needs.Client > 0 {
			f.add("needs programs", fmt.Sprintf("of version %d or newer", x.Needs.Client))
		}
	}
	for _, why := range x.Waits {
		f.add("waits, since", why)
	}
	f.add("progress", progress(x))
	f.add("rate", rate(x.Progress))
	if x.Progress.Processed > 0 {
		f.add("processed", size(x.Progress.Processed))
	}
	for _, name := range slices.Sorted(maps.Keys(x.Progress.Stored)) {
		f.add("stored in "+name, size(x.Progress.Stored[name]))
	}
	f.add("created", ago(&x.Created, now))
	f.add("begun", ago(x.Begun, now))
	f.add("updated", ago(&x.Updated, now))
	if x.NotBefore != nil && !x.Final && x.NotBefore.After(now) {
		f.add("begins in", span(x.NotBefore.Sub(now)))
	}
	if x.Finished != nil {
		f.add("took", span(x.Finished.Sub(x.Created)))
	}
	f.add("cancelled by", x.CancelBy)
	f.add("error", x.Error)
	f.add("hint", x.Hint)
	if x.Undo != "" {
		f.add("undo", "fencepost undo "+x.ID+" (the replaced database is kept as "+x.Undo+")")
	}
	f.write(w)
}

func taskState(t api.Task) string {
	if t.CancelRequested && !t.Final {
		return t.State + " (cancelling)"
	}
	return t.State
}

func attempt(t api.Task) string {
	if t.Attempt == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", t.Attempt, t.MaxAttempts)
}

func progress(t api.Task) string {
	p := t.Progress
	switch {
	case p.Read == 0:
		return ""
	case p.Estimate > 0 && !t.Final:
		return fmt.Sprintf("%s of about %s", size(p.Read), size(p.Estimate))
	default:
		return size(p.Read)
	}
}

// rate is how fast it goes, and how long it takes yet.
func rate(p api.Progress) string {
	switch {
	case p.Rate == 0:
		return ""
	case p.LeftMS == 0:
		return size(p.Rate) + "/s"
	}
	return fmt.Sprintf("%s/s, about %s left", size(p.Rate), span(time.Duration(p.LeftMS)*time.Millisecond))
}

func (l taskLogOutput) text(w io.Writer, _ time.Time) {
	if l.Dropped > 0 {
		fmt.Fprintf(w, "(%d older lines are not kept)\n", l.Dropped)
	}
	t := table{heading: []string{"AT", "ATTEMPT", "NODE", "LEVEL", "WHAT"}, none: "nothing was told yet"}
	for _, x := range l.Lines {
		t.rows = append(t.rows, []string{x.At.UTC().Format("2006-01-02T15:04:05.000Z"), fmt.Sprint(x.Attempt), x.Node, x.Level, x.Text})
	}
	t.write(w)
}
