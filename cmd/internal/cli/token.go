package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// tokensOutput is a list of tokens.
type tokensOutput []api.Token

// newTokenOutput is a token with its secret.
type newTokenOutput api.NewToken

func (r *root) tokenCommand() *cobra.Command {
	ls := live(r, &cobra.Command{Use: "ls", Short: "List tokens: your own, as an admin all", Args: arguments(0, 0)},
		func([]string) string { return api.PathTokens }, func(t []api.Token) output { return tokensOutput(t) })
	rm := &cobra.Command{Use: "rm ID", Short: "End a token", Example: "  fencepost token rm 3f9c21d07a44", Args: arguments(1, 1)}
	rm.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		ended, err := c.RemoveToken(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return r.print(endedOutput{ended, "Token"})
	}
	return group("token", "Let programs act for a user", ls, r.tokenCreateCommand(), rm)
}

func (r *root) tokenCreateCommand() *cobra.Command {
	var want api.AddToken
	var role string
	var expires time.Duration
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a token, and show its secret this once",
		Long: "Make a token, and show its secret this once. NAME says what it is for. It may what its role may, and never more than\n" +
			"its user may at that moment; it ends at its time, with its user, and by fencepost token rm.",
		Example: "  fencepost token create ci --user ann --role operator --expires 720h -o json",
		Args:    arguments(1, 1),
	}
	cmd.Flags().StringVar(&want.User, "user", "", "whose it is (default: yours; over the socket it must be said)")
	cmd.Flags().StringVar(&role, "role", string(api.RoleViewer), "viewer, operator or admin")
	cmd.Flags().BoolVar(&want.Approves, "approves", false, "it may be the second person of an approval; you can only make one of your own, and on the page first")
	cmd.Flags().DurationVar(&expires, "expires", 90*24*time.Hour, "how long it lasts")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !api.Role(role).Known() {
			return &api.Error{Code: api.CodeUsage, Message: "--role: want viewer, operator or admin"}
		}
		if expires <= 0 {
			return &api.Error{Code: api.CodeUsage, Message: "--expires: want more than nothing"}
		}
		want.Name, want.Role, want.ExpiresMS = args[0], api.Role(role), expires.Milliseconds()
		c := r.client()
		defer c.Close()
		made, err := c.AddToken(cmd.Context(), want)
		if err != nil {
			return err
		}
		return r.print(newTokenOutput(made))
	}
	return cmd
}

func (t newTokenOutput) text(w io.Writer, now time.Time) {
	fmt.Fprintf(w, "%s\n", printable(t.Secret))
	fmt.Fprintf(w, "This is the token %s of %s, as %s, for %s. It is shown this once: keep it in a file that only you can read.\n",
		printable(t.ID), printable(t.User), printable(string(t.Role)), span(t.Expires.Sub(now)))
}

func (t tokensOutput) text(w io.Writer, now time.Time) {
	out := table{heading: []string{"TOKEN", "NAME", "USER", "ROLE", "EXPIRES", "LAST USED", "MADE", "BY"}, none: "no tokens"}
	for _, x := range t {
		out.rows = append(out.rows, []string{x.ID, x.Name, x.User, string(x.Role), "in " + span(x.Expires.Sub(now)), ago(x.LastUsed, now), ago(&x.Created, now), x.By})
	}
	out.write(w)
}
