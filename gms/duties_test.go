package gms

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every duty is answered, and every test that an answer names is there.
func TestDutiesAreAnswered(t *testing.T) {
	text, err := os.ReadFile("duties.go")
	if err != nil {
		t.Fatal(err)
	}
	for prefix, n := range map[string]int{"R": 34, "W": 3, "M": 25, "L": 14} {
		for i := range n {
			line := regexp.MustCompile(fmt.Sprintf(`(?m)^//\t%s%d +\S.*$`, prefix, i+1)).FindString(string(text))
			if !strings.Contains(line, "Test") && !strings.Contains(line, "pinned") && !strings.Contains(line, "as M") {
				t.Errorf("%s%d is not answered: %q", prefix, i+1, line)
			}
		}
	}
	there := testsBelow(t, "..")
	for _, name := range regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(string(text), -1) {
		if !there[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

func testsBelow(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
