package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// progressBar is one line of a terminal that is drawn again and again. The zero columns draw nothing: there is no terminal.
type progressBar struct {
	w       io.Writer
	columns int
	drawn   bool
}

// draw shows how far a task is, in place of what was drawn before.
func (b *progressBar) draw(t api.Task) {
	line := barOf(t, b.columns)
	if line == "" {
		return
	}
	b.clear()
	fmt.Fprint(b.w, line)
	b.drawn = true
}

// clear takes the line away.
func (b *progressBar) clear() {
	if b.drawn {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.drawn = false
	}
}

// barWidth is that of the bar itself, at most.
const barWidth = 30

// barOf is the line for a task, shorter than columns so that no terminal breaks it; empty when there is nothing to show.
func barOf(t api.Task, columns int) string {
	p := t.Progress
	if columns < 20 || t.Final || p.Read == 0 {
		return ""
	}
	line := progress(t)
	if how := rate(p); how != "" {
		line += ", " + how
	}
	if p.Estimate > 0 {
		share := min(float64(p.Read)/float64(p.Estimate), 0.99) // the estimate may be too low, and the end is the task's
		full := int(share * barWidth)
		line = fmt.Sprintf("[%s%s] %2d%%  %s", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), int(100*share), line)
	}
	if most := columns - 1; len(line) > most {
		line = line[:most]
	}
	return line
}
