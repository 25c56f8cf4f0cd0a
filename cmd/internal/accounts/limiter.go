package accounts

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of log-ins on one node.
const (
	attemptsAtOnce  = 10              // of one address
	attemptEvery    = 6 * time.Second // then one more of that address
	allAtOnce       = 60              // of all addresses together
	allEvery        = time.Second     // then one more
	mostRemembered  = 4096            // addresses
	sharedIPv6      = 64              // bits that one customer usually has
	forgottenWithin = attemptsAtOnce * attemptEvery
)

// Limiter bounds how many log-ins are tried. The zero value is ready; it is safe for concurrent use.
type Limiter struct {
	mu        sync.Mutex
	addresses map[string]bucket
	all       bucket
}

// bucket has so many attempts left at a moment.
type bucket struct {
	left float64
	at   time.Time
}

// take takes one attempt, or says how long to wait for one.
func (b bucket) take(now time.Time, most float64, every time.Duration) (bucket, time.Duration) {
	if b.at.IsZero() {
		b = bucket{most, now}
	}
	b.left = min(most, b.left+float64(now.Sub(b.at))/float64(every))
	b.at = now
	if b.left < 1 {
		return b, time.Duration((1 - b.left) * float64(every))
	}
	b.left--
	return b, 0
}

// Take counts an attempt from an address (an IP) at now. A wait above 0 says that it must not be made, and when one may be.
func (l *Limiter) Take(address string, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := shared(address)
	if l.addresses == nil {
		l.addresses = map[string]bucket{}
	}
	if _, known := l.addresses[key]; !known && len(l.addresses) >= mostRemembered {
		l.forget(now)
	}
	own, wait := l.addresses[key].take(now, attemptsAtOnce, attemptEvery)
	l.addresses[key] = own
	if wait > 0 {
		return wait
	}
	l.all, wait = l.all.take(now, allAtOnce, allEvery)
	return wait
}

// forget lets those go that have all their attempts again, or, when there are none, all: the limit of all together stays.
func (l *Limiter) forget(now time.Time) {
	for key, b := range l.addresses {
		if now.Sub(b.at) >= forgottenWithin {
			delete(l.addresses, key)
		}
	}
	if len(l.addresses) >= mostRemembered {
		clear(l.addresses)
	}
}

// shared is what those who may be one and the same have in common.
func shared(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(sharedIPv6)
	if err != nil {
		return ip.String()
	}
	return prefix.String()
}
