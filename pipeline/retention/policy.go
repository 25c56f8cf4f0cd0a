package retention

import (
	"fmt"
	"time"
)

// Policy says what to keep. Zero values mean the defaults named here.
type Policy struct {
	// Last holds the newest backups; the others the newest of each of so many hours, days, weeks, months, years. Zero:
	// no such rule; up to 100,000.
	Last, Hourly, Daily, Weekly, Monthly, Yearly int
	// MaxAge bounds what the rules above hold, and without them holds what is not older. Zero = no bound.
	MaxAge time.Duration
	// MinKeep is how many of the newest backups that count stay whatever the other rules say; default 1.
	MinKeep int
	// MaxShare is the share of all backups that may go at once without confirmation, up to 1; default 0.25. One backup
	// may always go.
	MaxShare float64
	// Unverified lets backups count that nobody has verified.
	Unverified bool
	// Zone is whose hours and days are meant; nil = UTC. It should be the zone of the schedule.
	Zone *time.Location
}

const maxPlaces = 100_000

// Check says what is out of bounds; the error names the field.
func (p Policy) Check() error {
	for _, r := range p.rules() {
		if r.n < 0 || r.n > maxPlaces {
			return fmt.Errorf("keep %s is %d: want 0 to %d", r.name, r.n, maxPlaces)
		}
	}
	switch {
	case p.MaxAge < 0:
		return fmt.Errorf("max age is %s: want 0 or more", p.MaxAge)
	case p.MinKeep < 0 || p.MinKeep > maxPlaces:
		return fmt.Errorf("min keep is %d: want 1 to %d", p.MinKeep, maxPlaces)
	case p.MaxShare < 0 || p.MaxShare > 1 || p.MaxShare != p.MaxShare:
		return fmt.Errorf("max share is %v: want 0 to 1", p.MaxShare)
	}
	return nil
}

func (p Policy) minKeep() int { return max(1, p.MinKeep) }

func (p Policy) zone() *time.Location {
	if p.Zone == nil {
		return time.UTC
	}
	return p.Zone
}

// allowed is how many of total may go at once without confirmation.
func (p Policy) allowed(total int) int {
	share := p.MaxShare
	if share == 0 {
		share = 0.25
	}
	return max(1, int(share*float64(total)+1e-9))
}

// rule holds the newest backup of each of the n newest stretches of time that have one.
type rule struct {
	name    string
	n       int
	stretch func(local time.Time) string // nil: each backup is its own
}

func (p Policy) rules() []rule {
	return []rule{
		{"last", p.Last, nil},
		{"hourly", p.Hourly, func(t time.Time) string { return t.Format("2006-01-02T15-0700") }},
		{"daily", p.Daily, func(t time.Time) string { return t.Format("2006-01-02") }},
		{"weekly", p.Weekly, isoWeek},
		{"monthly", p.Monthly, func(t time.Time) string { return t.Format("2006-01") }},
		{"yearly", p.Yearly, func(t time.Time) string { return t.Format("2006") }},
	}
}

func isoWeek(t time.Time) string {
	year, week := t.ISOWeek()
	return fmt.Sprintf("%d-W%02d", year, week)
}

// hasRules tells whether any of the counted rules is set.
func (p Policy) hasRules() bool {
	for _, r := range p.rules() {
		if r.n > 0 {
			return true
		}
	}
	return false
}

// holds maps the ids of list (newest first) to the names of the rules that hold them.
func (p Policy) holds(list []Backup) map[string][]string {
	held := make(map[string][]string)
	for _, r := range p.rules() {
		last, used := "", 0
		for _, b := range list {
			if used == r.n {
				break
			}
			if r.stretch != nil {
				now := r.stretch(b.AsOf.In(p.zone()))
				if now == last {
					continue
				}
				last = now
			}
			used++
			held[b.ID] = append(held[b.ID], r.name)
		}
	}
	return held
}
