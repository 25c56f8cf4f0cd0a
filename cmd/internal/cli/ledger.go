package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

func (r *root) ledgerCommand() *cobra.Command {
	return group("ledger", "Look after the group's ledger: where it is, and what becomes of it on a bad day", r.ledgerShowCommand(),
		r.ledgerDecisionCommand(api.LedgerReconcile, "Have a frozen ledger say what the storages hold, and open it again",
			"Compare the group's ledger, which is frozen because it is an older copy of itself (a dump of last night, a standby that was\n"+
				"promoted without the last commits), with what the storages hold and with the group's own mark and claims. Without --apply\n"+
				"it only says what it would do. With it, backups that were made since are entered, those that were deleted since are gone,\n"+
				"restores and deletes of which nobody knows whether they were done end, and the ledger is open again: nothing is repeated.\n"+
				"A move of the ledger that was interrupted is taken back by it, too."),
		r.ledgerDecisionCommand(api.LedgerAdopt, "Have the group use a ledger that is not its own",
			"Take over the ledger in the database of ledger.dsn, whose group is no more, or which is another than the group has used so\n"+
				"far. It is compared with the storages as reconcile does; adopt those first (fencepost storage adopt). Without --apply it\n"+
				"only says what it would do. Tasks that had begun are taken up, and restores and deletes that had not are not begun."),
		r.ledgerDecisionCommand(api.LedgerInit, "Begin a ledger anew, with what the storages hold",
			"Begin a ledger in the database of ledger.dsn, which holds none, because the group's own one is lost and there is no copy of\n"+
				"it: all backups that lie whole in the storages are entered. The history of tasks, pins and notes are lost. Without --apply\n"+
				"it only says what it would do. Start nodes again that ran with the old one."),
		r.ledgerTransferCommand("move", "Have the group keep its ledger elsewhere",
			"Copy the ledger into an empty database, or into the group's own state (--to embedded), and have the group use it there from\n"+
				"now on. No task may have begun. Nodes begin nothing more until their files say the same (ledger.dsn) and they were started\n"+
				"again. The group's own state keeps no steps of a task's history: from there on they are in the old database only. What\n"+
				"goes wrong in between is taken back.", (*api.Client).MoveLedger),
		r.ledgerTransferCommand("copy", "Copy the ledger into an empty database",
			"Copy the ledger, of whatever kind, into an empty database. The copy is frozen, so that nobody works with it by mistake; the\n"+
				"one in use goes on. While tasks run it is of no single moment.", (*api.Client).CopyLedger))
}

// ledgerOutput is the ledger, as the node reaches it.
type ledgerOutput api.Ledger

func (r *root) ledgerShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show which ledger the group uses, and what is wrong with it",
		Long:  "Show which ledger the group uses, which one the node that answers reaches, and why nobody works with it if so.",
		Args:  arguments(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c := r.client()
		defer c.Close()
		l, err := c.Ledger(cmd.Context())
		if err != nil {
			return err
		}
		return r.print(ledgerOutput(l))
	}
	return cmd
}

func (l ledgerOutput) text(w io.Writer, _ time.Time) {
	state := "in use"
	switch {
	case l.Frozen:
		state = "frozen"
	case l.Problem != "":
		state = "not in use by this node"
	}
	var f facts
	f.add("kind", l.Kind)
	f.add("id", l.ID)
	f.add("node", l.Node)
	f.add("its file names", l.Configured)
	if l.Found != "" {
		f.add("found there", l.Found)
		f.add("of group", l.Owner)
		f.add("generation", strconv.FormatInt(l.Generation, 10))
		f.add("mark", strconv.FormatUint(l.Mark, 10))
		f.add("group's mark", strconv.FormatUint(l.GroupMark, 10))
	}
	f.add("state", state)
	f.add("problem", l.Problem)
	f.add("hint", l.Hint)
	f.write(w)
}

// ledgerPlanOutput is what a decision changes.
type ledgerPlanOutput api.LedgerPlan

func (r *root) ledgerDecisionCommand(do, short, long string) *cobra.Command {
	var apply bool
	cmd := &cobra.Command{Use: do, Short: short, Long: long, Args: arguments(0, 0)}
	cmd.Flags().BoolVar(&apply, "apply", false, "do it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c := r.client()
		defer c.Close()
		var p api.LedgerPlan
		var err error
		if apply {
			p, err = c.DecideLedger(cmd.Context(), do)
		} else {
			p, err = c.PlanLedger(cmd.Context(), api.PlanLedger{Do: do})
		}
		if err != nil {
			return err
		}
		return r.print(ledgerPlanOutput(p))
	}
	return cmd
}

func (p ledgerPlanOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"WHAT", "ID", "DATABASE", "WAS", "IS", "WHY"}, none: "All that the storages hold is in the ledger as it is."}
	for _, b := range p.Backups {
		was := b.Was
		if was == "" {
			was = "unknown"
		}
		t.rows = append(t.rows, []string{"backup", b.ID, b.Database, was, b.Is, b.Why})
	}
	for _, x := range p.Tasks {
		t.rows = append(t.rows, []string{x.Type, x.ID, x.Database, x.Was, x.Is, x.Why})
	}
	t.write(w)
	for _, s := range p.Away {
		fmt.Fprintf(w, "Storage %s could not be looked through, and what it may hold is left as it is: %s\n", printable(s.Storage), printable(s.Problem))
	}
	if p.Done {
		fmt.Fprintln(w, "Done: the ledger is open.")
		return
	}
	fmt.Fprintf(w, "Nothing was changed. To do it: fencepost ledger %s --apply\n", p.Do)
}

// movedOutput is what was moved or copied.
type movedOutput api.MovedLedger

func (r *root) ledgerTransferCommand(name, short, long string, do func(*api.Client, context.Context, api.MoveLedger) (api.MovedLedger, error)) *cobra.Command {
	var want api.MoveLedger
	cmd := &cobra.Command{Use: name + " --to DSN", Short: short, Long: long, Args: arguments(0, 0)}
	cmd.Flags().StringVar(&want.To, "to", "", "file:PATH or env:NAME that holds the connection, as the node that answers sees it, or one without a password")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if want.To == "" {
			return &api.Error{Code: api.CodeUsage, Message: "where to?", Hint: "name a connection by --to file:PATH"}
		}
		if want.To != api.LedgerEmbedded {
			if _, err := configs.HandedDSN(want.To); err != nil { // a password goes no further
				return &api.Error{Code: api.CodeUsage, Message: "--to: " + err.Error()}
			}
		}
		c := r.client()
		defer c.Close()
		m, err := do(c, cmd.Context(), want)
		if err != nil {
			return err
		}
		return r.print(movedOutput(m))
	}
	return cmd
}

func (m movedOutput) text(w io.Writer, _ time.Time) {
	what := []string{fmt.Sprintf("%d tasks", m.Tasks), fmt.Sprintf("%d backups", m.Backups), fmt.Sprintf("%d items", m.Items)}
	if !m.InUse {
		fmt.Fprintf(w, "Copied %s into ledger %s, which is frozen.\n", strings.Join(what, ", "), m.ID)
		return
	}
	fmt.Fprintf(w, "Moved %s; the group keeps its ledger as %s now.\n", strings.Join(what, ", "), m.To)
	if m.To == api.LedgerEmbedded {
		fmt.Fprintln(w, "Take ledger.dsn out of the files of all nodes, and start them again.")
		return
	}
	fmt.Fprintln(w, "Give the files of all nodes the new ledger.dsn, and start them again.")
}
