package dropboxtest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Fault is one thing that goes wrong. Made by the functions of this file; narrowed by On, Nth and Times before it is
// injected.
type Fault struct {
	route       string // "" = all
	object      string // part of the path; "" = all
	first, last int    // of the matching requests; last 0 = no end
	oneIn       int    // of those, one in so many
	dice        *rand.Rand
	what        string
	strike      func(r *request)

	mu         sync.Mutex
	seen, hits int
}

func newFault(what string, strike func(r *request)) *Fault {
	return &Fault{first: 1, what: what, strike: strike}
}

// Refuse answers with a status and a body before anything was done. headers are pairs of name and value.
func Refuse(status int, body string, headers ...string) *Fault {
	return newFault(fmt.Sprintf("answer %d %.60q", status, body), func(r *request) {
		r.refuse(status, body, headers...)
	})
}

// Tagged answers with a status and the error that has these tags, "path/not_found" for example, before anything was done.
func Tagged(status int, tags string) *Fault {
	return newFault(fmt.Sprintf("answer %d %s", status, tags), func(r *request) {
		r.answer.over = true
		r.answer.fail(tagged(status, tags, nil))
	})
}

// RateLimit answers 429 with a Retry-After of that time, which is rounded to seconds.
func RateLimit(after time.Duration) *Fault { return limited("too_many_requests", after) }

// WriteLimit is RateLimit for the reason that another write is at the same namespace.
func WriteLimit(after time.Duration) *Fault { return limited("too_many_write_operations", after) }

func limited(reason string, after time.Duration) *Fault {
	seconds := int(after.Round(time.Second) / time.Second)
	f := Refuse(http.StatusTooManyRequests,
		fmt.Sprintf(`{"error_summary": "%s/..", "error": {"reason": {".tag": "%s"}, "retry_after": %d}}`, reason, reason, seconds),
		"Retry-After", fmt.Sprint(seconds), "Content-Type", "application/json")
	f.what = fmt.Sprintf("answer 429 %s, retry after %d s", reason, seconds)
	return f
}

// Reset ends the connection before anything was done.
func Reset() *Fault {
	return newFault("reset the connection", func(r *request) { r.answer.over, r.answer.abort = true, true })
}

// Break ends the connection when n bytes of the request's body have been read.
func Break(n int64) *Fault {
	return newFault(fmt.Sprintf("reset the connection after %d bytes of the body", n), func(r *request) {
		_, _ = io.CopyN(io.Discard, r.Body, n)
		r.answer.over, r.answer.abort = true, true
	})
}

// Lose carries the request out and ends the connection instead of answering.
func Lose() *Fault {
	return newFault("carry it out, lose the answer", func(r *request) { r.answer.lost = true })
}

// Unsure carries the request out and answers 503.
func Unsure() *Fault {
	return newFault("carry it out, answer 503", func(r *request) { r.unsure = true })
}

// Twice carries the request out a second time after it was answered, as when a network repeats it.
func Twice() *Fault {
	return newFault("carry it out twice", func(r *request) { r.twice = true })
}

// Cut ends the connection when n bytes of the answer's body have passed.
func Cut(n int64) *Fault {
	return newFault(fmt.Sprintf("cut the answer after %d bytes", n), func(r *request) { r.answer.cut = n })
}

// Do runs a hook before the request is carried out.
func Do(hook func()) *Fault {
	return newFault("run a hook", func(*request) { hook() })
}

// Stall lets requests wait, before anything was done, until the gate opens or the client gives up.
func Stall(g *Gate) *Fault {
	return newFault("stall", func(r *request) {
		_, _ = r.content() // only then does the server notice that the client is gone
		if !g.pass(r) {
			r.answer.over, r.answer.abort = true, true
		}
	})
}

// Late takes the request, ends the connection, and carries the request out when the gate opens.
func Late(g *Gate) *Fault {
	return newFault("carry it out late, without an answer", func(r *request) { r.late = g })
}

