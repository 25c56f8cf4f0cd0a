package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/recovery/home"
	"github.com/fencepost/fencepost/recovery/warden"
)

// envDir is the part of a node's home that its warden sweeps; the node's key and log lie beside it.
const envDir = "env"

// envSeats is how many processes can be inside: the node, and some that look.
const envSeats = 8

const (
	beatEvery     = time.Second
	hangAtLeast   = 2 * time.Minute
	killReserve   = time.Minute // that a stop may take longer than the node itself allows it
	ttlsUntilHung = 3
)

// watchNode is this process as the warden: it starts the node as a process of its own and returns the exit code.
func watchNode(cfg configs.Config, file string, log *slog.Logger, stderr io.Writer) int {
	c, err := wardenConfig(cfg, file, log)
	if err != nil {
		return complain(stderr, err, 1)
	}
	told := make(chan os.Signal, 2)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(told)
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	c.Signals, c.Forward = told, again
	w, err := warden.New(c)
	if err != nil {
		return complain(stderr, err, 2)
	}
	out := w.Run(context.Background())
	if out.Err != nil {
		return complain(stderr, explain(out.Err, cfg.Home), out.Code)
	}
	return out.Code
}

func wardenConfig(cfg configs.Config, file string, log *slog.Logger) (warden.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return warden.Config{}, fmt.Errorf("find this program: %w", err)
	}
	timing, _ := gms.Profile(cfg.Profile).Timing() // validated
	return warden.Config{
		Home: home.Config{Dir: filepath.Join(cfg.Home, envDir), Seats: envSeats},
		Node: cfg.Node,
		Command: warden.Command{
			Path: self, Args: []string{"--config", file, "--no-warden"}, Stdout: os.Stdout, Stderr: os.Stderr,
		},
		Policy: warden.Policy{
			HangAfter: max(hangAtLeast, ttlsUntilHung*timing.TTL),
			StopFor:   cfg.Stop.Grace + afterGrace + killReserve,
		},
		Sole:       true,
		Announcer:  newAnnouncer(cfg),
		Supervisor: warden.SupervisorFromEnv(os.Getenv, os.Getpid()),
		Logger:     log,
	}, nil
}

// explain adds to what a warden says what to do about it.
func explain(err error, dir string) error {
	env := filepath.Join(dir, envDir)
	switch {
	case errors.Is(err, home.ErrBusy):
		return hint(fmt.Errorf("open home %s: %w by another process", dir, gms.ErrHomeInUse), "stop the node that runs there, or give this one a home of its own")
	case errors.Is(err, home.ErrNetworkFS):
		return hint(err, "put the home on a disk of this machine")
	case errors.Is(err, home.ErrNoRoom):
		return hint(err, "make room on it, and start the node again: see `fencepost runbook home-full`")
	case errors.Is(err, home.ErrNeedsOperator):
		return hint(err, "see `fencepost env evidence --home "+dir+"`, then let `fencepost env seal` try again")
	case errors.Is(err, warden.ErrNeedsOperator):
		return hint(err, "see `fencepost env evidence --home "+dir+"`, remove the cause and start it again")
	case errors.Is(err, home.ErrNotProven):
		return hint(err, "a process that cannot be killed holds a seat of "+env+": see `fencepost env slots --home "+dir+"`")
	}
	return err
}

// leave gives up the node's seat, if it has one, and says whether a restart may help: not a node that never stood in its
// group, because its own name, home or configuration is refused.
func leave(child *warden.Child, stood bool, err error) error {
	switch {
	case child == nil:
		return nil
	case err == nil:
		return child.Close(warden.InOrder)
	case stood || errors.Is(err, home.ErrRunRecovery):
		return child.Close(warden.Failed)
	}
	return child.Close(warden.GaveUp)
}

// stood says whether the node has ever begun to work.
func (a *App) stood() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.work != nil || a.looked
}

// wardenSays are closed when the warden is gone for good, and when the environment has failed.
func wardenSays(child *warden.Child) (orphaned, failed <-chan struct{}) {
	if child == nil {
		return nil, nil
	}
	return child.Orphaned(), child.Seat().Failed()
}

// reportProgress tells the warden that the node is up, and then again and again that it answers, until quiet is called: a
// node that waits for ever for one of its own locks is silent.
func reportProgress(a *App, child *warden.Child) (quiet func()) {
	if child == nil {
		return func() {}
	}
	stop := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		for {
			a.stateNow()
			a.group.Changed()
			child.Beat()
			select {
			case <-stop:
				return
			case <-time.After(beatEvery):
			}
		}
	})
	return func() { close(stop); beating.Wait() }
}
