package runbook

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPagesAreWhole: each page says what a tired reader wants to know, in that order, on one screen or two.
func TestPagesAreWhole(t *testing.T) {
	for _, p := range Pages() {
		at := 0
		for _, want := range []string{p.Title, "\nYou see: ", "\nIt means: ", "\nDo this", "\nAfterwards: ", "\nDo not: "} {
			i := strings.Index(p.Text[at:], want)
			if i < 0 && want != "\nAfterwards: " {
				t.Errorf("%s: no %q after what comes before it", p.Name, want)
				continue
			}
			at += max(i, 0)
		}
		if strings.HasSuffix(p.Title, ".") || p.Title == "" || len(p.Steps) == 0 || strings.Count(p.Text, "\n") > 60 {
			t.Errorf("%s: title %q, %d commands, %d lines", p.Name, p.Title, len(p.Steps), strings.Count(p.Text, "\n"))
		}
		for line := range strings.Lines(p.Text) {
			if len([]rune(line)) > 132 {
				t.Errorf("%s: a line is too long to read: %s", p.Name, line)
			}
		}
		for _, m := range regexp.MustCompile(`\((?:page|see) ([a-z-]+)\)|see ([a-z]+-[a-z-]+)|and see ([a-z-]+)`).FindAllStringSubmatch(p.Text, -1) {
			name := m[1] + m[2] + m[3]
			if _, ok := Find(name); !ok {
				t.Errorf("%s names the page %s, which is none", p.Name, name)
			}
		}
	}
	if _, ok := Find("nothing"); ok {
		t.Error("there is a page of another name")
	}
}

// TestReadOfAPage: commands, what they answer, and their exit codes.
func TestReadOfAPage(t *testing.T) {
	p := read("day_some_day.go", "// # A day\n//\n// You see: it.\n//\n//\tn1$ fencepost status\n//\t… n1 …\n//\tready\n//\tca$ false\n//\t(exit 1)\n//\n// Words.\npackage runbook\n")
	got := fmt.Sprintf("%s|%s|%+v", p.Name, p.Title, p.Steps)
	if want := "some-day|A day|[{Machine:n1 Command:fencepost status Says:[… n1 … ready] Code:0} {Machine:ca Command:false Says:[] Code:1}]"; got != want {
		t.Errorf("%s\n%s", got, want)
	}
	if !strings.HasPrefix(p.Text, "A day\n\nYou see: it.\n\n    n1$ fencepost status\n") {
		t.Errorf("%q", p.Text)
	}
}

// TestEveryPageIsFollowed: for each page there is a test that brings the day about and does what the page says.
func TestEveryPageIsFollowed(t *testing.T) {
	tests, err := filepath.Glob("../e2e/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var followed []string
	for _, file := range tests {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\.follow\("([a-z-]+)"`).FindAllStringSubmatch(string(text), -1) {
			followed = append(followed, m[1])
		}
	}
	for _, p := range Pages() {
		if !slices.Contains(followed, p.Name) {
			t.Errorf("no test of package e2e follows the page %s", p.Name)
		}
	}
	for _, name := range followed {
		if _, ok := Find(name); !ok {
			t.Errorf("a test of package e2e follows the page %s, which is none", name)
		}
	}
}

// TestReadmeListsThePages: the table of bad days has a row for each page, and each of its rows names one.
func TestReadmeListsThePages(t *testing.T) {
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Bad days\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []string
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 || strings.Contains(line, "---") || strings.Contains(line, "what happened") {
			continue
		}
		name := strings.Trim(cells[2], "` ")
		p, ok := Find(name)
		if !ok {
			t.Errorf("README.md: there is no page %q", name)
			continue
		}
		rows = append(rows, name)
		command := regexp.MustCompile("`([^`]+)`").FindStringSubmatch(cells[1])
		if command == nil || !strings.Contains(strings.ReplaceAll(p.Text, "\n", " "), strings.Fields(command[1])[0]) {
			t.Errorf("README.md: the row of %s has no command of its page: %s", name, cells[1])
		}
	}
	for _, p := range Pages() {
		if !slices.Contains(rows, p.Name) {
			t.Errorf("README.md does not list the page %s", p.Name)
		}
	}
}
