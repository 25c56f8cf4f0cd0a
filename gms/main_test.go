package gms

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or a node when a test has started this program as one.
func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		os.Exit(runProcess())
	}
	goleak.VerifyTestMain(m)
}
