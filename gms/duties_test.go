package gms

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every duty is answered; that each test which an answer names is there is held by cmd/internal/arch.
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
}
