// Command fencepost-bench measures what package bench promises and prints how the promises were kept.
//
//	fencepost-bench [-peers] [-quick] [-only WORD] [-dump-mb N] [-profile DIR] [-out DIR]
//
// It is called from the top of the sources, by make bench and make bench-peers, and takes the machine for itself. -quick
// tries each measurement with a few rounds, whose numbers mean nothing. What it found is printed, and written into DIR.
// Exit code 0: everything that was to be measured has been, whatever the answers; 1: something failed; 2: usage.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/bench"
)

// version of the sources; the Makefile gives it.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx))
}

func run(ctx context.Context) int {
	var o bench.Options
	flag.BoolVar(&o.Peers, "peers", false, "measure the peers too, beside ours")
	flag.BoolVar(&o.Quick, "quick", false, "try the measurements: a few rounds of each, whose numbers mean nothing")
	flag.StringVar(&o.Only, "only", "", "call only runs whose names hold this `word`")
	flag.IntVar(&o.DumpMB, "dump-mb", 2048, "back up and restore a database whose dump has so many `MB`")
	flag.StringVar(&o.Profile, "profile", "", "put profiles of each run, for go tool pprof, into this `folder`")
	out := flag.String("out", "bin/bench", "put the report into this `folder`")
	flag.Parse()
	plan := bench.Plan(bench.Runs, o)
	if flag.NArg() > 0 || len(plan) == 0 || o.DumpMB < 1 {
		fmt.Fprintln(os.Stderr, "fencepost-bench: want flags only, a -only that some run's name holds, and a -dump-mb of 1 or more")
		return 2
	}
	if err := makeProfiles(&o.Profile); err != nil {
		fmt.Fprintln(os.Stderr, "fencepost-bench:", err)
		return 1
	}
	report := bench.Report{Date: time.Now(), Version: version, Quick: o.Quick, Machine: bench.ThisMachine(), Facts: bench.Versions()}
	for _, r := range plan {
		fmt.Printf("%s: go %s\n", r.Name, strings.Join(r.Args(o), " "))
		output, err := call(ctx, r, o)
		report.Add(output)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s failed: %v\n", r.Name, err)
			report.Failed = append(report.Failed, r.Name)
		}
		if ctx.Err() != nil {
			break
		}
	}
	report.Verdicts = bench.Judge(bench.Rows, report.Samples)
	fmt.Println()
	path, err := report.Write(*out)
	if err = errors.Join(report.Print(os.Stdout), err); err != nil {
		fmt.Fprintln(os.Stderr, "fencepost-bench:", err)
		return 1
	}
	fmt.Println("report:", path)
	if len(report.Failed) > 0 {
		fmt.Fprintln(os.Stderr, "failed:", strings.Join(report.Failed, ", "))
		return 1
	}
	return 0
}

// makeProfiles makes the folder for profiles, if one is given, and its path one that holds for whoever works elsewhere.
func makeProfiles(dir *string) (err error) {
	if *dir == "" {
		return nil
	}
	if *dir, err = filepath.Abs(*dir); err == nil {
		err = os.MkdirAll(*dir, 0o755)
	}
	return err
}

// call runs the go command, shows what it prints and reads it. When ctx ends it is asked to stop, and has a while for that:
// benchmarks end the servers that they started.
func call(ctx context.Context, r bench.Run, o bench.Options) (bench.Output, error) {
	cmd := exec.CommandContext(ctx, "go", r.Args(o)...)
	cmd.Dir = r.Module
	if o.Profile != "" {
		cmd.Env = append(os.Environ(), bench.ServerProfiles+"="+o.Profile)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&text, os.Stdout), os.Stderr
	failed := cmd.Run()
	out, err := bench.Parse(&text)
	return out, errors.Join(failed, err)
}
