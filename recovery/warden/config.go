package warden

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/fencepost/fencepost/recovery/home"
)

// Announcer carries an obituary to whoever can use it. The host implements it.
type Announcer interface {
	// Announce is called from one goroutine, in order, once per obituary. It may block until ctx ends; nothing waits for it
	// but the next obituary. Its error is logged: a warden works the same when it reaches nobody.
	Announce(ctx context.Context, obituary []byte) error
}

// Command is the node process. Its standard input is the lifeline.
type Command struct {
	Path string   // of the program; required
	Args []string // without the program's name
	Env  []string // default: the warden's own, without what is for the warden alone
	Dir  string   // default: the warden's own
	// Stdout and Stderr are handed on as they are, so that a node outlives the death of its warden; nil: discarded.
	Stdout, Stderr *os.File
}

// Config says what a warden watches.
type Config struct {
	// Home is the environment of the node. Required. It is swept with each generation: nothing durable is in it.
	Home home.Config
	// Node is the node's name, 1 to 63 bytes, for obituaries. Required.
	Node string
	// Command starts the node, which calls Inside first of all. Required.
	Command Command
	// Announcer gets the obituaries; nil: there are none.
	Announcer Announcer
	// AnnounceFor is how long one obituary may take; default 5 s.
	AnnounceFor time.Duration
	// Policy says how patient the warden is. Default: its zero value.
	Policy Policy
	// Sole says that this process does nothing but watch, and starts no other children: then it becomes the parent of all
	// orphans of the run (Linux), so that also those are found that left their session, group and environment behind.
	// Default: it looks for those of its own session only.
	Sole bool
	// Signals are passed to the node, and mean that it shall end. Nil: none.
	Signals <-chan os.Signal
	// Forward are signals that are passed to the node, if there is one, and mean nothing to the warden: SIGHUP, for a node
	// that reads its configuration again. Nil: none.
	Forward <-chan os.Signal
	// Supervisor watches the warden. Default: nobody does.
	Supervisor Supervisor
	// Logger gets the log; default none.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	var err error
	if c.Policy, err = c.Policy.withDefaults(); err != nil {
		return c, err
	}
	if c.AnnounceFor == 0 {
		c.AnnounceFor = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Home.Logger == nil {
		c.Home.Logger = c.Logger
	}
	switch {
	case len(c.Node) < 1 || len(c.Node) > maxNodeName:
		return c, fmt.Errorf("config: Node: %q must have 1 to %d bytes", c.Node, maxNodeName)
	case c.Command.Path == "":
		return c, errors.New("config: Command.Path: a program is required")
	case c.AnnounceFor < 0:
		return c, errors.New("config: AnnounceFor must not be negative")
	}
	return c, nil
}
