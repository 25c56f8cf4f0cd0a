//go:build chaos

package consensus

import (
	"os"
	"strings"
	"time"
)

// burden makes a write to the log as slow as the file says that CHAOS_DISK names, as "50ms"; a file that is not there says
// nothing.
func burden() {
	text, err := os.ReadFile(os.Getenv("CHAOS_DISK"))
	if err != nil {
		return
	}
	if d, err := time.ParseDuration(strings.TrimSpace(string(text))); err == nil {
		time.Sleep(d)
	}
}
