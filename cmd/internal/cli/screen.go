package cli

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen is what text is written to, as wide as it is and with colours or without. Outputs get one as their io.Writer.
type screen struct {
	strings.Builder
	width   int // columns; 0: any number
	colours bool
}

// terminal tells how wide the terminal behind f is, and whether it wants colours: never when NO_COLOR is set, or where
// TERM is dumb. A file and a pipe have any width and no colours.
func terminal(f *os.File, getenv func(string) string) (width int, colours bool) {
	if !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	return width, getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// Colours, as terminals name them.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint is text in a colour where w has colours.
func paint(w io.Writer, colour, text string) string {
	if s, ok := w.(*screen); !ok || !s.colours || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// widthOf is how wide w is; 0: any width.
func widthOf(w io.Writer) int {
	if s, ok := w.(*screen); ok {
		return s.width
	}
	return 0
}

// colourOf is the colour of a word that says how something is; "" for words that do not.
func colourOf(cell string) string {
	word, _, _ := strings.Cut(cell, " ")
	switch word {
	case "good", "ready", "completed", "present", "held", "released", "well", "ok":
		return green
	case "failed", "overdue", "parked", "corrupt", "missing", "expired", "quarantined", "critical", "alarmed", "noquorum", "strange":
		return red
	case "suspected", "suspect", "interrupted", "reverted", "orphan", "warning", "warned", "paused", "fenced", "none", "away":
		return yellow
	}
	return ""
}

// narrowest is how far a column is cut when a table is wider than the screen.
const narrowest = 6

// fit gives the widths of columns between which there are two spaces: the widest give way first.
func fit(columns []int, width int) []int {
	total := 2 * (len(columns) - 1)
	for _, c := range columns {
		total += c
	}
	for ; width > 0 && total > width; total-- {
		widest := 0
		for i, c := range columns {
			if c > columns[widest] {
				widest = i
			}
		}
		if columns[widest] <= narrowest {
			break
		}
		columns[widest]--
	}
	return columns
}

// cell is text in exactly n columns.
func cell(text string, n int) string {
	have := utf8.RuneCountInString(text)
	if have <= n {
		return text + strings.Repeat(" ", n-have)
	}
	runes := []rune(text)
	return string(runes[:max(0, n-1)]) + "…"
}

// wrap breaks text at spaces into lines of at most width columns; width 0 is one line. A word that is longer stays whole.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case width > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
