//go:build chaos

package app

import (
	"os"
	"strings"
	"time"
)

// wall is this node's clock in programs that package chaos builds: off by as much as the file says that CHAOS_CLOCK names, as
// "-1h"; right while there is no such file.
func wall() time.Time {
	now := time.Now()
	text, err := os.ReadFile(os.Getenv("CHAOS_CLOCK"))
	if err != nil {
		return now
	}
	off, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil {
		return now
	}
	return now.Add(off)
}
