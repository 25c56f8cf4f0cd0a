package retention

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the table's zones, whatever the machine has
)

var now = time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)

// backups reads "id time flags" lines: g good, c chosen parts, v verified, s suspect, a accepted, p pinned, l locked, u in use.
func backups(t *testing.T, text string) []Backup {
	t.Helper()
	var out []Backup
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		at, err := time.Parse("2006-01-02T15:04", f[1])
		if err != nil {
			t.Fatal(err)
		}
		flags := "gv"
		if len(f) > 2 {
			flags = f[2]
		}
		has := func(c string) bool { return strings.Contains(flags, c) }
		var locked time.Time
		if has("l") {
			locked = at.AddDate(1, 0, 0)
		}
		out = append(out, Backup{ID: f[0], AsOf: at, Good: has("g"), Partial: has("c"), Verified: has("v"), Suspect: has("s"), Accepted: has("a"),
			Pinned: has("p"), Locked: locked, InUse: has("u")})
	}
	return out
}

const daily = `
	a 2026-05-20T02:00
	b 2026-05-19T02:00
	c 2026-05-18T02:00
	d 2026-05-17T02:00
	e 2026-05-16T02:00
	f 2026-04-30T02:00
	g 2026-04-01T02:00
	h 2025-12-31T02:00
	i 2025-01-01T02:00`

func TestDecide(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		name   string
		policy Policy
		list   string
		remove string // ids, oldest first
	}{
		{"no rules keep all", Policy{}, daily, ""},
		{"last", Policy{Last: 3}, daily, "i h g f e d"},
		{"more than there is", Policy{Last: 30}, daily, ""},
		{"daily", Policy{Daily: 2}, daily, "i h g f e d c"},
		{"weekly: the newest of each ISO week", Policy{Weekly: 3}, daily, "i h g e c b"},
		{"monthly", Policy{Monthly: 3}, daily, "i g e d c b"},
		{"yearly", Policy{Yearly: 2}, daily, "i g f e d c b"},
		{"one backup fills several places", Policy{Last: 1, Daily: 1, Weekly: 1, Monthly: 1, Yearly: 1}, daily, "i h g f e d c b"},
		{"together", Policy{Last: 2, Monthly: 2, Yearly: 2}, daily, "i g e d c"},
		{"max age alone", Policy{MaxAge: 3 * day}, daily, "i h g f e"},
		{"max age bounds the rules", Policy{Last: 9, MaxAge: 30 * day}, daily, "i h g"},
		{"age is exact", Policy{MaxAge: 4*day - 1}, daily, "i h g f e"},
		{"min keep goes before age", Policy{MaxAge: time.Hour, MinKeep: 3}, daily, "i h g f e d"},
		{"the last good one stays", Policy{Last: 1}, "a 2026-05-20T02:00", ""},
		{"failed runs take no places", Policy{Last: 2}, `
			a 2026-05-20T02:00 -
			b 2026-05-19T02:00 -
			c 2026-05-18T02:00 -
			d 2026-05-17T02:00
			e 2026-05-16T02:00`, ""},
		{"a bad one goes when a newer counts", Policy{Last: 2}, `
			a 2026-05-20T02:00
			b 2026-05-19T02:00 -
			c 2026-05-18T02:00`, "b"},
		{"unverified: neither displaces nor goes unseen", Policy{Last: 1}, `
			a 2026-05-20T02:00 g
			b 2026-05-19T02:00 g
			c 2026-05-18T02:00
			d 2026-05-17T02:00`, "d b"},
		{"unverified may count", Policy{Last: 1, Unverified: true}, `
			a 2026-05-20T02:00 g
			b 2026-05-19T02:00
			c 2026-05-18T02:00`, "c b"},
		{"nothing counts: nothing goes", Policy{Last: 1}, `
			a 2026-05-20T02:00 g
			b 2026-05-19T02:00 g
			c 2026-05-18T02:00 -`, ""},
		{"backups stopped long ago: nothing grows old", Policy{MaxAge: 3 * day}, `
			a 2025-05-20T02:00
			b 2025-05-19T02:00`, ""},
		{"age is counted from a good one", Policy{MaxAge: day}, `
			a 2026-05-20T02:00 -
			b 2026-05-10T02:00
			c 2026-05-09T02:00`, ""},
		{"pinned, locked, in use", Policy{Last: 1}, `
			a 2026-05-20T02:00
			b 2026-05-19T02:00 gvp
			c 2026-05-18T02:00 gvl
			d 2026-05-17T02:00 gvu
			e 2026-05-16T02:00`, "e"},
		{"chosen parts take no place, and stay", Policy{Last: 2}, `
			a 2026-05-20T02:00 gvc
			b 2026-05-19T02:00
			c 2026-05-18T02:00
			d 2026-05-17T02:00
			e 2026-05-16T02:00 gvc`, "d"},
		{"suspect parts stop nothing", Policy{Last: 1}, `
			a 2026-05-20T02:00 gsc
			b 2026-05-19T02:00
			c 2026-05-18T02:00`, "c"},
		{"an accepted one counts", Policy{Last: 1}, `
			a 2026-05-20T02:00 gvsa
			b 2026-05-19T02:00`, "b"},
		{"the same time: the larger id is newer", Policy{Last: 1}, `
			a 2026-05-20T02:00
			b 2026-05-20T02:00`, "a"},
		{"ISO weeks across the year's end", Policy{Weekly: 1}, `
			a 2026-01-01T02:00
			b 2025-12-29T02:00
			c 2025-12-28T02:00`, "c b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := Decide(c.policy, Input{Backups: backups(t, c.list), Now: now, Confirmed: true})
			if got := strings.Join(plan.Remove(), " "); got != c.remove {
				t.Errorf("removes %q, want %q", got, c.remove)
			}
			if len(plan.Stops) > 0 {
				t.Errorf("stopped: %v", plan.Details)
			}
			for _, d := range plan.Decisions {
				if d.Reason == "" || d.Action == Keep == strings.Contains(" "+c.remove+" ", " "+d.ID+" ") {
					t.Errorf("decision %+v", d)
				}
			}
		})
	}
}

