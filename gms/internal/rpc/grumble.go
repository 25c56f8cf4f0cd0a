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

	distrustFresh = 2 * time.Minute // how long it counts that a certificate was refused: who has a good one comes again sooner
)

// grumbler says of connections that did not come about why, once a minute for each reason: whoever is refused tries again
// and again.
type grumbler struct {
	log *slog.Logger

	mu        sync.Mutex
	said      map[string]time.Time
	distrusts map[string]refusal // by node
}

// refusal is why a node's certificate did not count, and when.
type refusal struct {
	why error
	at  time.Time
}

func newGrumbler(log *slog.Logger) *grumbler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &grumbler{log: log, said: map[string]time.Time{}, distrusts: map[string]refusal{}}
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

// distrust notes whose certificate did not count.
func (g *grumbler) distrust(err error) {
	var d *distrust
	if !errors.As(err, &d) || d.node == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.distrusts) >= grumbleOver {
		clear(g.distrusts)
	}
	g.distrusts[d.node] = refusal{why: d, at: time.Now()}
}

// trusted takes what was said of a node's certificate back.
func (g *grumbler) trusted(node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.distrusts, node)
}

// distrusted are the nodes whose certificates were refused of late, each with why.
func (g *grumbler) distrusted() map[string]error {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[string]error)
	for node, r := range g.distrusts {
		if time.Since(r.at) < distrustFresh {
			out[node] = r.why
		}
	}
	return out
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
