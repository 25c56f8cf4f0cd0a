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

// statusOutput is the group in one screen.
type statusOutput api.Overview

func (r *root) statusCommand() *cobra.Command {
	var check, strict, wait bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the group in one screen: who leads, what is fenced, the last good backup of each database, what needs a person",
		Long: "Show the group in one screen: whether it is well, who leads, what is fenced and why, the last good backup of each database\n" +
			"and its age, the storages, and what needs a person, with what to do about it.\n\n" +
			"With --check the exit code tells a monitor: 0 when nothing is critical, 1 when the daemon does not answer or the group has\n" +
			"no quorum, 4 when the lease of the node has run out, 6 when something critical needs a person; with --strict 6 for\n" +
			"warnings too. Standard error then has one line that says what.\n\n" +
			"With --wait it looks again and again until the daemon answers and its node is ready for work, and only then shows it: for\n" +
			"scripts that have just started a node.",
		Args: arguments(0, 0),
	}
	live(r, cmd, func([]string) string { return api.PathOverview }, func(o api.Overview) output { return statusOutput(o) })
	cmd.Flags().BoolVar(&check, "check", false, "let the exit code say whether something needs a person")
	cmd.Flags().BoolVar(&strict, "strict", false, "with --check: warnings count too")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the daemon answers and its node is ready for work")
	once := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wait {
			if err := r.awaitReady(cmd.Context()); err != nil {
				return err
			}
		}
		switch {
		case strict && !check:
			return &api.Error{Code: api.CodeUsage, Message: "--strict: is for --check"}
		case check && cmd.Flags().Changed("watch"):
			return &api.Error{Code: api.CodeUsage, Message: "--check looks once: leave --watch away"}
		case check:
			return r.checkStatus(cmd.Context(), strict)
		}
		return once(cmd, args)
	}
	return cmd
}

// readyEvery is how often a node that is started is asked whether it is ready.
const readyEvery = 200 * time.Millisecond

// awaitReady blocks until a daemon answers and is ready. One that refuses is not waited for.
func (r *root) awaitReady(ctx context.Context) error {
	c := r.client()
	defer c.Close()
	for {
		s, err := c.Status(ctx)
		var e *api.Error
		switch {
		case err == nil && s.Ready:
			return nil
		case err != nil && (!errors.As(err, &e) || e.Code != api.CodeUnavailable):
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(readyEvery):
		}
	}
}

func (r *root) checkStatus(ctx context.Context, strict bool) error {
	c := r.client()
	defer c.Close()
	o, err := c.Overview(ctx)
	if err != nil {
		return err
	}
	if err := r.print(statusOutput(o)); err != nil {
		return err
	}
	return verdict(o, strict)
}

// verdict is what a monitor is told; nil when nothing needs a person.
func verdict(o api.Overview, strict bool) error {
	if len(o.Alarms) == 0 {
		return nil
	}
	worst := o.Alarms[0]
	if worst.Severity != api.Critical && !strict {
		return nil
	}
	e := &api.Error{Code: api.CodeNeedsOperator, Message: worst.Text, Hint: worst.Hint}
	if more := len(o.Alarms) - 1; more > 0 {
		e.Message += fmt.Sprintf(" (and %d more)", more)
	}
	switch {
	case o.Health == api.HealthNoQuorum:
		e.Code = api.CodeUnavailable
	case worst.Kind == "lease":
		e.Code = api.CodeLeaseLost
	}
	return e
}

func (s statusOutput) text(w io.Writer, now time.Time) {
	o := api.Overview(s)
	var f facts
	f.add("group", o.Group+": "+healthWords(o))
	leader := o.Leader
	if leader == "" {
		leader = "none"
	}
	f.add("leader", fmt.Sprintf("%s, view %d", leader, o.View))
	f.add("members", crewWords(o.Crew))
	f.add("node", fmt.Sprintf("%s: %s, lease %s, run %s, version %s", o.Node, o.State, o.Lease, short(o.Run), o.Version))
	f.add("upgrade", upgradeWords(o.Upgrade))
	if s.CertificateUntil != nil {
		f.add("certificate", certificateWords(*s.CertificateUntil, now))
	}
	if len(s.Sealed) > 0 {
		f.add("keys", "none that opens what "+strings.Join(s.Sealed, " and ")+" makes: this node restores and verifies nothing")
	}
	if o.Kit != nil {
		f.add("kit", fmt.Sprintf("made %s by %s", ago(o.Kit.Made, now), o.Kit.By))
	}
	f.add("own state", stateWords(o.GroupState, now))
	f.add("tasks", fmt.Sprintf("%d running, %d waiting", o.Active, o.Waiting))
	f.write(w)
	writeAlarms(w, o.Alarms, now)
	if len(o.Fences) > 0 {
		heading(w, "fenced")
		fencesOutput(o.Fences).text(w, now)
	}
	if len(o.Databases) > 0 {
		heading(w, "last good backups")
		databaseTable(o.Databases, now).write(w)
	}
	if len(o.Storages) > 0 {
		heading(w, "storages of this node")
		t := table{heading: []string{"STORAGE", "STATE", "SINCE", "PROBLEM"}}
		for _, x := range o.Storages {
			t.rows = append(t.rows, []string{x.Name, x.State, ago(x.Since, now), x.Problem})
		}
		t.write(w)
	}
}

