package source

import (
	"regexp"
	"slices"
	"strings"
)

// Names of the parts of a dump whose rows are divided among several streams, all of one snapshot: the definitions
// before the rows, the rows in PartData and its further streams (data-2, data-3, …), the definitions after the rows.
const (
	PartPre  = "pre-data"
	PartPost = "post-data"
)

// MaxStreams bounds how many streams the rows of one dump are divided among.
const MaxStreams = 32

var furtherStream = regexp.MustCompile(`^data-([2-9]|[1-9][0-9])$`)

// IsStream tells whether a part holds rows: PartData or a further stream of it.
func IsStream(part string) bool { return part == PartData || furtherStream.MatchString(part) }

// Stages puts parts into the order in which they are restored. Parts of one stage may be read (and were written) at the
// same time; a stage begins when the one before it is whole. It is pure and does not look whether parts are missing.
func Stages(parts []string) [][]string {
	var pre, rows, post, last []string
	for _, part := range parts {
		switch {
		case part == PartPre:
			pre = append(pre, part)
		case IsStream(part):
			rows = append(rows, part)
		case part == PartPost:
			post = append(post, part)
		default:
			last = append(last, part)
		}
	}
	slices.SortFunc(rows, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b) // data, data-2, …, data-10
		}
		return strings.Compare(a, b)
	})
	var out [][]string
	single := func(parts []string) {
		for _, part := range parts {
			out = append(out, []string{part})
		}
	}
	single(pre)
	if len(rows) > 0 {
		out = append(out, rows)
	}
	single(post)
	single(last)
	return out
}
