package storage

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// answered are the faults of the table.
func answered() (names []string) {
	for _, n := range []int{2, 8, 9, 12, 13, 42, 43, 62, 63, 75, 76, 77, 78, 79, 80, 83, 85, 87, 88, 89, 90, 91, 92, 93, 94, 95, 97, 98} {
		names = append(names, fmt.Sprintf("B%d", n))
	}
	for n := range 11 {
		names = append(names, fmt.Sprintf("C%d", n+1))
	}
	for n := range 13 {
		names = append(names, fmt.Sprintf("D%d", n+1))
	}
	return names
}

// Every fault of the table has its test, and every test that the table names is there.
func TestFaultsOfStoragesAreAnswered(t *testing.T) {
	text, err := os.ReadFile("faults.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range answered() {
		line := regexp.MustCompile(`(?m)^//\t` + name + ` +\S.*$`).FindString(string(text))
		if !strings.Contains(line, "Test") {
			t.Errorf("fault %s names no test: %q", name, line)
		}
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(filepath.Join("..", ".."), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1) {
		if !there[name] {
			t.Errorf("there is no %s", name)
		}
	}
}
