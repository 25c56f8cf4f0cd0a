package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// output is what a command found: JSON as it stands, and text for people.
type output interface {
	// text writes for people; now is what ages are counted to.
	text(w io.Writer, now time.Time)
}

// print writes an output in the chosen format.
func (r *root) print(out output) error {
	if r.format == "json" {
		e := json.NewEncoder(r.Stdout)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(out); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		return nil
	}
	b := &screen{width: r.Width, colours: r.Colours}
	out.text(b, r.Now())
	if _, err := io.WriteString(r.Stdout, b.String()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// live makes cmd show what is at a path of the API, once or with --watch again whenever
// it changes. view makes the command's output of it.
func live[T any](r *root, cmd *cobra.Command, path func(args []string) string, view func(T) output) *cobra.Command {
	watch := watchFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return show(cmd.Context(), r, *watch, path(args), view)
	}
	return cmd
}

func watchFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().BoolP("watch", "w", false, "show it again whenever it changes, until interrupted")
}

// show prints what is at path, once or watching.
func show[T any](ctx context.Context, r *root, watch bool, path string, view func(T) output) error {
	c := r.client()
	defer c.Close()
	if !watch {
		got, err := api.Get[T](ctx, c, path)
		if err != nil {
			return err
		}
		return r.print(view(got))
	}
	return r.watch(ctx, func(next func(output) bool) error {
		return api.Watch(ctx, c, path, func(got T) bool { return next(view(got)) })
	})
}

// watch prints all that source shows. To be interrupted is how a watch ends.
func (r *root) watch(ctx context.Context, source func(show func(output) bool) error) error {
	var failed error
	first := true
	err := source(func(out output) bool {
		if !first && r.format == "text" {
			fmt.Fprintf(r.Stdout, "\n%s\n", r.Now().UTC().Format(time.TimeOnly+"Z"))
		}
		first = false
		failed = r.print(out)
		return failed == nil
	})
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return errors.Join(err, failed)
}

// table is aligned columns with a heading; cells may be empty. On a screen that is too narrow the widest columns are cut.
type table struct {
	heading []string
	rows    [][]string
	none    string // said instead when there are no rows
}

func (t table) write(w io.Writer) {
	if len(t.rows) == 0 {
		fmt.Fprintln(w, t.none)
		return
	}
	widths := make([]int, len(t.heading))
	lines := slices.Concat([][]string{t.heading}, t.rows)
	for _, line := range lines {
		for i := range line {
			if line[i] = printable(line[i]); line[i] == "" && &line[0] != &t.heading[0] {
				line[i] = "-"
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i]))
		}
	}
	widths = fit(widths, widthOf(w))
	for n, line := range lines {
		var out strings.Builder
		for i, text := range line {
			shown, pad := cell(text, widths[i]), ""
			if i < len(line)-1 {
				pad = "  "
			}
			colour := colourOf(text)
			if n == 0 {
				colour = bold
			}
			bare := strings.TrimRight(shown, " ")
			out.WriteString(paint(w, colour, bare) + shown[len(bare):] + pad)
		}
		fmt.Fprintln(w, strings.TrimRight(out.String(), " "))
	}
}

// facts is a list of "name: value" of one thing; empty values are left out.
type facts [][2]string

func (f *facts) add(name, value string) {
	if value != "" {
		*f = append(*f, [2]string{name, value})
	}
}

func (f facts) write(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, fact := range f {
		fmt.Fprintf(tw, "%s:\t%s\n", fact[0], printable(fact[1]))
	}
	_ = tw.Flush() // w is a buffer
}

// printable keeps control characters of others away from the terminal.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, text)
}

// short is the part of a run id that tells runs apart in practice.
func short(run string) string { return run[:min(8, len(run))] }

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

func number[N int | int64 | uint64](n N) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// size is a number of bytes for people.
func size(bytes int64) string {
	const units = "KMGTPE"
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/1024, 0
	for value >= 1023.95 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}

// ago is a moment for people.
func ago(at *time.Time, now time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	if d := now.Sub(*at); d >= time.Second {
		return span(d) + " ago"
	}
	return "now" // or, by another machine's clock, in the future
}

// span is a length of time for people, in its largest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}
