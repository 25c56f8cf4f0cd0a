// Command fencepostd runs one node of a fencepost group: it joins, watches the others, makes and restores the backups that
// it claims, and recovers those of nodes that die.
//
// Usage:
//
//	fencepostd --config FILE [--no-warden] [--check-config | --print-config]
//	fencepostd recover {--home DIR | --config FILE} [--dead NODE,NODE]
//	fencepostd home reset {--home DIR | --config FILE}
//
// It runs as two processes: the warden, which only watches, and below it the node, which it starts again when it dies. What
// the node started is dead before the next node starts. --no-warden runs the node alone. --check
// starts nothing: it looks whether the configuration is right, and its certificates and keys.
//
// The other two work on the home of a node that does not run. recover shows what a home holds of its group, and when all other
// nodes are named, and gone for good, has its node go on alone; home reset has a node come back as a newcomer. Exit codes: 0
// done, 1 refused, 2 usage, 3 the node runs.
//
// The configuration is explained in configs/node.example.yaml; `fencepost init` writes one per node. The first SIGINT or
// SIGTERM stops the node in order (running tasks get stop.grace, then they are reverted and planned again); a second one
// ends it at once, and the others recover its work. Exit codes: 0 stopped as asked, 1 failed, 2 usage or configuration,
// 5 a process of the dead node cannot be ended, 6 the node dies again and again: see `fencepost env evidence`.
//
// A node keeps to 96 MiB of memory while it can, apart from its children; GOMEMLIMIT in its environment sets another limit.
package main

import (
	"os"

	"github.com/fencepost/fencepost/cmd/internal/app"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(app.Main(os.Args[1:], version, os.Stdout, os.Stderr)) }
