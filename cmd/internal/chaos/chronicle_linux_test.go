package chaos

import (
	"fmt"
	"sync"
	"time"
)

// lane is where an event stands on the page.
type lane string

const (
	faults     lane = "faults"
	views      lane = "members"
	recoveries lane = "recoveries"
	work       lane = "work"
	aside      lane = "notes"
)

// event is something that happened.
type event struct {
	Lane     lane
	From, To time.Duration // since the beginning; To 0: a moment
	Text     string
}

// chronicle is what happened, for people.
type chronicle struct {
	mu    sync.Mutex
	start time.Time
	list  []event
	count map[string]int

	checks []checked
}

func newChronicle() *chronicle { return &chronicle{start: time.Now(), count: map[string]int{}} }

func (c *chronicle) now() time.Duration { return time.Since(c.start) }

// add notes a moment.
func (c *chronicle) add(l lane, format string, args ...any) {
	c.span(l, c.now(), 0, fmt.Sprintf(format, args...))
}

// span notes what lasted; to 0 is a moment.
func (c *chronicle) span(l lane, from, to time.Duration, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, event{l, from, to, text})
}

// counts adds to a number of the report.
func (c *chronicle) counts(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[what] += n
}
