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
	paused    map[key]uint64 // index of the appointment whose pause has begun
}

func newBackoff(low, high time.Duration) *backoff {
	return &backoff{min: low, max: high, failures: make(map[key]int), notBefore: make(map[key]time.Time), paused: make(map[key]uint64)}
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

// rounds begins the pauses of appointments that are new here: what the work needs was away for every candidate, also if this
// one has not tried yet (PROTOCOL 15).
func (b *backoff) rounds(list []Appointed, now time.Time) {
	listed := make(map[key]bool, len(list))
	for _, a := range list {
		k := a.key()
		listed[k] = true
		if b.paused[k] == a.Index {
			continue
		}
		b.paused[k] = a.Index
		if until := now.Add(a.Pause); until.After(b.notBefore[k]) && a.Pause > 0 {
			b.notBefore[k] = until
		}
	}
	for k := range b.paused {
		if !listed[k] {
			delete(b.paused, k)
		}
	}
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
