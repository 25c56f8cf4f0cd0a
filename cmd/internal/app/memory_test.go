package app

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMemoryLimit: a node has one, and the one of its environment goes first.
func TestMemoryLimit(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	t.Setenv("GOMEMLIMIT", "1GiB") // restores what there was
	debug.SetMemoryLimit(1 << 30)  // as the runtime does when it starts
	if limitMemory(); debug.SetMemoryLimit(-1) != 1<<30 {
		t.Errorf("GOMEMLIMIT is 1 GiB, the limit became %d", debug.SetMemoryLimit(-1))
	}
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	if limitMemory(); debug.SetMemoryLimit(-1) != memoryLimit {
		t.Errorf("the limit is %d, want %d", debug.SetMemoryLimit(-1), memoryLimit)
	}
}
