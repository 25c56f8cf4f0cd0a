package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func must(t fataler, cfg Config) *Schedule {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "s"
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return t
}

func dues(list []Occurrence) string {
	var out []string
	for _, o := range list {
		out = append(out, o.Due.Format("02T15"))
	}
	return strings.Join(out, " ")
}

func TestDecide(t *testing.T) {
	hourly := Config{Cron: "0 * * * *"}
	with := func(c Config, change func(*Config)) Config { change(&c); return c }
	all := func(c *Config) { c.Missed, c.Overlap, c.Within = All, Queue, 3*time.Hour }
	for _, c := range []struct {
		name  string
		cfg   Config
		state State
		now   string
		make  string
		skips string // first words of the reasons, in order
		seen  string
	}{
		{"new: nothing before it existed", hourly, State{}, "2026-05-02 10:30", "", "", "2026-05-02 10:30"},
		{"nothing is due", hourly, State{Seen: at("2026-05-02 10:00")}, "2026-05-02 10:59", "", "", "2026-05-02 10:00"},
		{"on time", hourly, State{Seen: at("2026-05-02 10:00")}, "2026-05-02 11:00", "02T11", "", "2026-05-02 11:00"},
		{"a little late", hourly, State{Seen: at("2026-05-02 10:00")}, "2026-05-02 11:05", "02T11", "", "2026-05-02 11:00"},
		{"missed, once", hourly, State{Seen: at("2026-05-02 10:00")}, "2026-05-02 13:30", "02T13", "a later a later", "2026-05-02 13:00"},
		{"missed, one on time stands for it", hourly, State{Seen: at("2026-05-02 10:00")}, "2026-05-02 12:01", "02T12", "one that", "2026-05-02 12:00"},
		{"missed, skip", with(hourly, func(c *Config) { c.Missed = Skip }), State{Seen: at("2026-05-02 10:00")},
			"2026-05-02 11:30", "", "it was", "2026-05-02 11:00"},
		{"missed, all within", with(hourly, all), State{Seen: at("2026-05-02 08:00")},
			"2026-05-02 13:30", "02T11 02T12 02T13", "it was it was", "2026-05-02 13:00"},
		{"missed too long ago", with(hourly, func(c *Config) { c.Within = time.Hour }), State{Seen: at("2026-05-02 08:00")},
			"2026-05-02 10:30", "02T10", "it was", "2026-05-02 10:00"},
		{"overlap, skip", hourly, State{Seen: at("2026-05-02 10:00"), Running: 1}, "2026-05-02 11:00", "", "another one", "2026-05-02 11:00"},
		{"overlap, one waits", hourly, State{Seen: at("2026-05-02 10:00"), Waiting: 1}, "2026-05-02 11:00", "", "another one", "2026-05-02 11:00"},
		{"overlap, queue", with(hourly, func(c *Config) { c.Overlap = Queue }), State{Seen: at("2026-05-02 10:00"), Running: 1},
			"2026-05-02 11:00", "02T11", "", "2026-05-02 11:00"},
		{"overlap, queue is full", with(hourly, func(c *Config) { c.Overlap = Queue }), State{Seen: at("2026-05-02 10:00"), Running: 1, Waiting: 1},
			"2026-05-02 11:00", "", "the queue", "2026-05-02 11:00"},
		{"all, but the queue is short", with(hourly, func(c *Config) { all(c); c.MaxQueued = 1 }), State{Seen: at("2026-05-02 10:00")},
			"2026-05-02 13:30", "02T11 02T12", "the queue", "2026-05-02 13:00"},
		{"disabled: not missed either", with(hourly, func(c *Config) { c.Disabled = true }), State{Seen: at("2026-05-02 10:00")},
			"2026-05-02 13:30", "", "", "2026-05-02 13:30"},
		{"a clock went back", hourly, State{Seen: at("2026-05-02 10:00")}, "2026-05-02 07:00", "", "", "2026-05-02 10:00"},
		{"outside the windows nothing is due", with(hourly, func(c *Config) { c.Windows = []string{"22:00-06:00"} }),
			State{Seen: at("2026-05-02 05:00")}, "2026-05-02 21:00", "", "", "2026-05-02 05:00"},
		{"missed, held until a window opens", with(hourly, func(c *Config) { c.Windows = []string{"22:00-06:00"} }),
			State{Seen: at("2026-05-02 03:00")}, "2026-05-02 12:00", "", "", "2026-05-02 03:00"},
		{"missed, the window is open", with(hourly, func(c *Config) { c.Windows = []string{"22:00-06:00"} }),
			State{Seen: at("2026-05-02 03:00")}, "2026-05-02 22:30", "02T22", "a later a later", "2026-05-02 22:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := must(t, c.cfg).Decide(c.state, at(c.now))
			if got := dues(d.Make); got != c.make {
				t.Errorf("makes %q, want %q", got, c.make)
			}
			var why []string
			for _, s := range d.Skipped {
				why = append(why, strings.Join(strings.Fields(s.Why)[:2], " "))
			}
			if got := strings.Join(why, " "); got != c.skips {
				t.Errorf("skips %q, want %q", got, c.skips)
			}
			if !d.Seen.Equal(at(c.seen)) {
				t.Errorf("seen is %s, want %s", d.Seen, c.seen)
			}
			if c.cfg.Disabled != d.Wake.IsZero() {
				t.Errorf("wakes at %s", d.Wake)
			}
		})
	}
}

