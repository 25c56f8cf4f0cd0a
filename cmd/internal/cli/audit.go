package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/audit"
)

// auditOutput is a list of records, newest first.
type auditOutput []api.AuditRecord

// auditCheckOutput says whether records are whole.
type auditCheckOutput api.AuditCheck

func (r *root) auditCommand() *cobra.Command {
	var f api.AuditFilter
	var restores, check bool
	var file string
	cmd := &cobra.Command{
		Use: "audit", Short: "Show who changed what",
		Long: "Show who changed what, newest first. What was asked for and what became of it are two records; one without the other\n" +
			"is a change whose node died, or could not write, in between. The group keeps the last 1024 records, each node's copy\n" +
			"(audit.file of its configuration) all since it joined. Each holds the hash of the one before: --check looks whether\n" +
			"they are whole, of the group or, with --file, of a copy; compare the last hash of two copies.",
		Example: "  fencepost audit --restores\n  fencepost audit --actor ann --limit 20\n  fencepost audit --check --file /var/lib/fencepost/audit.jsonl",
		Args:    arguments(0, 0),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Actor, "actor", "", "only what this one did")
	flags.StringVar(&f.Action, "action", "", "only this, such as backup.delete, or all that begins with it, such as backup")
	flags.StringVar(&f.Target, "target", "", "only what is about this backup, task, user, ...")
	flags.IntVarP(&f.Limit, "limit", "n", 0, "at most so many")
	flags.BoolVar(&restores, "restores", false, "only restores")
	flags.BoolVar(&check, "check", false, "look whether the records are whole, instead of showing them")
	flags.StringVar(&file, "file", "", "with --check: a node's copy, which is read here and needs no daemon")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case file != "" && !check:
			return &api.Error{Code: api.CodeUsage, Message: "--file goes with --check"}
		case restores && f.Action != "":
			return &api.Error{Code: api.CodeUsage, Message: "--restores and --action: give one"}
		case check:
			return r.checkAudit(cmd, file)
		}
		if restores {
			f.Action = "restore"
		}
		c := r.client()
		defer c.Close()
		list, err := c.Audit(cmd.Context(), f)
		if err != nil {
			return err
		}
		return r.print(auditOutput(list))
	}
	return cmd
}

// checkAudit checks the group's records, or a copy. Records that are not whole are an error.
func (r *root) checkAudit(cmd *cobra.Command, file string) error {
	var found api.AuditCheck
	var err error
	if file != "" {
		found, err = audit.CheckCopy(file)
	} else {
		c := r.client()
		defer c.Close()
		found, err = c.CheckAudit(cmd.Context())
	}
	if err != nil {
		return err
	}
	if err := r.print(auditCheckOutput(found)); err != nil || found.Whole {
		return err
	}
	return &api.Error{Code: api.CodeNeedsOperator, Message: "the audit trail is not whole: " + found.Problem, Hint: "compare it with the copies of the other nodes, and keep them all"}
}

func (a auditOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"RECORD", "TIME", "ACTOR", "VIA", "ACTION", "TARGET", "PHASE", "OF", "DETAILS"}, none: "no records"}
	for _, x := range a {
		details := x.Problem
		for _, text := range []string{string(x.Request), string(x.After)} {
			if details == "" && x.Phase != audit.Done {
				details = text
			}
		}
		if len(details) > 80 {
			details = details[:77] + "..."
		}
		t.rows = append(t.rows, []string{number(x.Seq), x.At.UTC().Format("2006-01-02 15:04:05Z"), who(x), x.Via, x.Action, x.Target, x.Phase, number(x.Of), details})
	}
	t.write(w)
}

// who are those who did it: who asked for it, on which node, and who has approved it.
func who(x api.AuditRecord) string {
	if x.Approver == "" {
		return x.Actor + "@" + x.Node
	}
	return x.Actor + "@" + x.Node + ", approved by " + x.Approver
}

func (a auditCheckOutput) text(w io.Writer, _ time.Time) {
	var f facts
	f.add("records", fmt.Sprintf("%d, from %d to %d", a.Records, a.First, a.Last))
	f.add("last hash", a.Hash)
	f.add("whole", map[bool]string{true: "yes", false: "NO"}[a.Whole])
	f.write(w)
}
