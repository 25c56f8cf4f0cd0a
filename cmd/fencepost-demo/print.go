package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// printer writes for people: short lines, in columns.
type printer struct {
	w     io.Writer
	began time.Time
}

func newPrinter(w io.Writer) *printer { return &printer{w: w, began: time.Now()} }

func (p *printer) elapsed() time.Duration { return time.Since(p.began) }

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// step says what is up, and how long that took.
func (p *printer) step(began time.Time, format string, args ...any) {
	p.line("  %5.1f s  %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
}

// ok says that something held.
func (p *printer) ok(format string, args ...any) { p.line("  ok  %s", fmt.Sprintf(format, args...)) }

// fail says why there is no PASS.
func (p *printer) fail(err error) {
	p.line("\nFAIL after %.0f s", p.elapsed().Seconds())
	for text := range strings.Lines(err.Error()) {
		p.line("  %s", strings.TrimSuffix(text, "\n"))
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

// stored is "31 MB in far, 31 MB in near".
func stored(sizes map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		parts = append(parts, megabytes(sizes[name])+" in "+name)
	}
	return strings.Join(parts, ", ")
}

// since is the time from the kill, right-aligned: milliseconds while they say something, then seconds.
func since(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%8.1f ms", float64(d.Microseconds())/1000)
	default:
		return fmt.Sprintf("%8.1f s ", d.Seconds())
	}
}

// thousands writes a count with separators.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
