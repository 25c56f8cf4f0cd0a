package configs

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unicode"
)

// FuzzLoad: whatever stands in a file, loading ends with a valid configuration, or with
// an *Error of one line per problem.
func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile("node.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		string(example), "a", "- a", "node: !!binary a", "raft: &a {voters: *a}", "raft.voters: 5\nnode: n1",
		"? [a]\n: b", "1: 2\ntrue: false\nnull: x\nnode: n1", "node: n1\ndatabases: [[x]]\nraft: [x]\nstop: x",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := LoadWith(writeFile(t, text), nil)
		if err == nil {
			err = c.Validate()
		} else {
			var invalid *Error
			if errors.As(err, &invalid) {
				lines(t, err)
				err = nil
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzSecret: what stands as a dsn, however wrong, is not repeated.
func FuzzSecret(f *testing.F) {
	for _, around := range [][2]string{
		{"postgres://u:", "%@h/d"}, {"*", ""}, {"&", " x"}, {"!!binary ", ""}, {"{x: ", "}"}, {"'", ""}, {"`", ""},
		{"host=h password='", ""}, {"env:", "/x"}, {"@", ": y"}, {"", ": y"},
	} {
		f.Add(around[0], around[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "hunter2"
		dsn := before + secret + after
		if strings.ContainsFunc(dsn, func(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Z, c) && c != ' ' }) {
			return // another line: not a dsn any more
		}
		kind, _ := NewDSN(strings.TrimSpace(strings.Trim(dsn, `"' `))).reference()
		if kind != "" {
			return // the name of a variable or file is no secret
		}
		c, err := LoadWith(writeFile(t, "node: n1\ndatabases:\n  - name: a\n    dsn: "+dsn+"\n"), nil)
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Fatalf("repeated: %v", err)
		}
		if err == nil && strings.Contains(c.Databases[0].DSN.String(), secret) && strings.Contains(dsn, "password="+secret) {
			t.Fatalf("shown: %s", c.Databases[0].DSN)
		}
	})
}
