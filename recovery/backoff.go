package recovery

import "time"

// remember is how long a recovery's failures are remembered after the next delivery was due: a recovery that goes round
// the candidates because something is unavailable comes back with a new index and must not start at full speed again.
const remember = 10 * time.Minute

// backoff spaces deliveries of one recovery: min, 2·min, 4·min … up to max.
type backoff struct {
	min, max  time.Duration
	failures  map[key]int
	notBefore map[key]time.Time
}

func newBackoff(low, high time.Duration) *backoff {
	return &backoff{min: low, max: high, failures: make(map[key]int), notBefore: make(map[key]time.Time)}
}

// failed notes one more failure, and drops what is too old to matter.
func (b *backoff) failed(k key, now time.Time) time.Duration {
	for old, t := range b.notBefore {
		if now.Sub(t) > remember {
			b.succeeded(old)
		}
	}
	b.failures[k]++
	d := b.delay(b.failures[k])
	b.notBefore[k] = now.Add(d)
	return d
}

func (b *backoff) succeeded(k key) {
	delete(b.failures, k)
	delete(b.notBefore, k)
}

// delay before the delivery after the nth failure, n >= 1.
func (b *backoff) delay(n int) time.Duration {
	d := b.min
	for ; n > 1 && d < b.max; n-- {
		d *= 2
	}
	return min(d, b.max)
}