func TestStops(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Policy, *Input)
		stop   Stop
		words  string
	}{
		{"failed listing", func(_ *Policy, in *Input) { in.Listing = errors.New("page 2 is missing") }, ListingFailed, "page 2"},
		{"failed run", func(_ *Policy, in *Input) { in.LastRun = errors.New("dump: exit code 1") }, RunFailed, "exit code 1"},
		{"a clock", func(_ *Policy, in *Input) { in.Clocks = errors.New("the clock of n3 is 1h0m0s off") }, WrongClock, "n3"},
		{"future", func(_ *Policy, in *Input) { in.Backups[0].AsOf = now.Add(FutureTolerance + 1) }, FutureTime, "backup a "},
		{"suspect", func(_ *Policy, in *Input) { in.Backups[1].Suspect = true }, SuspectBackup, "backup b "},
		{"too many at once", func(_ *Policy, in *Input) { in.Confirmed = false }, TooMany, "6 of 9"},
		{"twice in the listing", func(_ *Policy, in *Input) { in.Backups[1].ID = "a" }, ListingFailed, `"a"`},
		{"no time", func(_ *Policy, in *Input) { in.Backups[1].AsOf = time.Time{} }, ListingFailed, "backup b "},
		{"policy", func(p *Policy, _ *Input) { p.Daily = -1 }, BadPolicy, "daily is -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, in := Policy{Last: 3}, Input{Backups: backups(t, daily), Now: now, Confirmed: true}
			c.change(&p, &in)
			plan := Decide(p, in)
			if len(plan.Remove()) != 0 {
				t.Errorf("removes %v", plan.Remove())
			}
			if len(plan.Stops) != 1 || plan.Stops[0] != c.stop || !strings.Contains(plan.Details[0], c.words) {
				t.Errorf("stops %q %q, want %q with %q", plan.Stops, plan.Details, c.stop, c.words)
			}
			if len(plan.Decisions) != 9 {
				t.Errorf("%d decisions", len(plan.Decisions))
			}
		})
	}
}

