package component

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"
)

// Procedure is the way of a tick.
type Procedure int

// Procedures.
const (
	// One item per tick. Up to SimultaneousProcesses ticks go on at once on a node: call RunOnce three times for three.
	// Start has a timer for each of them, so that an item that takes long keeps none of the other places waiting.
	One Procedure = 1
	// Many items per tick, up to SimultaneousProcesses, side by side; one tick at a time on a node.
	Many Procedure = 2
)

// Config configures a Runner. Zero values mean the defaults named here.
type Config struct {
	Component string  // required; part of lock names: no slash, no space
	Node      string  // required, likewise
	Event     string  // type of the events that it makes; default Component
	Trigger   Trigger // which items it wants; usually with Future or Old of its own Event, else it works on them again and again; default: all
	// NoRetry leaves failed items alone until their event is taken away, or a trigger of others wants them. By default
	// they are wanted again (Trigger.Retry), at the pace of Fairness.
	NoRetry bool
	// NoEvent leaves no event of what was done, only the record and new data: for items that are looked at again and again.
	// Default: it leaves one.
	NoEvent   bool
	Procedure Procedure // default Many
	// SimultaneousProcesses is how many items this node works on at once, 1 to 256; default 1. Work that is not proven
	// to have stopped counts.
	SimultaneousProcesses int
	// Able tells whether this node can work on an item (labels, versions, reach); nil = on any. It must not block.
	Able func(Item) bool
	// Paused tells that nothing new shall be claimed now; nil = never. What is claimed goes on. It must not block.
	Paused func() bool
	// Peek has a tick ask the index before it takes the poll lock, and end there when nothing is wanted: a component that
	// is mostly idle, on many nodes, then costs the group nothing. Default: it asks under the lock only.
	Peek bool

	Worker Worker // required
	Locks  Locks  // required
	Claims Claims // required
	Gate   Gate   // required
	Index  Index  // required
	Store  Store  // required

	PollWait time.Duration // for the poll lock and for the index's answer, each; default 5 s
	ItemWait time.Duration // for the answer to one claim; default 2 s
	// PollHold bounds how long new claims are tried under the poll lock; default 15 s. The group ends a poll lock by
	// itself after 30 s; claims exclude without it, it only keeps nodes from trying the same items.
	PollHold time.Duration
	Limit    time.Duration // of the work on one item; default 1 h
	Grace    time.Duration // from the end of the context to Kill; default 30 s
	Proof    time.Duration // from Kill to the alarm that it did not help; default 10 s
	// Settle bounds writes and releases that nothing else bounds: re-validation, giving a claim or lock back, and
	// storing after Stop; default 1 min. While the run stands and nobody stops it, a finished result is offered to an
	// unavailable store for ever: what was done is not thrown away.
	Settle time.Duration
	// QueryLimit is how many items an index may answer; default 500. It must exceed what other nodes hold at once.
	QueryLimit int
	Fairness   Fairness // back-off and quarantine of items; zero: its defaults

	// Every is the time from the start of one tick of Start's timer to the next; default 1 min. After a tick that had no
	// room for more and no failure the next one follows at once, if Trigger has Event among Future or Old, so that what
	// is done is not wanted again. It comes earlier when an item's time does (Record.NotBefore, if the index tells).
	Every  time.Duration
	Jitter float64 // Every varies by up to this share either way, 0 to 0.9; default 0.1, negative = none

	// Alarm is told what an operator must know; nil only logs it. It must not block.
	Alarm func(Alarm)
	// Now is the clock of times that are stored; nil means time.Now. Waiting uses the real clock.
	Now func() time.Time
	// Random returns a number in [0, 1) for the jitter; nil means math/rand.
	Random func() float64
	Logger *slog.Logger // nil discards
}

// Alarm is something that does not get well by itself.
type Alarm struct {
	Kind  AlarmKind // what is wrong
	Claim Claim     // whose work it is about
	Err   error     // what was met
}

// AlarmKind says what has happened.
type AlarmKind string

// Kinds of alarms.
const (
	AlarmNotStopped  AlarmKind = "not stopped"  // the claim stays until the work is proven to have ended
	AlarmNotReleased AlarmKind = "not released" // the claim could not be given back: it ends with the run
	AlarmNotStored   AlarmKind = "not stored"   // the store refuses the result for good
	AlarmQuarantined AlarmKind = "quarantined"  // failed too often: it waits for an operator
)

func (c *Config) complete() error {
	if err := c.check(); err != nil {
		return fmt.Errorf("component %s: %w", c.Component, err)
	}
	c.Event = cmp.Or(c.Event, c.Component)
	c.Procedure = cmp.Or(c.Procedure, Many)
	c.SimultaneousProcesses = cmp.Or(c.SimultaneousProcesses, 1)
	c.PollWait = cmp.Or(c.PollWait, 5*time.Second)
	c.ItemWait = cmp.Or(c.ItemWait, 2*time.Second)
	c.PollHold = cmp.Or(c.PollHold, 15*time.Second)
	c.Limit = cmp.Or(c.Limit, time.Hour)
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	c.Proof = cmp.Or(c.Proof, 10*time.Second)
	c.Settle = cmp.Or(c.Settle, time.Minute)
	c.QueryLimit = cmp.Or(c.QueryLimit, 500)
	c.Every = cmp.Or(c.Every, time.Minute)
	c.Jitter = max(cmp.Or(c.Jitter, 0.1), 0)
	c.Fairness = c.Fairness.complete()
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = c.Logger.With("component", c.Component)
	return nil
}

// Triggers are what a runner asks its index for: Trigger and, unless NoRetry, its Retry.
func (c Config) Triggers() []Trigger {
	c.Event = cmp.Or(c.Event, c.Component)
	return c.triggers()
}

// triggers are Trigger and, unless NoRetry, its Retry.
func (c *Config) triggers() []Trigger {
	out := []Trigger{c.Trigger}
	if again, ok := c.Trigger.Retry(c.Event); ok && !c.NoRetry {
		out = append(out, again)
	}
	return out
}

func (c *Config) eager() bool {
	return slices.Contains(c.Trigger.Future, c.Event) || slices.Contains(c.Trigger.Old, c.Event)
}

func (c *Config) check() error {
	if err := checkName("name", c.Component); err != nil {
		return err
	}
	if err := checkName("node", c.Node); err != nil {
		return err
	}
	for _, d := range []time.Duration{c.PollWait, c.ItemWait, c.PollHold, c.Limit, c.Grace, c.Proof, c.Settle, c.Every,
		c.Fairness.BackOff, c.Fairness.MaxBackOff} {
		if d < 0 {
			return errors.New("durations are not negative")
		}
	}
	switch {
	case c.Worker == nil, c.Locks == nil, c.Claims == nil, c.Gate == nil, c.Index == nil, c.Store == nil:
		return errors.New("one of Worker, Locks, Claims, Gate, Index, Store is missing")
	case c.Procedure != 0 && c.Procedure != One && c.Procedure != Many:
		return fmt.Errorf("procedure is %d: want One or Many", c.Procedure)
	case c.SimultaneousProcesses < 0 || c.SimultaneousProcesses > 256:
		return fmt.Errorf("SimultaneousProcesses is %d: want 1 to 256", c.SimultaneousProcesses)
	case c.QueryLimit < 0:
		return errors.New("QueryLimit is negative")
	case c.Jitter > 0.9:
		return fmt.Errorf("jitter is %v: want up to 0.9", c.Jitter)
	}
	return nil
}
