package schedule

import (
	"math"
	"time"
)

const (
	daySeconds = 24 * 60 * 60
	// horizon is how far ahead an occurrence is looked for: the longest wait of all lines, a 29 February on a given
	// weekday across a century without a leap year, is 40 years.
	horizon = 41 * 366 * daySeconds
)

// Next returns the first time after the given one at which the line is due on a wall clock of the zone; the zero time
// when there is none within 41 years. The answer is in that zone.
func (e Expr) Next(after time.Time, zone *time.Location) time.Time {
	if e.every > 0 {
		step := int64(e.every / time.Second)
		return time.Unix((floorDiv(after.Unix(), step)+1)*step, 0).In(zone)
	}
	limit := after.Unix() + horizon
	p := periodAt(after, zone)
	for seen := p.wallSeen(); p.start < limit; p = p.next() {
		if at, ok := e.inPeriod(p, seen, after.Unix()+1, limit); ok {
			return time.Unix(at, 0).In(zone)
		}
		seen = max(seen, wallAt(p.end, p.offset))
	}
	return time.Time{}
}

// inPeriod looks for the first due instant in p at or after from and before limit. Walls below seen were shown by
// earlier periods.
func (e Expr) inPeriod(p period, seen, from, limit int64) (int64, bool) {
	wall := wallAt(max(from, p.start), p.offset)
	if !e.realTime && p.start != beginning {
		first := wallAt(p.start, p.offset)
		if _, skipped := e.nextWall(seen, first); skipped && p.start >= from {
			return p.start, true
		}
		wall = max(wall, seen)
	}
	at, ok := e.nextWall(wall, wallAt(min(p.end, limit), p.offset))
	return at - p.offset, ok
}

// nextWall returns the first matching wall time in [from, until), in seconds since 1970 as the wall shows them.
func (e Expr) nextWall(from, until int64) (int64, bool) {
	minute := -floorDiv(-from, 60)
	day := floorDiv(minute, 24*60)
	rest := minute - day*24*60
	for ; day*daySeconds < until; day++ {
		if e.day(day) {
			if m, ok := e.inDay(rest); ok {
				at := day*daySeconds + m*60
				return at, at < until
			}
		}
		rest = 0
	}
	return 0, false
}

// period is a stretch of real time in which a zone keeps one offset: [start, end) in Unix seconds.
type period struct {
	start, end, offset int64
	zone               *time.Location
}

const (
	beginning = math.MinInt64
	forever   = math.MaxInt64
)

func periodAt(t time.Time, zone *time.Location) period {
	t = t.In(zone)
	_, offset := t.Zone()
	p := period{start: beginning, end: forever, offset: int64(offset), zone: zone}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		p.start = start.Unix()
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	return p
}

// next is the period after p; behind the last one it starts at the end of time.
func (p period) next() period {
	if p.end == forever {
		return period{start: forever, end: forever, offset: p.offset, zone: p.zone}
	}
	return periodAt(time.Unix(p.end, 0), p.zone)
}

// wallSeen is the wall time up to which the periods before p have shown all: a time below it is a repetition in p.
// Offsets are below a day, so a few periods are enough.
func (p period) wallSeen() int64 {
	seen := int64(beginning)
	for range 4 {
		if p.start == beginning {
			break
		}
		end := p.start
		p = periodAt(time.Unix(end-1, 0), p.zone)
		seen = max(seen, wallAt(end, p.offset))
	}
	return seen
}

// wallAt is what the wall shows, without leaving the range at the ends of time.
func wallAt(at, offset int64) int64 {
	if at == beginning || at == forever {
		return at
	}
	return at + offset
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
