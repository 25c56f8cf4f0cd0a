package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

type scriptOutput struct {
	Script string `json:"script"`
	Target string `json:"target"`
}

func (o scriptOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "What %s holds is database %s.\n", o.Script, o.Target)
}

func (r *root) restoreScriptCommand() *cobra.Command {
	var to, target string
	cmd := &cobra.Command{
		Use:   "restore-script FILE --to SERVER --as NAME",
		Short: "Run a plain dump of another tool in a new database",
		Long: "Run a plain dump (pg_dump without a format) that was not made by fencepost in a new database, which gets its name when the\n" +
			"script came to its end: one that was cut leaves nothing. FILE is -, or left out, for standard input. No database that is there is\n" +
			"replaced, and commands of psql (\\!, \\copy, \\connect, …) are refused, since they could run programs here. Its SQL is run with the\n" +
			"rights of --to: a superuser's may run programs on the server, so that a script of strangers is for a role without such rights.\n" +
			"It needs no daemon, no group and no ledger; an archive (pg_dump -Fc) is for pg_restore.",
		Args: arguments(0, 1),
	}
	cmd.Flags().StringVar(&to, "to", "", "the server: file:PATH, env:NAME, or a connection without a password")
	cmd.Flags().StringVar(&target, "as", "", "name of the database to make")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case to == "":
			return &api.Error{Code: api.CodeUsage, Message: "which server?", Hint: "--to file:new.dsn, a file that holds postgres://postgres:PASSWORD@HOST/postgres"}
		case target == "":
			return &api.Error{Code: api.CodeUsage, Message: "which name does the new database get?", Hint: "--as NAME"}
		case len(args) == 0 || args[0] == "-":
			return r.restoreScript(cmd.Context(), to, target, "standard input", r.Stdin)
		}
		f, err := os.Open(args[0])
		if err != nil {
			return &api.Error{Code: api.CodeFailed, Message: err.Error(), Hint: "name the script, or - for standard input"}
		}
		defer f.Close()
		return r.restoreScript(cmd.Context(), to, target, args[0], f)
	}
	return cmd
}

func (r *root) restoreScript(ctx context.Context, to, target, name string, script io.Reader) error {
	if err := offline.RestoreScript(ctx, to, target, script); err != nil {
		return hinted(err)
	}
	return r.print(scriptOutput{Script: name, Target: target})
}
