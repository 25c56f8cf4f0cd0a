package gossip

import (
	"maps"
	"strings"
	"sync"
	"time"
)

// Health is what gossip knows of its own state. All is read from memory.
type Health struct {
	Waiting int // events that nobody has taken yet
	Score   int // 0: this member answers and is answered in time; more: it is slow itself, and suspects later
	// Blocked is, by member name, when it was last reached by a stream while its datagrams stayed unanswered: gossip goes on
	// slowly, and some firewall needs a look.
	Blocked map[string]time.Time
}

// Health gives the present state; zero before Start and after Stop.
func (g *Gossip) Health() Health {
	list, done, err := g.enter()
	if err != nil {
		return Health{}
	}
	defer done()
	return Health{Waiting: g.events.waiting(), Score: list.GetHealthScore(), Blocked: g.blocked.recent(time.Now())}
}

func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events)
}

const blockedFor = 5 * time.Minute // it is remembered

// blocked notes who answers streams but no datagrams.
type blocked struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (b *blocked) note(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		b.last = map[string]time.Time{}
	}
	b.last[name] = time.Now()
}

func (b *blocked) recent(now time.Time) map[string]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.last, func(_ string, at time.Time) bool { return now.Sub(at) > blockedFor })
	return maps.Clone(b.last)
}

// onlyByStream is the name of a member of which the library says so; empty for all else. The library has no other form for
// it than its text.
func onlyByStream(text string) string {
	_, rest, ok := strings.Cut(text, "Was able to connect to ")
	name, _, udp := strings.Cut(rest, " over TCP but UDP probes failed")
	if !ok || !udp {
		return ""
	}
	return name
}