// On restricts the fault to routes that end with route: "files/list_folder", "upload_session/finish", "token". One that
// ends with a slash is how they begin: "files/".
func (f *Fault) On(route string) *Fault { f.route = route; return f }

// Of restricts the fault to requests whose argument names a path that contains part.
func (f *Fault) Of(part string) *Fault { f.object = part; return f }

// Nth restricts the fault to the n-th matching request, counted from 1.
func (f *Fault) Nth(n int) *Fault { f.first, f.last = n, n; return f }

// Times restricts the fault to the first n matching requests.
func (f *Fault) Times(n int) *Fault { f.first, f.last = 1, n; return f }

// OneIn restricts the fault to one in n of the matching requests, by dice that a seed decides.
func (f *Fault) OneIn(n int, seed uint64) *Fault {
	f.oneIn, f.dice = n, rand.New(rand.NewPCG(seed, 0))
	return f
}

// Hits returns how many requests the fault was in force for.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// String describes the fault: `files/upload_session/finish (request 1): carry it out, answer 503`.
func (f *Fault) String() string {
	var b strings.Builder
	b.WriteString(f.route)
	if f.route == "" {
		b.WriteString("any request")
	}
	if f.object != "" {
		fmt.Fprintf(&b, " of %q", f.object)
	}
	switch {
	case f.dice != nil:
		fmt.Fprintf(&b, " (one in %d)", f.oneIn)
	case f.last == 0 && f.first > 1:
		fmt.Fprintf(&b, " (requests %d…)", f.first)
	case f.last > 0 && f.last == f.first:
		fmt.Fprintf(&b, " (request %d)", f.first)
	case f.last > 0:
		fmt.Fprintf(&b, " (requests %d-%d)", f.first, f.last)
	}
	return b.String() + ": " + f.what
}

// matches counts a request and tells whether the fault is in force for it.
func (f *Fault) matches(r *request) bool {
	route := r.route
	begins := strings.HasSuffix(f.route, "/") && strings.HasPrefix(route, f.route)
	if f.route != "" && !begins && !strings.HasSuffix("/"+route, "/"+f.route) {
		return false
	}
	if f.object != "" && !strings.Contains(r.path(), f.object) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen++
	if f.seen < f.first || f.last > 0 && f.seen > f.last || f.dice != nil && f.dice.IntN(f.oneIn) != 0 {
		return false
	}
	f.hits++
	return true
}

// Gate holds up requests until it is released; then it is open for good.
type Gate struct {
	reached, open   chan struct{}
	arrive, release sync.Once

	mu      sync.Mutex
	opened  bool
	waiting []func()
}

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{reached: make(chan struct{}), open: make(chan struct{})} }

// Reached is closed when the first request is at the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Release opens the gate and returns when what Late has kept is carried out. It may be called several times.
func (g *Gate) Release() {
	g.release.Do(func() {
		close(g.open)
		g.mu.Lock()
		g.opened = true
		waiting := g.waiting
		g.waiting = nil
		g.mu.Unlock()
		for _, do := range waiting {
			do()
		}
	})
}

func (g *Gate) pass(r *request) bool {
	g.arrive.Do(func() { close(g.reached) })
	select {
	case <-g.open:
		return true
	case <-r.Context().Done():
		return false
	}
}

// whenOpen does something when the gate opens, or now.
func (g *Gate) whenOpen(do func()) {
	g.mu.Lock()
	if !g.opened {
		g.waiting = append(g.waiting, do)
		g.mu.Unlock()
		g.arrive.Do(func() { close(g.reached) })
		return
	}
	g.mu.Unlock()
	do()
}

// refuse ends the request with an answer of a fault's own.
func (r *request) refuse(status int, body string, headers ...string) {
	r.answer.over = true
	for i := 0; i+1 < len(headers); i += 2 {
		r.answer.header().Set(headers[i], headers[i+1])
	}
	r.answer.start(status)
	_, _ = io.WriteString(r.answer, body)
}
