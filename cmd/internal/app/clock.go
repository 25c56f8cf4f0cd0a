package app

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// clockComponent is the component whose messages tell the members each other's clocks.
const clockComponent = "clock"

const (
	clockEvery    = 5 * time.Second        // between two tellings, or two looks at the ledger's clock
	clockSoon     = 500 * time.Millisecond // the same, while it is not known yet
	clockFresh    = time.Minute            // how long what a member told counts
	clockPatience = 30 * time.Second       // with members that do not tell theirs
	clockOff      = 30 * time.Second       // from when on an operator is told that a node's clock is off
)

// groupClock is the time that all nodes agree about, to within the time that a message takes: that of the ledger's server
// where there is one, else the median of the members' clocks, the lower one of two. What is due, expires or is kept is
// decided by it, so that one node whose clock is wrong changes nothing.
type groupClock struct {
	wall func() time.Time // this node's

	began time.Time // when this node began to listen

	mu      sync.Mutex
	shift   time.Duration          // of the group's time from this node's
	others  map[string]clockSaying // by node
	settled bool                   // it was agreed about
}

// clockSaying is how far a member's clock is from this node's, and when it told.
type clockSaying struct {
	ahead time.Duration
	at    time.Time
}

func newGroupClock(wall func() time.Time) *groupClock {
	return &groupClock{wall: wall, began: time.Now(), others: make(map[string]clockSaying)}
}

// Now is the group's time.
func (c *groupClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall().Add(c.shift)
}

// ahead is how far this node's clock is ahead of the group's.
func (c *groupClock) ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return -c.shift
}

// problem is what to tell an operator of this node's clock; empty when it is right.
func (c *groupClock) problem() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shift.Abs() < clockOff {
		return ""
	}
	way := "behind"
	if c.shift < 0 {
		way = "ahead of"
	}
	return fmt.Sprintf("this node's clock is %s %s the group's: see that it is set by NTP", c.shift.Abs().Round(time.Second), way)
}

// Doubt names a node whose clock is off, this one first; nil when they agree.
func (c *groupClock) Doubt() error {
	if p := c.problem(); p != "" {
		return errors.New(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, node := range slices.Sorted(maps.Keys(c.others)) {
		s := c.others[node]
		if off := s.ahead - c.shift; off.Abs() >= clockOff && time.Since(s.at) < clockFresh {
			return fmt.Errorf("the clock of %s is %s off: see that it is set by NTP", node, off.Abs().Round(time.Second))
		}
	}
	return nil
}

// hear takes what a member told. It must not block.
func (c *groupClock) hear(_ context.Context, s signals.Signal) error {
	m, ok := s.(*signals.Message)
	if !ok || len(m.Payload()) != 8 {
		return nil
	}
	theirs := time.Unix(0, int64(binary.BigEndian.Uint64(m.Payload())))
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.wall()
	c.others[m.Facts().Member.Node] = clockSaying{ahead: theirs.Sub(now), at: time.Now()}
	return nil
}

// say is what this node tells the others.
func (c *groupClock) say() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(c.wall().UnixNano()))
}

// agree makes the group's time the median of the clocks of the members that are present.
func (c *groupClock) agree(self string, present []string) {
	c.present(self, present)
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := []time.Duration{0}
	for _, s := range c.others {
		if time.Since(s.at) < clockFresh {
			ahead = append(ahead, s.ahead)
		}
	}
	slices.Sort(ahead)
	c.shift = ahead[(len(ahead)-1)/2]
	most := len(ahead) > len(present)/2 && time.Since(c.began) > clockPatience
	c.settled = c.settled || len(present) > 0 && (len(ahead) >= len(present) || most)
}

// present forgets what was told by who is not there any more.
func (c *groupClock) present(self string, present []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.others, func(node string, _ clockSaying) bool { return node == self || !slices.Contains(present, node) })
}

// Settled tells whether the group's time is known: every present member has told its clock or, after a while, most have.
// Before that nothing is decided by it that could not be taken back.
func (c *groupClock) Settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settled
}

// follow makes the group's time that of a server, asked at a moment that lies between before and after.
func (c *groupClock) follow(server, before, after time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift, c.settled = server.Sub(before.Add(after.Sub(before)/2)), true
}

// server is a ledger with a clock of its own.
type server interface {
	Now(ctx context.Context) (time.Time, error)
}

// keepTime keeps the group's time until ctx ends. led is nil while there is none, and for a ledger without a clock.
func (a *App) keepTime(ctx context.Context, led func() server) {
	for known := false; ; {
		a.lookAtClocks(ctx, led())
		wait := clockSoon
		if a.clock.Settled() {
			wait = clockEvery
			if !known {
				known = true
				a.wakeComponents()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// wakeComponents has all components look for work.
func (a *App) wakeComponents() {
	a.mu.Lock()
	w := a.work
	a.mu.Unlock()
	if w == nil {
		return // they look when they start
	}
	for _, r := range w.runners {
		r.Wake()
	}
}

func (a *App) lookAtClocks(ctx context.Context, led server) {
	ctx, cancel := context.WithTimeout(ctx, clockEvery)
	defer cancel()
	var present []string
	for _, m := range a.group.View().Members {
		present = append(present, m.Node)
	}
	if len(present) > 1 {
		_ = a.group.Send(ctx, clockComponent, a.clock.say()) // who did not get it hears the next one
	}
	if led != nil {
		a.clock.present(a.cfg.Node, present)
		before := a.clock.wall()
		if t, err := led.Now(ctx); err == nil {
			a.clock.follow(t, before, a.clock.wall())
		}
		return
	}
	a.clock.agree(a.cfg.Node, present)
}
