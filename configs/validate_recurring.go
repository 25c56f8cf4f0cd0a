package configs

import (
	"fmt"
	"slices"
	"time"
)

// ownComponents are the names of the daemon's own components.
var ownComponents = []string{"backup", "restore", "delete", "verify", "replicate", "schedule", "prune", "sweep", "tidy", "discover", "clock", "claims"}

func (c lists) database(ps *problems, at, name string, scratch bool) {
	if !scratch && c.onServer(name) {
		return
	}
	i := slices.IndexFunc(c.Databases, func(d Database) bool { return d.Name == name })
	switch {
	case i < 0:
		ps.add(at, "is %q, which is none of databases: name one of them", name)
	case c.Databases[i].Scratch != scratch:
		ps.add(at, "is %q, whose scratch is %t: want one whose scratch is %t", name, !scratch, scratch)
	}
}

func (c lists) checkSchedules(ps *problems) {
	seen := map[string]int{}
	for i, s := range c.Schedules {
		at := fmt.Sprintf("schedules[%d]", i)
		checkItemName(ps, at, s.Name, "schedules", seen, i)
		checkOneOf(ps, at+".kind", s.Kind, "backup", "verify")
		c.database(ps, at+".database", s.Database, false)
		for j, name := range s.Storages {
			if !slices.ContainsFunc(c.Storages, func(st Storage) bool { return st.Name == name }) {
				ps.add(fmt.Sprintf("%s.storages[%d]", at, j), "is %q, which is none of storages: name one of them", name)
			}
		}
		switch {
		case s.Scratch != "" && s.Kind != "verify":
			ps.add(at+".scratch", "does not belong to kind %s: remove it", s.Kind)
		case s.Scratch != "":
			c.database(ps, at+".scratch", s.Scratch, true)
		}
		if s.Cron == "" {
			ps.add(at+".cron", "is missing: want five fields, such as 30 2 * * *, or @daily")
		}
		s.checkTimes(ps, at)
	}
}

func (s *Schedule) checkTimes(ps *problems, at string) {
	checkZone(ps, at+".zone", s.Zone)
	checkOneOf(ps, at+".missed", s.Missed, "", "skip", "once", "all")
	checkOneOf(ps, at+".overlap", s.Overlap, "", "skip", "queue")
	checkDuration(ps, at+".within", s.Within, 0, 744*time.Hour)
	checkRange(ps, at+".max_queued", s.MaxQueued, 0, 1000)
	checkDuration(ps, at+".spread", s.Spread, 0, 24*time.Hour)
}

func checkZone(ps *problems, at, zone string) {
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		ps.add(at, "is %q, want an IANA name, such as Europe/Berlin", zone)
	}
}

func (c lists) checkRetention(ps *problems) {
	seen := map[string]int{}
	for i, r := range c.Retention {
		at := fmt.Sprintf("retention[%d]", i)
		if first, twice := seen[r.Database]; twice {
			ps.add(at+".database", "is %q, as retention[%d] is: one for each database", r.Database, first)
		}
		seen[r.Database] = i
		c.database(ps, at+".database", r.Database, false)
		r.checkRules(ps, at)
	}
}

func (r *Retention) checkRules(ps *problems, at string) {
	for name, n := range map[string]int{
		"last": r.Last, "hourly": r.Hourly, "daily": r.Daily, "weekly": r.Weekly, "monthly": r.Monthly, "yearly": r.Yearly,
	} {
		checkRange(ps, at+"."+name, n, 0, 100_000)
	}
	checkDuration(ps, at+".max_age", r.MaxAge, 0, 100*365*24*time.Hour)
	checkRange(ps, at+".min_keep", r.MinKeep, 1, 100_000)
	checkRange(ps, at+".max_percent", r.MaxPercent, 1, 100)
	checkZone(ps, at+".zone", r.Zone)
}

func (c *Config) checkComponents(ps *problems) {
	seen := map[string]int{}
	for i, h := range c.Components {
		at := fmt.Sprintf("components[%d]", i)
		checkItemName(ps, at, h.Name, "components", seen, i)
		if slices.Contains(ownComponents, h.Name) {
			ps.add(at+".name", "is %q, which is one of the daemon's own: choose another", h.Name)
		}
		checkAbsolute(ps, at+".exec", h.Exec)
		if len(h.Past)+len(h.PastFailed)+len(h.Future)+len(h.Old)+len(h.Types) == 0 {
			ps.add(at, "has no trigger: give past, past_failed, future, old or types")
		}
		checkRange(ps, at+".procedure", h.Procedure, 1, 2)
		checkRange(ps, at+".simultaneous", h.Simultaneous, 1, 256)
		checkDuration(ps, at+".every", h.Every, time.Second, 24*time.Hour)
		checkDuration(ps, at+".limit", h.Limit, time.Second, 168*time.Hour)
		checkDuration(ps, at+".grace", h.Grace, time.Second, time.Hour)
		checkDuration(ps, at+".back_off", h.BackOff, time.Second, 6*time.Hour)
		checkRange(ps, at+".quarantine_after", h.QuarantineAfter, 1, 1000)
		if h.Orphans != OrphansFree && h.Orphans != OrphansAdopt {
			ps.add(at+".orphans", "is %q, want free or adopt", h.Orphans)
		}
	}
}
