package app

import (
	"os"
	"runtime/debug"
)

// memoryLimit is what the runtime of a node keeps to while it can: it collects sooner as it comes near. Buffers are fixed, so
// that a node stays far below it, whatever the size of a database; a burst of garbage does not push it above.
const memoryLimit = 96 << 20

// limitMemory sets the limit, unless whoever starts the process has set another one in GOMEMLIMIT.
func limitMemory() {
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
}
