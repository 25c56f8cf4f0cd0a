package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// approvalsOutput is a list of requests that wait for a second person, or did.
type approvalsOutput []api.Approval

// approvalOutput is one of them.
type approvalOutput api.Approval

func (r *root) approvalCommand() *cobra.Command {
	ls := live(r, &cobra.Command{Use: "ls", Short: "List requests that wait for a second person, and those decided within a week", Args: arguments(0, 0)},
		func([]string) string { return api.PathApprovals }, func(a []api.Approval) output { return approvalsOutput(a) })
	show := live(r, &cobra.Command{Use: "show ID", Short: "Show what would be carried out, who has asked, and what became of it", Args: arguments(1, 1)},
		func(args []string) string { return api.ApprovalPath(args[0]) }, func(a api.Approval) output { return approvalOutput(a) })
	cmd := group("approval", "Approve what takes a second person, or refuse it", ls, show, r.approvalApproveCommand(), r.approvalRefuseCommand())
	cmd.Long = "What the group's settings name under approvals, nobody does alone: the request waits until somebody else, who may do the\n" +
		"same, has approved it. Over the socket, which does not say which person asks, nothing is approved: use --server and a\n" +
		"token of your own that approves (make it on the page, logged in), or the page itself."
	return cmd
}

func (r *root) approvalApproveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "approve ID", Short: "Have a request of somebody else carried out, as it was asked",
		Long: "Have a request of somebody else carried out at once, as fencepost approval show shows it. It is not tried again when it\n" +
			"does not come about.",
		Args: arguments(1, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.decided(cmd.Context(), func(ctx context.Context, c *api.Client) (api.Approval, error) { return c.Approve(ctx, args[0]) })
	}
	return cmd
}

func (r *root) approvalRefuseCommand() *cobra.Command {
	var want api.RefuseApproval
	cmd := &cobra.Command{Use: "refuse ID", Short: "End a request without carrying it out; one's own is withdrawn", Args: arguments(1, 1)}
	cmd.Flags().StringVar(&want.Why, "why", "", "one sentence for who has asked")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.decided(cmd.Context(), func(ctx context.Context, c *api.Client) (api.Approval, error) { return c.Refuse(ctx, args[0], want) })
	}
	return cmd
}

// decided decides, and shows what became of it. What was approved and did not come about is an error.
func (r *root) decided(ctx context.Context, decide func(context.Context, *api.Client) (api.Approval, error)) error {
	c := r.client()
	defer c.Close()
	a, err := decide(ctx, c)
	if err != nil {
		return err
	}
	if err := r.print(approvalOutput(a)); err != nil || a.State != api.ApprovalFailed {
		return err
	}
	return &api.Error{Code: api.CodeFailed, Message: "it was approved, and did not come about: " + a.Problem, Hint: a.Hint}
}

func (a approvalsOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"ID", "STATE", "WHAT", "BY", "ASKED", "WAITS", "DECIDED BY"}, none: "nothing waits for a second person"}
	for _, x := range a {
		waits := ""
		if x.Waits() {
			waits = "for " + span(x.Expires.Sub(now))
		}
		t.rows = append(t.rows, []string{x.ID, x.State, x.Text, x.By, ago(&x.Created, now), waits, x.DecidedBy})
	}
	t.write(w)
}

func (a approvalOutput) text(w io.Writer, now time.Time) {
	var f facts
	f.add("request", a.ID)
	f.add("state", a.State)
	f.add("what", a.By+" asks to "+a.Text)
	f.add("asked", ago(&a.Created, now)+", over a "+a.Via)
	if api.Approval(a).Waits() {
		f.add("waits", "for "+span(a.Expires.Sub(now)))
	}
	f.add("needed for", strings.Join(a.For, ", "))
	f.add("carried out", strings.TrimSpace(a.Method+" "+a.Path+" "+string(a.Request)))
	if a.Decided != nil {
		f.add("decided", ago(a.Decided, now)+" by "+a.DecidedBy+", over a "+a.DecidedVia)
	}
	f.add("why", a.Why)
	f.add("task", a.Task)
	f.add("problem", a.Problem)
	f.add("you", a.WhyNot)
	f.write(w)
}