func TestLongDowntimeKeepsTheListShort(t *testing.T) {
	s := must(t, Config{Cron: "* * * * *"})
	d := s.Decide(State{Seen: at("2026-05-01 00:00")}, at("2026-05-04 00:00"))
	if len(d.Make) != 1 || len(d.Skipped) != keptSkips || d.More != 3*24*60-1-keptSkips {
		t.Errorf("made %d, skipped %d and %d more", len(d.Make), len(d.Skipped), d.More)
	}
}

func TestTwoNodesOneSchedule100Ticks(t *testing.T) {
	// Each node decides for itself; the ledger refuses an id that exists.
	s := must(t, Config{Cron: "*/5 * * * *", Missed: All, Overlap: Queue})
	items := map[string]int{}
	seen := [2]time.Time{at("2026-05-02 00:00"), at("2026-05-02 00:00")}
	for tick := range 100 {
		for node := range 2 {
			now := at("2026-05-02 00:00").Add(time.Duration(tick+1)*5*time.Minute + time.Duration(node)*17*time.Second)
			d := s.Decide(State{Seen: seen[node]}, now)
			for _, o := range d.Make {
				items[o.ID]++
			}
			seen[node] = d.Seen
		}
	}
	if len(items) != 100 {
		t.Errorf("%d items, want 100", len(items))
	}
	for id, n := range items {
		if n != 2 {
			t.Errorf("%s was decided %d times, want once by each node", id, n)
		}
	}
}

func TestIDsAreStable(t *testing.T) {
	s := must(t, Config{Name: "shop", Cron: "30 1 * * *", Zone: "America/New_York"})
	o := s.Upcoming(at("2026-10-31 12:00"), 2)
	if o[0].ID != "shop@20261101T053000Z" || o[1].ID != "shop@20261102T063000Z" {
		t.Errorf("ids are %s and %s", o[0].ID, o[1].ID)
	}
	every := must(t, Config{Name: "e", Cron: "@every 7h"})
	a, b := every.Upcoming(at("2026-05-02 00:00"), 1), every.Upcoming(at("2026-05-02 00:30"), 1)
	if a[0].ID != b[0].ID {
		t.Errorf("@every: %s and %s depend on who asks when", a[0].ID, b[0].ID)
	}
}

func TestSpread(t *testing.T) {
	starts := map[time.Time]bool{}
	for i := range 50 {
		s := must(t, Config{Name: fmt.Sprintf("db%d", i), Cron: "0 2 * * *", Spread: time.Hour})
		o := s.Upcoming(at("2026-05-02 00:00"), 1)[0]
		if shift := o.Start.Sub(o.Due); shift < 0 || shift >= time.Hour || shift != s.shift {
			t.Errorf("db%d starts %s after it is due", i, shift)
		}
		if d := s.Decide(State{Seen: at("2026-05-02 00:00")}, o.Start.Add(-time.Second)); len(d.Make) != 0 || !d.Wake.Equal(o.Start) {
			t.Errorf("db%d: made %d before its start, wakes at %s", i, len(d.Make), d.Wake)
		}
		if d := s.Decide(State{Seen: at("2026-05-02 00:00")}, o.Start); len(d.Make) != 1 {
			t.Errorf("db%d: made %d at its start", i, len(d.Make))
		}
		starts[o.Start] = true
	}
	if len(starts) < 40 {
		t.Errorf("50 schedules share %d starts", len(starts))
	}
}

