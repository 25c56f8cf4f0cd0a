package pipeline

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/retention"
	"github.com/fencepost/fencepost/pipeline/source"
)

// Config configures a Worker. Zero values mean the defaults named here.
type Config struct {
	Ledger  ledger.Ledger    // required
	Locks   component.Locks  // required
	Claims  component.Claims // required
	Gate    Gate             // required
	Catalog Catalog          // what this node can work with
	// Abilities are this node's, as it is now: tasks that need more are left to other nodes. It must not block. nil: what
	// the catalog names, with whatever programs, and no label.
	Abilities func() Abilities

	// MaxConcurrent is how many tasks of one type run here at once, 1 to 64; default 2. Each create takes about 1 MiB
	// per storage besides what its processors take.
	MaxConcurrent int
	// Limit bounds the time of one attempt; an attempt past it is reverted and the task has failed. 0: a day, or three
	// times as long as the longest good one of the same type and database when that is more.
	Limit time.Duration
	// Paused tells that no task of a component shall be begun now; nil = never. One that was cancelled is ended all the same.
	// It must not block.
	Paused func(component string) bool
	// Memory remembers what was completed, whatever the ledger says; nil: nobody does.
	Memory Memory
	// Marked is the mark that a backup is to have which the ledger learns of from a storage; nil = none. It must not block.
	Marked func(backup string) (m ledger.Mark, ok bool)
	// Drained tells that this node shall begin nothing, and end nothing for others, because it is about to stop; nil = never.
	// It must not block.
	Drained func() bool
	// RateLimit bounds the bytes per second read from one source; 0 is no limit.
	RateLimit int64
	// KeepOld is how long the database that a restore replaced is kept as the undo; 0 drops it with the swap.
	KeepOld time.Duration
	// RestoreJobs is how many sessions a restore uses that does not say itself; 0: as many as the backup has streams.
	RestoreJobs int
	// StopGrace is how long running tasks may take to end by themselves at Stop; 0 reverts them at once.
	StopGrace time.Duration
	// StallAfter is how long a storage may take nothing while others wait for it, or all is done but its part; default
	// 1 min. One without which the attempt would be lost may take ten times as long, and the last step of a Put five times.
	StallAfter time.Duration
	// CleanupWithin bounds the removal of partial objects, and of everything that Stop does after StopGrace; default
	// 1 min.
	CleanupWithin time.Duration
	// PollEvery is how often planned tasks and cancel requests are looked for without a hint; default 10 s.
	PollEvery time.Duration
	// ProgressEvery is the shortest time between two progress writes of one task; default 2 s.
	ProgressEvery time.Duration
	// RetryAfter is how long a task that failed for a passing reason waits here before its next attempt; it doubles
	// with each. Default 5 s.
	RetryAfter time.Duration
	// ErrorsEvery is how often failures that were noted are looked for; default 1 min.
	ErrorsEvery time.Duration
	// Retention are the policies by database: a delete that retention has planned asks its policy again.
	Retention map[string]retention.Policy
	// Signer signs manifests; nil leaves them unsigned, as a node without a group does.
	Signer *Signer
	// Writer is the program's version, for manifests.
	Writer string
	// Now is the clock of times that are stored; nil means time.Now. Waiting uses the real clock.
	Now func() time.Time
	// Logger takes what an operator may want to know; nil discards it.
	Logger *slog.Logger
}

func (c *Config) complete() error {
	switch {
	case c.Ledger == nil:
		return errors.New("pipeline worker: Ledger is missing")
	case c.Locks == nil || c.Claims == nil:
		return errors.New("pipeline worker: Locks or Claims is missing")
	case c.Gate == nil:
		return errors.New("pipeline worker: Gate is missing")
	case c.MaxConcurrent < 0 || c.MaxConcurrent > 64:
		return fmt.Errorf("pipeline worker: MaxConcurrent is %d: want 1 to 64", c.MaxConcurrent)
	case jobs(c.RestoreJobs) != nil:
		return fmt.Errorf("pipeline worker: RestoreJobs is %d: want 0 to %d", c.RestoreJobs, source.MaxStreams)
	case c.RateLimit < 0 || c.KeepOld < 0 || c.StopGrace < 0 || c.Limit < 0:
		return errors.New("pipeline worker: RateLimit, KeepOld, StopGrace and Limit are not negative")
	}
	if _, err := c.Catalog.Processors.Chain(c.Catalog.Chain); err != nil {
		return fmt.Errorf("pipeline worker: %w", err)
	}
	if c.MaxConcurrent == 0 {
		c.MaxConcurrent = 2
	}
	if c.Abilities == nil {
		own := abilitiesOf(c.Catalog, func(source.Source) int { return 0 })
		c.Abilities = func() Abilities { return own }
	}
	if c.Paused == nil {
		c.Paused = func(string) bool { return false }
	}
	if c.Memory == nil {
		c.Memory = forgetful{}
	}
	orDefault(&c.StallAfter, time.Minute)
	orDefault(&c.CleanupWithin, time.Minute)
	orDefault(&c.PollEvery, 10*time.Second)
	orDefault(&c.ProgressEvery, 2*time.Second)
	orDefault(&c.RetryAfter, 5*time.Second)
	orDefault(&c.ErrorsEvery, time.Minute)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func orDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}