func TestHeldSaysWhatWouldGo(t *testing.T) {
	list := backups(t, daily)
	list[1].Suspect = true
	plan := Decide(Policy{Last: 3}, Input{Backups: list, Now: now})
	var held []string
	for _, d := range plan.Decisions {
		if d.Action == Held {
			held = append(held, d.ID+" "+d.Reason)
		}
	}
	// Without b, the last three are a, c and d.
	if len(held) != 5 || held[0] != "e no rule holds it" {
		t.Errorf("held: %v", held)
	}
	if len(plan.Stops) != 2 {
		t.Errorf("stops: %v", plan.Stops)
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		total, last int
		share       float64
		stopped     bool
	}{
		{4, 3, 0, false}, {8, 6, 0, false}, {8, 5, 0, true}, {2, 1, 0, false}, {3, 1, 0, true},
		{10, 5, 0.5, false}, {10, 4, 0.5, true}, {10, 1, 1, false}, {10, 7, 0.3, false},
	} {
		var list []Backup
		for i := range c.total {
			list = append(list, Backup{ID: fmt.Sprint("b", i), AsOf: now.Add(-time.Duration(i) * time.Hour), Good: true, Verified: true})
		}
		plan := Decide(Policy{Last: c.last, MaxShare: c.share}, Input{Backups: list, Now: now})
		if got := len(plan.Stops) > 0; got != c.stopped {
			t.Errorf("%+v: stopped %v", c, got)
		}
	}
}

func TestZones(t *testing.T) {
	moscow, err := time.LoadLocation("Europe/Moscow")
	if err != nil {
		t.Fatal(err)
	}
	// 01:30 in Moscow is the evening before in UTC.
	list := []Backup{
		{ID: "new", AsOf: time.Date(2026, 5, 20, 1, 30, 0, 0, moscow), Good: true, Verified: true},
		{ID: "old", AsOf: time.Date(2026, 5, 19, 1, 30, 0, 0, moscow), Good: true, Verified: true},
		{ID: "noon", AsOf: time.Date(2026, 5, 19, 12, 0, 0, 0, moscow), Good: true, Verified: true},
	}
	in := Input{Backups: list, Now: now, Confirmed: true}
	if got := fmt.Sprint(Decide(Policy{Daily: 2, Zone: moscow}, in).Remove()); got != "[old]" {
		t.Errorf("days of Moscow: removes %s", got)
	}
	if got := fmt.Sprint(Decide(Policy{Daily: 2}, in).Remove()); got != "[noon]" {
		t.Errorf("days of UTC: removes %s", got)
	}
}

func TestHourlyThroughARepeatedHour(t *testing.T) {
	york, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	var list []Backup
	for i := range 6 { // 00:00 01:00 01:00 02:00 03:00 04:00
		list = append(list, Backup{ID: fmt.Sprint(i), Good: true, Verified: true,
			AsOf: time.Date(2026, 11, 1, 4+i, 0, 0, 0, time.UTC)})
	}
	in := Input{Backups: list, Now: list[5].AsOf, Confirmed: true}
	if got := fmt.Sprint(Decide(Policy{Hourly: 5, Zone: york}, in).Remove()); got != "[0]" {
		t.Errorf("removes %s: a repeated hour is two hours", got)
	}
	if got := fmt.Sprint(Decide(Policy{Daily: 1, Zone: york}, in).Remove()); got != "[0 1 2 3 4]" {
		t.Errorf("removes %s: a day of 25 hours is one day", got)
	}
}

func TestCheck(t *testing.T) {
	nan := 0.0
	for part, p := range map[string]Policy{
		"last": {Last: -1}, "hourly": {Hourly: maxPlaces + 1}, "weekly": {Weekly: -1}, "monthly": {Monthly: -1}, "yearly": {Yearly: -1},
		"max age": {MaxAge: -1}, "min keep": {MinKeep: -1}, "max share": {MaxShare: 1.1}, "share is NaN": {MaxShare: nan / nan},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want one with %q", err, part)
		}
	}
}