func TestWindow(t *testing.T) {
	for _, c := range []struct {
		window, at string
		in         bool
	}{
		{"22:00-06:00", "2026-05-02 21:59", false},
		{"22:00-06:00", "2026-05-02 22:00", true},
		{"22:00-06:00", "2026-05-02 05:59", true},
		{"22:00-06:00", "2026-05-02 06:00", false},
		{"09:00-24:00", "2026-05-02 23:59", true},
		{"fri 22:00-06:00", "2026-05-01 23:00", true}, // a Friday
		{"fri 22:00-06:00", "2026-05-02 05:00", true}, // the night from it
		{"fri 22:00-06:00", "2026-05-01 05:00", false},
		{"Sat-Sun,wed 00:00-12:00", "2026-05-03 11:00", true},
		{"Sat-Sun,wed 00:00-12:00", "2026-05-04 11:00", false},
	} {
		w, err := ParseWindow(c.window)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Contains(at(c.at)); got != c.in {
			t.Errorf("%s contains %s: %v", c.window, c.at, got)
		}
	}
	for _, bad := range []string{"", "22:00", "22-06", "6:00-7:00", "06:00-06:00", "24:00-06:00", "06:00-25:00", "06:60-07:00", "xyz 06:00-07:00", "mon 1 2"} {
		if w, err := ParseWindow(bad); err == nil {
			t.Errorf("%q: %+v, want an error", bad, w)
		}
	}
}

func TestBadConfigs(t *testing.T) {
	ok := Config{Name: "n", Cron: "0 2 * * *"}
	for part, change := range map[string]func(*Config){
		"name":       func(c *Config) { c.Name = "" },
		"cron line":  func(c *Config) { c.Cron = "TZ=0" },
		"Local":      func(c *Config) { c.Zone = "Local" },
		"zone":       func(c *Config) { c.Zone = "Nowhere/Land" },
		"window":     func(c *Config) { c.Windows = []string{"x"} },
		"missed is":  func(c *Config) { c.Missed = "x" },
		"overlap is": func(c *Config) { c.Overlap = "x" },
		"all needs":  func(c *Config) { c.Missed = All },
		"within":     func(c *Config) { c.Within = 32 * 24 * time.Hour },
		"late":       func(c *Config) { c.Late = -1 },
		"max queued": func(c *Config) { c.MaxQueued = 1001 },
		"spread":     func(c *Config) { c.Spread = time.Millisecond },
	} {
		cfg := ok
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want one with %q", err, part)
		}
	}
}

// TestEveryOccurrenceOnceOrExplained: however a schedule is asked, with a clock that jumps, each occurrence is made or
// skipped at most once, in order, and with All and room everything within the window is made.
func TestEveryOccurrenceOnceOrExplained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Cron:   rapid.SampledFrom([]string{"*/15 * * * *", "0 1,2,3 * * *", "@every 1h", "30 2 * * *"}).Draw(t, "line"),
			Zone:   rapid.SampledFrom([]string{"UTC", "America/New_York"}).Draw(t, "zone"),
			Missed: All, Overlap: Queue, MaxQueued: 1000, Within: 31 * 24 * time.Hour,
			Spread: time.Duration(rapid.IntRange(0, 90).Draw(t, "spread")) * time.Minute,
		}
		s := must(t, cfg)
		start := at("2026-10-30 00:00")
		seen, now, latest := start, start, start
		var made []string
		for range rapid.IntRange(1, 30).Draw(t, "asks") {
			now = now.Add(time.Duration(rapid.IntRange(-120, 600).Draw(t, "minutes")) * time.Minute)
			if now.After(latest) {
				latest = now
			}
			d := s.Decide(State{Seen: seen}, now)
			if d.Seen.Before(seen) {
				t.Fatalf("seen went back from %s to %s", seen, d.Seen)
			}
			for _, o := range d.Make {
				made = append(made, o.ID)
			}
			seen = d.Seen
		}
		var want []string
		for _, o := range s.Upcoming(start, 5000) {
			if o.Start.After(latest) {
				break
			}
			want = append(want, o.ID)
		}
		if !slices.Equal(made, want) {
			t.Fatalf("made %v, want %v", made, want)
		}
	})
}
