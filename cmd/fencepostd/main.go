// Command fencepostd runs one node of a fencepost group: it joins, watches the others, makes and restores the backups that
// it claims, and recovers those of nodes that die.
//
// Usage:
//
//	fencepostd --config FILE
//
// The configuration is explained in configs/node.example.yaml; `fencepost init` writes one per node. The first SIGINT or
// SIGTERM stops the node in order (running tasks get stop.grace, then they are reverted and planned again); a second one
// ends it at once, and the others recover its work. Exit codes: 0 stopped as asked, 1 failed, 2 usage or configuration.
package main

import (
	"os"

	"github.com/fencepost/fencepost/cmd/internal/app"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(app.Main(os.Args[1:], version, os.Stdout, os.Stderr)) }
