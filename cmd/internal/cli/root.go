package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

// Env is the world as a command sees it.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
	Interactive    bool   // a person answers at Stdin
	Width          int    // columns of the terminal behind Stdout; 0: it is none
	Colours        bool   // that terminal shows colours, and may
	Version        string // of the program
	Columns        int    // of the terminal at Stderr; 0: there is none
}

// System is the real world.
func System(version string) Env {
	in, err := os.Stdin.Stat()
	columns := 0
	if fd := int(os.Stderr.Fd()); term.IsTerminal(fd) {
		if width, _, err := term.GetSize(fd); err == nil {
			columns = width
		}
	}
	null, nullErr := os.Stat(os.DevNull) // a character device, but nobody types there
	width, colours := terminal(os.Stdout, os.Getenv)
	return Env{
		Width: width, Colours: colours,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Now: time.Now, Version: version, Columns: columns,
		Interactive: err == nil && in.Mode()&os.ModeCharDevice != 0 && (nullErr != nil || !os.SameFile(in, null)),
	}
}

// root is what all commands share: the world, and the flags that each of them has.
type root struct {
	Env
	socket string
	remote remote
	format string
	begun  bool // flags and arguments were understood
}

const exitCodes = `Exit codes:
  0  ok
  1  failed
  2  usage: the command line or the request makes no sense
  3  busy: somebody else is at it, try again later
  4  lease lost: the node may not act now
  5  not proven stopped: the former owner may still act
  6  needs operator: goes no further without a decision`

// Main runs one command line and returns the exit code. It blocks until the command is
// done or ctx ends.
func Main(ctx context.Context, args []string, env Env) int {
	r := &root{Env: env}
	cmd := r.command()
	cmd.SetArgs(args)
	called, err := cmd.ExecuteContextC(ctx)
	if err == nil {
		return api.ExitOK
	}
	var e *api.Error
	if !r.begun && !errors.As(err, &e) {
		err = usage(called, err)
	}
	r.report(err)
	var with exitError
	if errors.As(err, &with) {
		return with.code
	}
	return api.ExitCode(err)
}

// exitError is an error of a command whose exit codes are its own.
type exitError struct {
	error
	code int
}

func (e exitError) Unwrap() error { return e.error }

func (r *root) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "fencepost",
		Short:         "Look at a fencepost group, and ask it for backups and restores",
		Long:          "Look at a fencepost group, and ask it for backups and restores.",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if r.format != "text" && r.format != "json" {
				return fmt.Errorf("-o %s: want text or json", r.format)
			}
			r.begun = true
			return r.findServer()
		},
	}
	cmd.SetUsageTemplate(cmd.UsageTemplate() + "\n" + exitCodes + "\n")
	cmd.SetOut(r.Stdout)
	cmd.SetErr(r.Stderr)
	cmd.SetIn(r.Stdin)
	cmd.PersistentFlags().StringVarP(&r.format, "output", "o", "text", "text or json")
	cmd.PersistentFlags().StringVar(&r.socket, "socket", "", "admin socket of the daemon (default $FENCEPOST_SOCKET, else "+configs.Default().Admin.Socket+")")
	r.remoteFlags(cmd)
	cmd.AddCommand(
		r.initCommand(), r.certsCommand(), r.statusCommand(), r.doctorCommand(), r.membersCommand(), r.viewCommand(), r.fencesCommand(), r.fenceCommand(), r.recoveriesCommand(), r.nodeCommand(), r.groupCommand(), r.ledgerCommand(), r.upgradeCommand(),
		r.tasksCommand(), r.backupCommand(), r.restoreCommand(), r.restoreScriptCommand(), r.undoCommand(), r.verifyCommand(), r.scheduleCommand(), r.pruneCommand(), r.applyCommand(), r.exportCommand(), r.settingCommand(), r.serverCommand(), r.databaseCommand(),
		r.componentCommand(), r.itemCommand(), r.eventCommand(), r.claimCommand(), r.cancelCommand(), r.storageCommand(), r.catalogCommand(), r.envCommand(), r.keyringCommand(), r.kitCommand(), r.globalsCommand(), r.runbookCommand(), r.usageCommand(), r.notifyCommand(), r.reloadCommand(), r.completionCommand(), r.manCommand(), r.versionCommand(),
		r.userCommand(), r.tokenCommand(), r.auditCommand(), r.approvalCommand(),
	)
	cmd.CompletionOptions.DisableDefaultCmd = true
	finish(cmd)
	r.offer(cmd)
	return cmd
}

// usage is err as an error in the command line, in one sentence.
func usage(called *cobra.Command, err error) error {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	message, _, _ := strings.Cut(lines[0], ": strconv.") // how a number was read is no news
	if before, _, bad := strings.Cut(message, ": time: "); bad {
		message = before + ": want a duration with its unit, such as 30s, 15m or 72h"
	}
	hint := "usage: " + called.UseLine()
	if len(lines) > 1 { // a list of near commands follows
		hint = "did you mean " + strings.TrimSpace(lines[len(lines)-1]) + "?"
	} else if called == called.Root() {
		hint = "fencepost --help lists the commands"
	}
	return &api.Error{Code: api.CodeUsage, Message: message, Hint: hint}
}

// arguments checks how many there are.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		name := strings.TrimPrefix(cmd.CommandPath(), "fencepost ")
		switch n := len(args); {
		case n < least:
			return fmt.Errorf("%s needs an argument", name)
		case n > most:
			return fmt.Errorf("%s: unexpected argument %q", name, args[most])
		}
		return nil
	}
}

// report writes err for people.
func (r *root) report(err error) {
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintf(r.Stderr, "fencepost: %s\n", printable(line))
	}
	var e *api.Error
	var own interface{ Hint() string }
	switch {
	case errors.As(err, &e) && e.Hint != "":
		fmt.Fprintf(r.Stderr, "hint: %s\n", printable(e.Hint))
	case errors.As(err, &own) && own.Hint() != "":
		fmt.Fprintf(r.Stderr, "hint: %s\n", printable(own.Hint()))
	}
}

// group is a command that only has others below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, SuggestionsMinimumDistance: 2}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			e := &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("%s has no command %q", use, args[0]), Hint: "see fencepost " + use + " --help"}
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				e.Hint = "did you mean " + use + " " + near[0] + "?"
			}
			return e
		}
		return &api.Error{Code: api.CodeUsage, Message: use + " needs a command after it", Hint: "see fencepost " + use + " --help"}
	}
	cmd.AddCommand(below...)
	return cmd
}
