package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/recovery/warden"
)

// Main is the daemon as a function: flags, configuration, signals, run, exit code.
func Main(args []string, version string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "recover":
			return recoverQuorum(args[1:], stdout, stderr)
		case "home":
			return resetHome(args[1:], stdout, stderr)
		}
	}
	flags := flag.NewFlagSet("fencepostd", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("config", os.Getenv("FENCEPOST_CONFIG"), "the node's configuration `file`")
	alone := flags.Bool("no-warden", false, "run the node alone, without a process that watches it and starts it again")
	check := flags.Bool("check-config", false, "look whether the configuration and the files of its section security are right, and exit")
	flags.BoolVar(check, "check", false, "the same as -check-config")
	render := flags.Bool("print-config", false, "print the configuration as it counts, with every key explained and secrets left out, and exit")
	show := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	switch {
	case *show:
		fmt.Fprintln(stdout, "fencepostd", version)
		return 0
	case flags.NArg() > 0 || *file == "":
		fmt.Fprintln(stderr, "fencepostd: usage: fencepostd --config FILE\nhint: `fencepost init` writes a configuration for each node")
		return 2
	}
	cfg, err := configs.Load(*file)
	if err != nil {
		return complain(stderr, err, 2)
	}
	if *render {
		fmt.Fprint(stdout, configs.Render(cfg))
		return 0
	}
	log, _ := logger(cfg.Log, stderr)
	warnings, err := offline.CheckSecurity(cfg, time.Now())
	for _, w := range warnings {
		log.Warn("app: " + w)
	}
	switch {
	case err != nil:
		return complain(stderr, err, 2)
	case *check:
		fmt.Fprintf(stdout, "%s: ok\n", *file)
		return 0
	}
	if !*alone {
		return watchNode(*cfg, *file, log, stderr)
	}
	return runNode(*cfg, *file, version, stderr)
}

// runNode is the node itself, alone or below its warden.
func runNode(cfg configs.Config, file, version string, stderr io.Writer) int {
	limitMemory()
	child, err := warden.Inside(context.Background())
	if err != nil {
		return complain(stderr, err, 1)
	}
	log, level := logger(cfg.Log, stderr)
	awaitRoom(cfg.Home, log, func() {
		if child != nil {
			child.Beat()
		}
	})
	a, err := newBelow(child, cfg, version, log)
	if err != nil {
		return complain(stderr, errors.Join(err, leave(child, false, err)), 2)
	}
	err = serve(a, &reloader{file: file, running: cfg, level: level, log: log}, child)
	if err := errors.Join(err, leave(child, a.stood(), err)); err != nil {
		return complain(stderr, err, 1)
	}
	return 0
}

// afterGrace is what a stop may take beside the grace of running work: the minute in which the worker reverts it, and
// then the leave in order, which must not find its time used up.
const afterGrace = 90 * time.Second

// serve runs the node until it is told to stop, has lost its warden for good, or cannot go on. child is nil without a warden.
func serve(a *App, r *reloader, child *warden.Child) (err error) {
	told, again := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	signal.Notify(again, syscall.SIGHUP)
	r.notify = a.takeNotify
	a.reloadBy(r.reload)
	if err := a.Start(context.Background()); err != nil {
		return err
	}
	quiet := reportProgress(a, child)
	defer quiet()
	orphaned, failed := wardenSays(child)
	for going := true; going; {
		going = false
		select {
		case <-told:
		case <-again:
			_, _ = r.reload() // it has logged what there is to say
			going = true
		case <-a.Done():
		case <-orphaned:
			a.log.Warn("app: stops, its warden died and none came in its place")
		case <-failed:
			a.fail(child.Seat().Check())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.running.Stop.Grace+afterGrace)
	defer cancel()
	go func() { // ends with the process
		<-told
		a.log.Warn("app: told to stop again: what still runs is ended, and planned anew; a third time ends the process at once")
		a.Hurry()
		<-told
		os.Exit(1)
	}()
	return errors.Join(a.Err(), a.Stop(ctx))
}

// complain prints an error in one line, and what to do about it in another.
func complain(to io.Writer, err error, code int) int {
	fmt.Fprintf(to, "fencepostd: %v\n", err)
	if hint := HintOf(err, ""); hint != "" {
		fmt.Fprintf(to, "hint: %s\n", hint)
	}
	return code
}
