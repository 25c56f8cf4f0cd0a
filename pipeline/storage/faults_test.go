package storage

import (
	"fmt"
	"os"
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

// Every fault of the table has its test; that each test is there is held by cmd/internal/arch.
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
}
