package schedule

import (
	"errors"
	"fmt"
	"hash/fnv"
	"time"
)

// Missed says what happens to occurrences that nobody ran on time.
type Missed string

// Policies for missed occurrences.
const (
	Skip Missed = "skip" // none of them
	Once Missed = "once" // the newest stands for all; one on time at the same moment stands for it
	All  Missed = "all"  // each of them
)

// Overlap says what happens to an occurrence while an earlier one has not ended.
type Overlap string

// Policies for overlaps.
const (
	SkipOverlap Overlap = "skip"
	Queue       Overlap = "queue"
)

// Config describes a schedule. Zero values mean the defaults named here.
type Config struct {
	// Name is part of every occurrence's id and decides the share of Spread: required, and not reused for other work.
	Name string
	// Cron is the line, see ParseExpr: required.
	Cron string
	// Zone is an IANA name; "" is UTC. "Local" is refused: it would differ between nodes.
	Zone string
	// Missed is Once by default; All needs Overlap Queue.
	Missed Missed
	// Within is how far back missed occurrences count, up to 31 days; default 24 h.
	Within time.Duration
	// Late is how long after its start an occurrence still is on time; default 5 min, up to 1 h.
	Late time.Duration
	// Overlap is SkipOverlap by default.
	Overlap Overlap
	// MaxQueued bounds how many wait behind the one that runs, 1 to 1000; default 1, and 100 with Missed All.
	MaxQueued int
	// Spread is the time over which schedules of the same line are spread, in whole seconds up to 24 h; 0 = none.
	Spread time.Duration
	// Windows are the times of day in which occurrences may be due, see ParseWindow; none = always.
	Windows []string
	// Disabled makes nothing, and what was due meanwhile does not count as missed.
	Disabled bool
}

// Schedule is a checked Config. It does not change, and may be used by several goroutines.
type Schedule struct {
	cfg     Config
	expr    Expr
	zone    *time.Location
	windows []Window
	shift   time.Duration
}

// New checks a configuration, fills in defaults and loads the zone. Errors name the field.
func New(cfg Config) (*Schedule, error) {
	if cfg.Name == "" {
		return nil, errors.New("schedule: name is missing")
	}
	s, err := build(cfg)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", cfg.Name, err)
	}
	return s, nil
}

func build(cfg Config) (*Schedule, error) {
	s := &Schedule{}
	var err error
	if s.expr, err = ParseExpr(cfg.Cron); err != nil {
		return nil, err
	}
	if cfg.Zone == "Local" {
		return nil, errors.New("zone Local differs between nodes: name one, like Europe/Berlin")
	}
	if s.zone, err = time.LoadLocation(cfg.Zone); err != nil {
		return nil, fmt.Errorf("load zone: %w", err)
	}
	for _, text := range cfg.Windows {
		w, err := ParseWindow(text)
		if err != nil {
			return nil, err
		}
		s.windows = append(s.windows, w)
	}
	if s.cfg, err = complete(cfg); err != nil {
		return nil, err
	}
	s.shift = share(cfg.Name, cfg.Spread)
	return s, nil
}

func complete(cfg Config) (Config, error) {
	if cfg.Missed == "" {
		cfg.Missed = Once
	}
	if cfg.Overlap == "" {
		cfg.Overlap = SkipOverlap
	}
	if cfg.Within == 0 {
		cfg.Within = 24 * time.Hour
	}
	if cfg.Late == 0 {
		cfg.Late = 5 * time.Minute
	}
	if cfg.MaxQueued == 0 {
		cfg.MaxQueued = 1
		if cfg.Missed == All {
			cfg.MaxQueued = 100
		}
	}
	return cfg, cfg.check()
}

func (c Config) check() error {
	switch {
	case c.Missed != Skip && c.Missed != Once && c.Missed != All:
		return fmt.Errorf("missed is %q: want skip, once or all", c.Missed)
	case c.Overlap != SkipOverlap && c.Overlap != Queue:
		return fmt.Errorf("overlap is %q: want skip or queue", c.Overlap)
	case c.Missed == All && c.Overlap != Queue:
		return errors.New("missed all needs overlap queue: several at once cannot run without waiting")
	case c.Within < 0 || c.Within > 31*24*time.Hour:
		return fmt.Errorf("within is %s: want up to 31 days", c.Within)
	case c.Late < 0 || c.Late > time.Hour:
		return fmt.Errorf("late is %s: want up to 1h", c.Late)
	case c.MaxQueued < 1 || c.MaxQueued > 1000:
		return fmt.Errorf("max queued is %d: want 1 to 1000", c.MaxQueued)
	case c.Spread < 0 || c.Spread > 24*time.Hour || c.Spread%time.Second != 0:
		return fmt.Errorf("spread is %s: want whole seconds up to 24h", c.Spread)
	}
	return nil
}

// share is the part of spread that falls to a name: the same on all nodes, for ever.
func share(name string, spread time.Duration) time.Duration {
	if spread == 0 {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	return time.Duration(h.Sum64()%uint64(spread/time.Second)) * time.Second
}

// Occurrence is one time at which a schedule's work is due.
type Occurrence struct {
	ID    string    // name@instant, the same whoever asks and when
	Due   time.Time // what the line says, in the schedule's zone
	Start time.Time // when to start: Due plus the schedule's share of Spread
}

// Upcoming returns the next n occurrences that are due after the given time, missed and overlap aside. Fewer when a
// line's next time is more than 41 years away, or windows leave out 100,000 in a row.
func (s *Schedule) Upcoming(after time.Time, n int) []Occurrence {
	var out []Occurrence
	for len(out) < n {
		o, ok := s.next(after)
		if !ok {
			break
		}
		out = append(out, o)
		after = o.Due
	}
	return out
}

// next is the first occurrence that is due after the given time and inside a window.
func (s *Schedule) next(after time.Time) (Occurrence, bool) {
	for range 100_000 {
		due := s.expr.Next(after, s.zone)
		if due.IsZero() {
			return Occurrence{}, false
		}
		if s.open(due) {
			id := s.cfg.Name + "@" + due.UTC().Format("20060102T150405Z")
			return Occurrence{ID: id, Due: due, Start: due.Add(s.shift)}, true
		}
		after = due
	}
	return Occurrence{}, false
}

func (s *Schedule) open(t time.Time) bool {
	t = t.In(s.zone)
	for _, w := range s.windows {
		if w.Contains(t) {
			return true
		}
	}
	return len(s.windows) == 0
}
