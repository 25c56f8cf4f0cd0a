package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// usersOutput is a list of users.
type usersOutput []api.User

// endedOutput says what there is no more.
type endedOutput struct {
	api.Ended
	what string
}

func (r *root) userCommand() *cobra.Command {
	ls := live(r, &cobra.Command{Use: "ls", Short: "List who may log in", Args: arguments(0, 0)},
		func([]string) string { return api.PathUsers }, func(u []api.User) output { return usersOutput(u) })
	return group("user", "Say who may log in, and what they may do", ls, r.userAddCommand(), r.userSetCommand(), r.userPasswordCommand(), r.userRemoveCommand())
}

func (r *root) userAddCommand() *cobra.Command {
	var role, file string
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Let somebody log in",
		Long: "Let somebody log in, on all nodes of the group. The first user is added at a node itself, over its socket: there is no\n" +
			"password before that. A viewer looks; an operator makes, restores and deletes backups; an admin decides about nodes,\n" +
			"fences, keys, users, and reads the audit trail.",
		Example: "  fencepost user add ann --role admin\n  fencepost user add ci --role operator --password-file /run/secrets/ci",
		Args:    arguments(1, 1),
	}
	cmd.Flags().StringVar(&role, "role", "", "viewer, operator or admin (required)")
	cmd.Flags().StringVar(&file, "password-file", "", "file whose first line is the password, at least 12 bytes (default: it is asked for)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !api.Role(role).Known() {
			return &api.Error{Code: api.CodeUsage, Message: "--role: want viewer, operator or admin"}
		}
		password, err := r.password(file)
		if err != nil {
			return err
		}
		c := r.client()
		defer c.Close()
		u, err := c.AddUser(cmd.Context(), api.AddUser{Name: args[0], Role: api.Role(role), Password: api.Secret(password)})
		if err != nil {
			return err
		}
		return r.print(usersOutput{u})
	}
	return cmd
}

func (r *root) userSetCommand() *cobra.Command {
	var role string
	var disable, enable, unlock, logOut bool
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change what somebody may do",
		Long: "Change what somebody may do. Another role and disabling end their sessions at once, and their tokens may no more than\n" +
			"they themselves. --unlock forgets wrong passwords.",
		Example: "  fencepost user set ann --role viewer\n  fencepost user set ann --disable",
		Args:    arguments(1, 1),
	}
	cmd.Flags().StringVar(&role, "role", "", "viewer, operator or admin")
	cmd.Flags().BoolVar(&disable, "disable", false, "let them not log in, and end what they have open")
	cmd.Flags().BoolVar(&enable, "enable", false, "let them log in again")
	cmd.Flags().BoolVar(&unlock, "unlock", false, "forget wrong passwords")
	cmd.Flags().BoolVar(&logOut, "log-out", false, "end their sessions")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		want := api.SetUser{Unlock: unlock, LogOut: logOut}
		if role != "" {
			if !api.Role(role).Known() {
				return &api.Error{Code: api.CodeUsage, Message: "--role: want viewer, operator or admin"}
			}
			chosen := api.Role(role)
			want.Role = &chosen
		}
		switch {
		case disable && enable:
			return &api.Error{Code: api.CodeUsage, Message: "--disable and --enable: give one"}
		case disable, enable:
			want.Disabled = &disable
		}
		return r.setUser(cmd, args[0], want)
	}
	return cmd
}

func (r *root) userPasswordCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "password NAME", Short: "Give somebody another password, and end their sessions",
		Example: "  fencepost user password ann", Args: arguments(1, 1),
	}
	cmd.Flags().StringVar(&file, "password-file", "", "file whose first line is the password, at least 12 bytes (default: it is asked for)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		password, err := r.password(file)
		if err != nil {
			return err
		}
		secret := api.Secret(password)
		return r.setUser(cmd, args[0], api.SetUser{Password: &secret})
	}
	return cmd
}

func (r *root) setUser(cmd *cobra.Command, name string, want api.SetUser) error {
	c := r.client()
	defer c.Close()
	u, err := c.SetUser(cmd.Context(), name, want)
	if err != nil {
		return err
	}
	return r.print(usersOutput{u})
}

func (r *root) userRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "rm NAME", Short: "Remove somebody, with their sessions and tokens", Example: "  fencepost user rm ann", Args: arguments(1, 1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		ended, err := c.RemoveUser(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return r.print(endedOutput{ended, "User"})
	}
	return cmd
}

// password reads a new password: from a file, or from a person, who types it twice. It is not shown.
func (r *root) password(file string) (string, error) {
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		defer f.Close()
		return firstLine(bufio.NewReader(f))
	}
	if !r.Interactive {
		return "", &api.Error{Code: api.CodeUsage, Message: "a user has a password, and nobody can be asked here", Hint: "name a file by --password-file"}
	}
	typed := bufio.NewReader(r.Stdin)
	text, err := r.ask(typed, "New password: ")
	if err != nil {
		return "", err
	}
	again, err := r.ask(typed, "The same again: ")
	if err == nil && again != text {
		err = &api.Error{Code: api.CodeUsage, Message: "the two passwords differ: nothing was done"}
	}
	return text, err
}

func (u usersOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"USER", "ROLE", "STATE", "SESSIONS", "LAST LOG-IN", "ADDED", "BY"}, none: "no users: fencepost user add NAME --role admin makes the first"}
	for _, x := range u {
		state := "ok"
		switch {
		case x.Disabled:
			state = "disabled"
		case x.LockedUntil != nil && x.LockedUntil.After(now):
			state = "locked for " + span(x.LockedUntil.Sub(now))
		}
		t.rows = append(t.rows, []string{x.Name, string(x.Role), state, number(x.Sessions), ago(x.LastLogIn, now), ago(&x.Created, now), x.By})
	}
	t.write(w)
}

func (e endedOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "%s %s is no more.\n", e.what, printable(e.Name))
}
