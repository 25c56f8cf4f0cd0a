package home

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"
)

// Config says where an environment is and how it is cleaned. All processes of one environment use the same Dir; only the
// keeper needs the rest.
type Config struct {
	// Dir is the directory of the environment, on a local file system. Required. The keeper makes it (0700). It must not hold
	// anything else, and nothing durable: the part below Dir/volatile is removed with each generation.
	Dir string
	// Seats is how many processes can be inside at once, 1 to 1024, default 64. It may change from one generation to the next.
	Seats int
	// Clean are the steps between the proof that nobody is inside and the seal of the next generation, in this order. The
	// first error ends the recovery: nothing is sealed. None: nothing is cleaned but what is volatile.
	Clean []Step
	// DrainFor is how long a drain waits for the seats to be left before it kills who is inside; default 2 s.
	DrainFor time.Duration
	// KillFor is how long a drain waits after that before it gives up with ErrNotProven; default 10 s.
	KillFor time.Duration
	// Spare keeps a drain from killing anybody: it only waits, DrainFor + KillFor. Default: it kills.
	Spare bool
	// MaxAttempts is how often recovery may be begun without being ended before it is refused with ErrNeedsOperator; default 5.
	MaxAttempts int
	// KeepEvidence is how many failed generations are remembered, the newest; default 16.
	KeepEvidence int
	// Logger gets the log; default none.
	Logger *slog.Logger

	fsType func(dir string) (int64, error) // seam for tests
}

// Step is one act of cleaning.
type Step struct {
	Name string // for the log and for errors
	// Run is called by the keeper while nobody is inside. It must be repeatable: after a crash of the keeper all steps run again.
	Run func(ctx context.Context, c Cleaning) error
}

// Cleaning is what a step is told.
type Cleaning struct {
	Dir        string // of the environment
	Generation uint64 // that ended; 0 when there was none
	Cause      string // why; empty after an orderly stop
}

func (c Config) withDefaults() (Config, error) {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.DrainFor, 2*time.Second)
	def(&c.KillFor, 10*time.Second)
	for _, f := range []struct {
		field *int
		v     int
	}{{&c.Seats, 64}, {&c.MaxAttempts, 5}, {&c.KeepEvidence, 16}} {
		if *f.field == 0 {
			*f.field = f.v
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.fsType == nil {
		c.fsType = fsType
	}
	switch {
	case c.Dir == "":
		return c, errors.New("config: Dir: a directory is required")
	case c.Seats < 1 || c.Seats > 1024:
		return c, fmt.Errorf("config: Seats: %d must be 1 to 1024", c.Seats)
	case c.MaxAttempts < 1:
		return c, fmt.Errorf("config: MaxAttempts: %d must be 1 or more", c.MaxAttempts)
	case c.KeepEvidence < 1:
		return c, fmt.Errorf("config: KeepEvidence: %d must be 1 or more", c.KeepEvidence)
	case c.DrainFor < 0 || c.KillFor < 0:
		return c, errors.New("config: DrainFor and KillFor must not be negative")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, fmt.Errorf("config: Dir: %w", err)
	}
	c.Dir = dir
	return c, nil
}

// refuseNetwork is ErrNetworkFS when dir is where locks cannot be trusted.
func (c Config) refuseNetwork(dir string) error {
	kind, err := c.fsType(dir)
	if err != nil {
		return fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	if name := networkFS(kind); name != "" {
		return fmt.Errorf("%w (%s): %s", ErrNetworkFS, name, dir)
	}
	return nil
}

// layout names the files of an environment.
//
//	warden.lock            held by the keeper; never unlinked
//	seal                   which generation may be opened
//	seats/0000 …           one lock file per seat, with the record of its holder; never unlinked
//	page-<generation>      failed flag, causes, beats: mapped by everybody inside
//	volatile/<generation>  what the processes inside share and may lose
//	evidence/<generation>  why a generation failed, written once
type layout string

func (l layout) warden() string         { return filepath.Join(string(l), "warden.lock") }
func (l layout) seal() string           { return filepath.Join(string(l), "seal") }
func (l layout) seats() string          { return filepath.Join(string(l), "seats") }
func (l layout) seat(i int) string      { return filepath.Join(l.seats(), fmt.Sprintf("%04d", i)) }
func (l layout) page(gen uint64) string { return filepath.Join(string(l), pagePrefix+genName(gen)) }
func (l layout) failLock() string       { return filepath.Join(string(l), "fail.lock") }
func (l layout) volatile(gen uint64) string {
	return filepath.Join(string(l), volatileDir, genName(gen))
}
func (l layout) evidence() string { return filepath.Join(string(l), "evidence") }

const (
	pagePrefix  = "page-"
	volatileDir = "volatile"
)

func genName(gen uint64) string { return fmt.Sprintf("%012d", gen) }
