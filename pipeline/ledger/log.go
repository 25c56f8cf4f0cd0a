package ledger

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Bounds of what is kept of a task's log: the newest lines.
const (
	MaxLines = 200      // lines
	MaxLine  = 500      // bytes of the text of one; longer ones are cut
	MaxLog   = 16 << 10 // bytes of all of them, as JSON
)

// Levels of a line.
const (
	LineInfo  = "info"
	LineWarn  = "warn"
	LineError = "error"
)

// LogLine is one thing that happened to a task, as people read it. It holds no secret.
type LogLine struct {
	At      time.Time `json:"at"` // by the clock of the node that tells
	Attempt int       `json:"attempt"`
	Token   uint64    `json:"token"` // under which it happened
	Node    string    `json:"node"`
	Level   string    `json:"level"` // info | warn | error
	Text    string    `json:"text"`
}

// Log is what is kept of a task's lines, in the order in which they were written.
type Log struct {
	Dropped int       `json:"dropped,omitempty"` // older lines that there is no room for any more
	Lines   []LogLine `json:"lines"`
}

// AfterLog decides AppendLog: what is kept when lines come. A line that is there already is not added again, so that a
// write whose answer was lost may be repeated.
func AfterLog(stored Log, lines []LogLine) Log {
	next := Log{Dropped: stored.Dropped, Lines: slices.Clone(stored.Lines)}
	for _, line := range lines {
		line = cleaned(line)
		if !slices.ContainsFunc(next.Lines, func(l LogLine) bool { return sameLine(l, line) }) {
			next.Lines = append(next.Lines, line)
		}
	}
	bytes, keep := 0, 0
	for _, line := range slices.Backward(next.Lines) {
		bytes += encodedSize(line)
		if bytes > MaxLog || keep == MaxLines {
			break
		}
		keep++
	}
	over := len(next.Lines) - keep
	next.Dropped += over
	next.Lines = next.Lines[over:]
	return next
}

func sameLine(a, b LogLine) bool {
	at := a.At.Equal(b.At)
	a.At, b.At = time.Time{}, time.Time{}
	return at && a == b
}

// cleaned is a line that takes one line on a terminal, within MaxLine.
func cleaned(l LogLine) LogLine {
	l.At = l.At.UTC().Round(time.Microsecond) // as every ledger keeps it
	l.Text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(l.Text, "\uFFFD"))
	l.Text = cut(l.Text, MaxLine)
	return l
}

// encodedSize is the length of a line as JSON, with what separates it from the next.
func encodedSize(l LogLine) int {
	data, err := json.Marshal(l)
	if err != nil { // a time beyond year 9999
		return MaxLog + 1
	}
	return len(data) + 1
}
