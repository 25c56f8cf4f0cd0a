// Command fencepost-demo shows a node die in the middle of a backup and the backup complete on another one. It is what
// `make demo` runs.
//
// Usage:
//
//	fencepost-demo [-keep] [-v] [-daemon FILE]
//
// It starts a private PostgreSQL with a sample database, three nodes as processes of their own and a rate-limited backup
// into two storages. While the backup uploads it kills the node that makes it, with all its children, and starts it
// again at once. Then it prints what happened, timed from the kill by what the nodes themselves have logged, and checks
// it: one completed backup in the ledger, one valid manifest in each storage, a restored copy that equals the original,
// nothing left over. All of it lives in one folder of the system's temporary directory and goes when the command ends,
// also by Ctrl-C; with -keep it stays until Ctrl-C, to be looked at.
//
// Exit codes: 0 all held (PASS), 1 something differed or did not work (FAIL), 2 usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// limit bounds the whole demo (the look around with -keep excluded); it takes about a minute on two cores.
const limit = 6 * time.Minute

func main() {
	runtime.LockOSThread() // a node dies with the thread that started it, and this one lives as long as the process
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("fencepost-demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o := options{size: full()}
	flags.StringVar(&o.daemon, "daemon", beside("fencepostd"), "the daemon's program `file`")
	flags.BoolVar(&o.keep, "keep", false, "leave everything up until Ctrl-C and print how to look at it")
	flags.BoolVar(&o.verbose, "v", false, "show the nodes' logs")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		if err == nil {
			fmt.Fprintln(stderr, "fencepost-demo: it takes no arguments, only flags; see -help")
		}
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	d := &demo{options: o, out: newPrinter(stdout)}
	if err := d.run(ctx); err != nil {
		d.out.fail(err)
		return 1
	}
	d.out.line("\nNo process and no file of the demo is left.\n\nPASS in %.0f s", d.out.elapsed().Seconds())
	return 0
}

// beside is the path of a program that was built together with this one.
func beside(name string) string {
	self, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(self), name)
}
