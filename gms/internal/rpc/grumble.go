package rpc

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	grumbleEvery = time.Minute // between two lines that say the same of the same
	grumbleOver  = 256         // complaints that are remembered
)

// grumbler says of connections that did not come about why, once a minute for each reason: whoever is refused tries again
// and again.
type grumbler struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]time.Time
}

func newGrumbler(log *slog.Logger) *grumbler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &grumbler{log: log, said: map[string]time.Time{}}
}

// say logs a refusal: what a person must mend as a warning, the rest, such as a dial into a dead host, for debugging.
func (g *grumbler) say(msg, whom string, err error) {
	if !forPeople(err) {
		g.log.Debug(msg, "peer", whom, "error", err)
		return
	}
	if g.fresh(whom + "\x00" + err.Error()) {
		g.log.Warn(msg, "peer", whom, "error", err)
	}
}

func (g *grumbler) fresh(what string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if at, known := g.said[what]; known && now.Sub(at) < grumbleEvery {
		return false
	}
	if len(g.said) >= grumbleOver {
		clear(g.said)
	}
	g.said[what] = now
	return true
}

// forPeople tells whether time does not heal it.
func forPeople(err error) bool {
	return errors.Is(err, ErrUntrusted) || errors.Is(err, ErrOtherGroup) || errors.Is(err, ErrProtocol)
}

// hostOf is an address without its port, which differs each time.
func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}