func certificateWords(until, now time.Time) string {
	day := until.UTC().Format(time.DateOnly)
	if left := until.Sub(now); left > 0 {
		return fmt.Sprintf("until %s, %s left", day, count(int(left/(24*time.Hour)), "day"))
	}
	return "expired on " + day
}

// stateWords say where the group has stored its own state, and how old that is; "" when it has not yet.
func stateWords(copies []api.GroupCopy, now time.Time) string {
	var words []string
	for _, c := range copies {
		text := c.Storage + " " + ago(c.At, now)
		if c.Object == "" {
			text = c.Storage + " not yet"
		}
		if len(c.Without) > 0 {
			text += " (without " + strings.Join(c.Without, " and ") + ")"
		}
		words = append(words, text)
	}
	if len(words) == 0 {
		return ""
	}
	return "stored in " + strings.Join(words, ", ")
}

func heading(w io.Writer, text string) { fmt.Fprintf(w, "\n%s\n", paint(w, bold, text)) }

func healthWords(o api.Overview) string {
	critical := 0
	for _, a := range o.Alarms {
		if a.Severity == api.Critical {
			critical++
		}
	}
	words := map[string]string{
		api.HealthWell: "well", api.HealthNoQuorum: "NO QUORUM",
		api.HealthWarned: "well enough: " + count(len(o.Alarms), "warning"), api.HealthAlarmed: "NEEDS A PERSON: " + count(critical, "alarm"),
	}[o.Health]
	if o.Health == api.HealthAlarmed && len(o.Alarms) > critical {
		words += ", " + count(len(o.Alarms)-critical, "warning")
	}
	return words
}

func crewWords(c api.Crew) string {
	words := []string{fmt.Sprintf("%d, %d ready", c.Members, c.Ready)}
	if c.Suspected > 0 {
		words = append(words, fmt.Sprintf("%d suspected", c.Suspected))
	}
	words = append(words, fmt.Sprintf("%d of %s here", c.Present, count(c.Voters, "voter")), fmt.Sprintf("survives the loss of %d", c.Spare))
	return strings.Join(words, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func writeAlarms(w io.Writer, alarms []api.Alarm, now time.Time) {
	if len(alarms) == 0 {
		return
	}
	heading(w, "needs a person")
	for _, a := range alarms {
		colour, mark := yellow, "  ? "
		if a.Severity == api.Critical {
			colour, mark = red, "  ! "
		}
		text := printable(a.Text)
		if a.From != "" {
			text = a.From + " says: " + text
		}
		if since := ago(a.Since, now); since != "" && since != "now" {
			text += " (since " + since + ")"
		}
		for i, line := range wrap(text, max(0, widthOf(w)-4)) {
			if i > 0 {
				mark = "    "
			}
			fmt.Fprintln(w, paint(w, colour, mark+line))
		}
		if a.Hint != "" {
			for _, line := range wrap(printable(a.Hint), max(0, widthOf(w)-6)) {
				fmt.Fprintln(w, "      "+line)
			}
		}
	}
}

func databaseTable(list []api.DatabaseState, now time.Time) table {
	t := table{heading: []string{"DATABASE", "STATE", "LAST GOOD", "BACKUP", "SIZE", "STORAGES", "VERIFIED", "EXPECTED", "NEXT", "PROBLEM"}}
	for _, d := range list {
		expected, bytes := "", ""
		if d.RPOMS > 0 {
			expected = "each " + span(time.Duration(d.RPOMS)*time.Millisecond)
		}
		if d.Backup != "" {
			bytes = size(d.Bytes)
		}
		t.rows = append(t.rows, []string{
			d.Name, d.State, ago(d.LastGood, now), d.Backup, bytes, strings.Join(d.Storages, ","), ago(d.Verified, now), expected, ahead(d.Next, now), d.Error,
		})
	}
	return t
}

// ahead is a moment to come, for people.
func ahead(at *time.Time, now time.Time) string {
	if at == nil {
		return ""
	}
	if d := at.Sub(now); d >= time.Second {
		return "in " + span(d)
	}
	return "due"
}
