package configs

import "time"

// Schedule is recurring work: at each occurrence one task, whichever nodes are there. The same on all nodes.
type Schedule struct {
	// Name is what commands and tasks call it; same alphabet as a database's. It is not reused for other work.
	Name string `yaml:"name"`
	// Kind is backup (default) or verify (of the newest backup).
	Kind string `yaml:"kind"`
	// Database is the configured name of what it is about.
	Database string `yaml:"database"`
	// Storages are configured names; none: all.
	Storages []string `yaml:"storages"`
	// Scratch is the scratch server of a verify schedule; empty: only bytes are compared.
	Scratch string `yaml:"scratch"`
	// Cron is the line: five fields, or @hourly, @daily, @weekly, @monthly, @yearly, @every DURATION.
	Cron string `yaml:"cron"`
	// Zone is whose wall clock is meant, an IANA name. Default UTC.
	Zone string `yaml:"zone"`
	// Missed is skip, once (default) or all; all needs overlap queue.
	Missed string `yaml:"missed"`
	// Within is how far back missed occurrences count, up to 744h. Default 24h.
	Within time.Duration `yaml:"within"`
	// Overlap is skip (default) or queue: what happens while an earlier occurrence has not ended.
	Overlap string `yaml:"overlap"`
	// MaxQueued bounds how many wait, 1 to 1000. Default 1, and 100 with missed all.
	MaxQueued int `yaml:"max_queued"`
	// Spread is the time over which schedules of one line are spread, up to 24h. Default 0s.
	Spread time.Duration `yaml:"spread"`
	// Windows are times of day in which occurrences may be due: "22:00-06:00", "mon-fri 20:00-24:00". Default always.
	Windows []string `yaml:"windows"`
	// Disabled makes nothing. Default false.
	Disabled bool `yaml:"disabled"`
}

// setDefaults fills an entry before the file's words are read.
func (s *Schedule) setDefaults(string) { *s = Schedule{Kind: "backup"} }

// Retention is what is kept of one database; a database without one keeps everything. The same on all nodes.
type Retention struct {
	// Database is the configured name.
	Database string `yaml:"database"`
	// Last keeps the newest backups; the others the newest of each of so many hours, days and so on. 0: no such rule.
	Last    int `yaml:"last"`
	Hourly  int `yaml:"hourly"`
	Daily   int `yaml:"daily"`
	Weekly  int `yaml:"weekly"`
	Monthly int `yaml:"monthly"`
	Yearly  int `yaml:"yearly"`
	// MaxAge bounds what the rules hold, counted from the newest good backup. 0s: no bound.
	MaxAge time.Duration `yaml:"max_age"`
	// MinKeep is how many of the newest that count stay whatever the rules say, at least 1. Default 1.
	MinKeep int `yaml:"min_keep"`
	// MaxPercent is the share that may go at once without `fencepost prune --confirm`, 1 to 100. Default 25.
	MaxPercent int `yaml:"max_percent"`
	// Unverified lets backups count that nobody has verified. Default false.
	Unverified bool `yaml:"unverified"`
	// Zone is whose hours and days are meant, an IANA name. Default UTC.
	Zone string `yaml:"zone"`
}

func (r *Retention) setDefaults(string) { *r = Retention{MinKeep: 1, MaxPercent: 25} }

// Component is an autonomous component of the host: a program that is run for each item that its trigger wants, on one
// node at a time. The same on all nodes.
type Component struct {
	// Name is part of lock names; same alphabet as a database's, and none of the daemon's own components.
	Name string `yaml:"name"`
	// Exec is the program, an absolute path; it gets the item as JSON on its standard input, and may report as JSON to
	// the descriptor in WORK_REPORT_FD.
	Exec string `yaml:"exec"`
	// Args are its arguments.
	Args []string `yaml:"args"`
	// The trigger: items whose newest events of these types succeeded, failed, are not there, are not there or older than
	// the item's last change; and items of these types. Empty fields restrict nothing.
	// Each completed backup is an item of type backup, with an event backup, and one verify for each verification, which
	// succeeded when every copy is whole; the item has changed with it.
	Past       []string `yaml:"past"`
	PastFailed []string `yaml:"past_failed"`
	Future     []string `yaml:"future"`
	Old        []string `yaml:"old"`
	Types      []string `yaml:"types"`
	// Procedure is 1 (an item at a time and place) or 2 (default: several items in one go).
	Procedure int `yaml:"procedure"`
	// Simultaneous is how many items one node works on at once, 1 to 256. Default 1.
	Simultaneous int `yaml:"simultaneous"`
	// Every is how often items are looked for without a hint, 1s to 24h. Default 1m.
	Every time.Duration `yaml:"every"`
	// Limit bounds the work on one item, 1s to 168h. Default 1h.
	Limit time.Duration `yaml:"limit"`
	// Grace is how long it may take to end after SIGTERM, 1s to 1h. Default 30s.
	Grace time.Duration `yaml:"grace"`
	// BackOff is how long an item waits after its first failure, 1s to 6h; it doubles with each. Default 1m.
	BackOff time.Duration `yaml:"back_off"`
	// QuarantineAfter is how many failures in a row an item may have before it waits for an operator, 1 to 1000. Default 5.
	QuarantineAfter int `yaml:"quarantine_after"`
	// Orphans says what becomes of the items that a dead run was at work on: "free" (default: for whichever node comes
	// next, in their order) or "adopt" (worked on again at once, where the run is recovered).
	Orphans Orphans `yaml:"orphans"`
}

// Orphans is what becomes of the items that a dead run was at work on.
type Orphans string

// What may become of them.
const (
	OrphansFree  Orphans = "free"
	OrphansAdopt Orphans = "adopt"
)

func (c *Component) setDefaults(string) {
	*c = Component{
		Procedure: 2, Simultaneous: 1, Every: time.Minute, Limit: time.Hour, Grace: 30 * time.Second, BackOff: time.Minute, QuarantineAfter: 5, Orphans: OrphansFree,
	}
}
