package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// notifyOutput is what became of test messages.
type notifyOutput []api.NotifyResult

func (r *root) notifyCommand() *cobra.Command {
	test := &cobra.Command{
		Use:   "test [RECEIVER]",
		Short: "Send a test message to the web hooks and mail servers, or to one",
		Long: "Have the daemon of this machine send a test message to the receivers of its file and of the group's settings, or to the\n" +
			"one that is named, and say what became of each. It fails when one did not take it. The others of the group send theirs\n" +
			"from their own machines: test on each what firewalls may treat differently. Who is told of what, and when, is said by\n" +
			"settings of the kinds hook, mail, rule and heartbeat: fencepost setting set --help.",
		Args: arguments(0, 1),
	}
	test.RunE = func(cmd *cobra.Command, args []string) error {
		var want api.TestNotify
		if len(args) > 0 {
			want.Receiver = args[0]
		}
		c := r.client()
		defer c.Close()
		got, err := c.TestNotify(cmd.Context(), want)
		if err != nil {
			return err
		}
		if err := r.print(notifyOutput(got)); err != nil {
			return err
		}
		for _, x := range got {
			if x.Problem != "" {
				return &api.Error{Code: api.CodeFailed, Message: x.Receiver + ": " + x.Problem, Hint: "fencepost setting ls shows hooks and mails of the group; those of the node are in the section notify of its file"}
			}
		}
		return nil
	}
	return group("notify", "Messages about what needs a person", test)
}

func (n notifyOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"RECEIVER", "RESULT", "PROBLEM"}, none: "no receivers"}
	for _, x := range n {
		state := "ok"
		if x.Problem != "" {
			state = "failed"
		}
		t.rows = append(t.rows, []string{x.Receiver, state, x.Problem})
	}
	t.write(w)
}
