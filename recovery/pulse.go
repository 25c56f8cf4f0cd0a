package recovery

import (
	"sync"
	"time"
)

// pulse tells whether an action keeps its promise of progress.
type pulse struct {
	every time.Duration // 0: it promised nothing

	mu     sync.Mutex
	active bool      // an action holds the fence; else nobody owes progress
	last   time.Time // last progress
	hold   time.Time // the promise is suspended until then
}

func (p *pulse) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active, p.last, p.hold = true, time.Now(), time.Time{}
}

func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = false
}

func (p *pulse) progress() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
}

// suspend: when the suspension is over, or replaced, the promise starts anew.
func (p *pulse) suspend(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = time.Now().Add(d)
}

// kept says whether the fence is to be renewed now.
func (p *pulse) kept() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.active || promiseKept(time.Now(), p.last, p.hold, p.every)
}

// promiseKept: progress was reported within the interval, or the promise is, or was within the interval, suspended.
func promiseKept(now, last, hold time.Time, every time.Duration) bool {
	if every == 0 {
		return true
	}
	if hold.After(last) {
		last = hold
	}
	return now.Sub(last) <= every
}
