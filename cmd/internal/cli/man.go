package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manOutput are the pages that were written.
type manOutput []string

func (r *root) manCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of this command",
		Long:  "Write a manual page for each command into an existing directory: fencepost.1, fencepost-backup-create.1 and so on.",
		Args:  arguments(1, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var pages manOutput
		for _, c := range family(cmd.Root()) {
			path := filepath.Join(args[0], pageName(c)+".1")
			if err := os.WriteFile(path, []byte(page(c, r.Version)), 0o644); err != nil {
				return fmt.Errorf("write a manual page: %w", err)
			}
			pages = append(pages, path)
		}
		return r.print(pages)
	}
	return cmd
}

func (m manOutput) text(w io.Writer, _ time.Time) { fmt.Fprintf(w, "%d manual pages\n", len(m)) }

// family is a command and all below it that people use.
func family(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			list = append(list, family(below)...)
		}
	}
	return list
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// roff is text in which nothing is a command of the formatter.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// page is the manual page of one command.
func page(cmd *cobra.Command, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"fencepost\"\n", strings.ToUpper(pageName(cmd)), "fencepost "+version)
	section := func(title string) { fmt.Fprintf(&b, ".SH %s\n", title) }
	verbatim := func(text string) { fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(text)) }
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", roff(pageName(cmd)), roff(cmd.Short))
	section("SYNOPSIS")
	verbatim(cmd.UseLine())
	if cmd.Long != "" {
		section("DESCRIPTION")
		long, _, _ := strings.Cut(cmd.Long, exitCodes)
		verbatim(strings.TrimSpace(long))
	}
	if below := cmd.Commands(); len(below) > 0 {
		section("COMMANDS")
		for _, c := range below {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(pageName(c)), roff(c.Short))
			}
		}
	}
	section("OPTIONS")
	each := func(f *pflag.Flag) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fR %s\n%s\n", roff(name), roff(kind), roff(usage))
	}
	cmd.NonInheritedFlags().VisitAll(each)
	cmd.InheritedFlags().VisitAll(each)
	if cmd.Example != "" {
		section("EXAMPLES")
		verbatim(cmd.Example)
	}
	section("EXIT STATUS")
	verbatim(strings.TrimPrefix(exitCodes, "Exit codes:\n"))
	if parent := cmd.Parent(); parent != nil {
		section("SEE ALSO")
		fmt.Fprintf(&b, ".BR %s (1)\n", roff(pageName(parent)))
	}
	return b.String()
}
