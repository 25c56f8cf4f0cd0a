package gmstest

import (
	"testing"

	"go.uber.org/goleak"
)

// Bubbles end only when all their goroutines have; this sees what is started outside of them.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
