// Command fencepost looks at a fencepost group and asks it for backups and restores.
//
// It talks to the daemon of this machine over a unix socket, so the user who may use the
// socket may use the command. `fencepost --help` lists its commands and exit codes; all of
// it is in package cli, this page only joins it with the process: arguments, signals,
// exit code. The first interrupt ends what is being waited for, a second one the process.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/fencepost/fencepost/cmd/internal/cli"
)

// version is set by the linker.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Main(ctx, os.Args[1:], cli.System(known())))
}

// known is what the linker was told, else what the go command wrote into the program.
func known() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
