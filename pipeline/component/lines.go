package component

import (
	"log/slog"
	"strings"
	"sync"
	"unicode"
)

const (
	maxLine   = 1024
	keptLines = 10
)

// lines takes what a child process prints: each line is logged, the last ones are kept, of however many come.
type lines struct {
	log  *slog.Logger
	mu   sync.Mutex
	line []byte
	last []string
}

// Write implements io.Writer. It never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range p {
		if b == '\n' {
			l.take()
		} else if len(l.line) < maxLine {
			l.line = append(l.line, b)
		}
	}
	return len(p), nil
}

func (l *lines) take() {
	line := printable(l.line)
	l.line = l.line[:0]
	if line == "" {
		return
	}
	l.log.Info("worker prints", "line", line)
	if l.last = append(l.last, line); len(l.last) > keptLines {
		l.last = l.last[1:]
	}
}

// text returns the last lines in one.
func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take()
	return strings.Join(l.last, " | ")
}

// printable keeps terminals and logs safe from what a program says.
func printable(line []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(line), "?")))
}
