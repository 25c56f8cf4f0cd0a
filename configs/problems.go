package configs

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong: where, and in words what is there, what would be
// right, and what to do. Text never holds a secret.
type Problem struct {
	Path string // dotted path of the key (databases[0].dsn), or the name of a variable
	Text string
}

// String is one line.
func (p Problem) String() string { return p.Path + ": " + p.Text }

// Error is all that is wrong with a configuration.
type Error struct {
	File     string // empty when it did not come from a file
	Problems []Problem
}

// Error is one line per problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
		if e.File != "" {
			lines[i] = e.File + ": " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// problems collects.
type problems []Problem

func (ps *problems) add(path, format string, args ...any) {
	*ps = append(*ps, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// err is nil when nothing was collected.
func (ps problems) err(file string) error {
	if len(ps) == 0 {
		return nil
	}
	return &Error{File: file, Problems: ps}
}
