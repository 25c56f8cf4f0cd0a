package chaos

import (
	"fmt"
	"strings"
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
	looks      lane = "checks"
	aside      lane = "notes"
)

// Numbers of the report that its summary is made of, or that begin with these words.
const (
	runsClosed      = "runs closed with work or components"
	recoveriesEnded = "recoveries ended"
	staleTaken      = "stale writes that the resource took"
	staleRefused    = "stale writes that it refused"
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

// summary is what happened, in one line.
func (c *chronicle) summary() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := func(prefix string) (n int) {
		for what, of := range c.count {
			if strings.HasPrefix(what, prefix) {
				n += of
			}
		}
		return n
	}
	return fmt.Sprintf("%d faults, %d runs closed, %d recoveries, %d backups, %d restores, %d occurrences of a schedule, %d stale writes accepted, %d refused",
		sum("faults")-sum("faults left out"), sum(runsClosed), sum(recoveriesEnded), sum("tasks: create completed"), sum("tasks: restore completed"),
		sum("occurrences"), sum(staleTaken), sum(staleRefused))
}
