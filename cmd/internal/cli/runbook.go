package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/runbook"
)

// runbookOutput are pages for bad days: one as it is read, or the names of all.
type runbookOutput struct {
	Pages []runbookPage `json:"pages"`
}

type runbookPage struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Text  string `json:"text,omitempty"` // of one that was asked for
}

func (r *root) runbookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runbook [NAME]",
		Short: "Print what to do on a bad day",
		Long: "Print the page for a bad day: what you see, what it means, what to do, command by command, and what not to do. Without NAME\n" +
			"it lists the pages. It needs no daemon.",
		Args: arguments(0, 1),
	}
	for _, p := range runbook.Pages() {
		cmd.ValidArgs = append(cmd.ValidArgs, p.Name)
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var out runbookOutput
		if len(args) == 0 {
			for _, p := range runbook.Pages() {
				out.Pages = append(out.Pages, runbookPage{Name: p.Name, Title: p.Title})
			}
			return r.print(out)
		}
		p, ok := runbook.Find(args[0])
		if !ok {
			hint := "fencepost runbook lists them"
			if near := nearest(args[0], cmd.ValidArgs); near != "" {
				hint = "did you mean " + near + "? " + hint
			}
			return &api.Error{Code: api.CodeNotFound, Message: "there is no page " + args[0], Hint: hint}
		}
		out.Pages = []runbookPage{{p.Name, p.Title, p.Text}}
		return r.print(out)
	}
	return cmd
}

func (o runbookOutput) text(w io.Writer, _ time.Time) {
	if len(o.Pages) == 1 && o.Pages[0].Text != "" {
		fmt.Fprint(w, o.Pages[0].Text)
		return
	}
	t := table{heading: []string{"PAGE", "WHAT HAS HAPPENED"}}
	for _, p := range o.Pages {
		t.rows = append(t.rows, []string{p.Name, p.Title})
	}
	t.write(w)
}

// nearest is the name that somebody may have meant, by the measure that is used for commands; "" when there is none.
func nearest(name string, among []string) string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, n := range among {
		all.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	if list := all.SuggestionsFor(name); len(list) > 0 {
		return list[0]
	}
	return ""
}
