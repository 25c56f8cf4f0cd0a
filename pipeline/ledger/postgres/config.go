package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Config configures a Ledger.
type Config struct {
	// DSN is the connection string of the database, as a URL or as keyword=value; of several hosts the first that takes writes
	// is used. It names the server itself, no connection pooler. Required. It is never part of an error or a log line.
	DSN string
	// Cluster is the id of the group. A ledger belongs to the group that used it first. Required.
	Cluster string
	// Protocol is the version that the group writes: migrations of later ones wait until Upgrade. 0: all that this program has.
	Protocol uint32
	// Check asks the group whether g stands at this moment: its run is open and holds the claim (and the fence) with that
	// token. It is called before a task is taken, outside of any transaction, and may block until ctx ends. It returns
	// ledger.ErrFenced when g does not stand. nil: the ledger relies on tokens and on ShutOut alone.
	Check func(ctx context.Context, g ledger.Guard) error
	// Mark returns the group's mark: the highest token of which the group knows that this ledger holds the result. A ledger
	// whose own mark is below it is an older copy and is frozen. Called by Open, and for each new session,
	// where an error counts as no news. nil: 0, only what this process saw counts.
	Mark func(ctx context.Context) (uint64, error)
	// Uses has the group use the ledger of that id when it uses none yet, and returns the id of the one that it uses, confirmed
	// by a majority; "" asks and changes nothing. A ledger with another id is frozen for this process, and none is made where
	// the group uses another. Called by Open. nil: the first one that is seen counts.
	Uses func(ctx context.Context, ledger string) (string, error)
	// Reached returns the last token that the group has granted so far, confirmed by a majority after the call began. A ledger
	// that has seen a higher one is ledger.ErrAhead. Called by Open and CheckAhead. nil: nothing is compared.
	Reached func(ctx context.Context) (uint64, error)
	// Marked is told the token of each result after it was committed, so that the group can raise its mark. It may block; its
	// failure is its own matter, the result stands. Called by the goroutine that wrote. nil: nobody is told.
	Marked func(ctx context.Context, token uint64)
	// Timeout bounds each call, its repetitions included; then it is ledger.ErrUnavailable. Default 30 s, at least 1 s.
	Timeout time.Duration
	// Poll is how often watchers get a hint when no notification comes. Default 10 s, at least 10 ms.
	Poll time.Duration
	// MaxConns bounds the sessions of this Ledger, the one that listens aside. Default 8, at least 2.
	MaxConns int
	// Logger gets what no caller is told. Default: nothing is logged.
	Logger *slog.Logger
}

// Defaults and bounds of a Config.
const (
	defaultTimeout  = 30 * time.Second
	minTimeout      = time.Second
	defaultPoll     = 10 * time.Second
	minPoll         = 10 * time.Millisecond
	defaultMaxConns = 8
	minMaxConns     = 2
)

// checked returns c with its defaults, or what is wrong with it.
func (c Config) checked() (Config, error) {
	if c.DSN == "" {
		return c, errors.New("postgres ledger: DSN is missing")
	}
	if c.Cluster == "" {
		return c, errors.New("postgres ledger: Cluster is missing")
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Poll == 0 {
		c.Poll = defaultPoll
	}
	if c.MaxConns == 0 {
		c.MaxConns = defaultMaxConns
	}
	switch {
	case c.Timeout < minTimeout:
		return c, fmt.Errorf("postgres ledger: Timeout is %s: need at least %s", c.Timeout, minTimeout)
	case c.Poll < minPoll:
		return c, fmt.Errorf("postgres ledger: Poll is %s: need at least %s", c.Poll, minPoll)
	case c.MaxConns < minMaxConns:
		return c, fmt.Errorf("postgres ledger: MaxConns is %d: need at least %d", c.MaxConns, minMaxConns)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
