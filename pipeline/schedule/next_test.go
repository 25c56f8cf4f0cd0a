package schedule

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the table's zones, whatever the machine has

	"pgregory.net/rapid"
)

// fataler is a test or a property test.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

func zone(t fataler, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func parse(t fataler, line string) Expr {
	t.Helper()
	e, err := ParseExpr(line)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// following returns the next n times as the zone's wall shows them, with the offset.
func following(e Expr, after time.Time, z *time.Location, n int) string {
	var out []string
	for range n {
		after = e.Next(after, z)
		out = append(out, after.Format("01-02T15:04-0700"))
	}
	return strings.Join(out, " ")
}

func TestClockChanges(t *testing.T) {
	for _, c := range []struct {
		name, zone, line string
		after            string // UTC
		want             string
	}{
		{"a skipped time runs once right after the gap", "America/New_York", "30 2 * * *",
			"2026-03-07T12:00:00Z", "03-08T03:00-0400 03-09T02:30-0400"},
		{"several skipped times run once", "America/New_York", "0,15,30 2 * * *",
			"2026-03-07T12:00:00Z", "03-08T03:00-0400 03-09T02:00-0400"},
		{"a skipped time and the gap's end coincide", "America/New_York", "0 2,3 * * *",
			"2026-03-08T05:00:00Z", "03-08T03:00-0400 03-09T02:00-0400"},
		{"minutes of a fixed hour follow the wall", "America/New_York", "*/20 2 * * *",
			"2026-03-07T12:00:00Z", "03-08T03:00-0400 03-09T02:00-0400 03-09T02:20-0400"},
		{"any hour makes nothing up", "America/New_York", "30 * * * *",
			"2026-03-08T06:00:00Z", "03-08T01:30-0500 03-08T03:30-0400"},
		{"a repeated time runs the first time", "America/New_York", "30 1 * * *",
			"2026-10-31T12:00:00Z", "11-01T01:30-0400 11-02T01:30-0500"},
		{"the whole repeated hour, fixed", "America/New_York", "0,30 1,2 * * *",
			"2026-11-01T04:00:00Z", "11-01T01:00-0400 11-01T01:30-0400 11-01T02:00-0500 11-01T02:30-0500"},
		{"any hour runs in both", "America/New_York", "*/30 * * * *",
			"2026-11-01T05:00:00Z", "11-01T01:30-0400 11-01T01:00-0500 11-01T01:30-0500 11-01T02:00-0500"},
		{"all hours are any hour", "America/New_York", "0 0-23 * * *",
			"2026-11-01T05:00:00Z", "11-01T01:00-0500 11-01T02:00-0500"},
		{"every second hour is any hour", "America/New_York", "0 */2 * * *",
			"2026-03-08T04:00:00Z", "03-08T00:00-0500 03-08T04:00-0400"},
		{"asked inside the repeated hour", "America/New_York", "45 1 * * *",
			"2026-11-01T06:10:00Z", "11-02T01:45-0500"},
		{"asked at the gap's end itself", "America/New_York", "30 2 * * *",
			"2026-03-08T07:00:00Z", "03-09T02:30-0400"},
		{"asked a second before the gap's end", "America/New_York", "30 2 * * *",
			"2026-03-08T06:59:59Z", "03-08T03:00-0400 03-09T02:30-0400"},
		{"every is real time", "America/New_York", "@every 90m",
			"2026-03-08T06:00:00Z", "03-08T03:30-0400 03-08T05:00-0400"},
		{"Berlin's gap", "Europe/Berlin", "15 2 * * *",
			"2026-03-28T12:00:00Z", "03-29T03:00+0200 03-30T02:15+0200"},
		{"Berlin, weekly", "Europe/Berlin", "30 2 * * sun",
			"2026-03-28T12:00:00Z", "03-29T03:00+0200 04-05T02:30+0200"},
		{"Berlin's repeated hour", "Europe/Berlin", "15 2 * * *",
			"2026-10-24T12:00:00Z", "10-25T02:15+0200 10-26T02:15+0100"},
		{"half an hour is skipped", "Australia/Lord_Howe", "15 2 * * *",
			"2026-10-03T00:00:00Z", "10-04T02:30+1100 10-05T02:15+1100"},
		{"the other half hour is there", "Australia/Lord_Howe", "45 2 * * *",
			"2026-10-03T12:00:00Z", "10-04T02:45+1100"},
		{"half an hour comes twice", "Australia/Lord_Howe", "45 1 * * *",
			"2026-04-04T00:00:00Z", "04-05T01:45+1100 04-06T01:45+1030"},
		{"half an hour comes twice, any hour", "Australia/Lord_Howe", "45 * * * *",
			"2026-04-04T14:00:00Z", "04-05T01:45+1100 04-05T01:45+1030 04-05T02:45+1030"},
		{"midnight does not exist", "America/Santiago", "0 0 * * *",
			"2026-09-05T12:00:00Z", "09-06T01:00-0300 09-07T00:00-0300"},
		{"a whole day does not exist", "Pacific/Apia", "0 12 * * *",
			"2011-12-29T12:00:00Z", "12-29T12:00-1000 12-31T00:00+1400 12-31T12:00+1400"},
		{"no changes", "UTC", "30 2 * * *", "2026-03-07T12:00:00Z", "03-08T02:30+0000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			after, err := time.Parse(time.RFC3339, c.after)
			if err != nil {
				t.Fatal(err)
			}
			n := strings.Count(c.want, " ") + 1
			if got := following(parse(t, c.line), after, zone(t, c.zone), n); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDays(t *testing.T) {
	after := time.Date(2026, 1, 31, 23, 59, 59, 999, time.UTC)
	for _, c := range []struct{ line, want string }{
		{"0 0 1 * *", "2026-02-01"},
		{"0 0 31 * *", "2026-03-31"},
		{"0 0 29 2 *", "2028-02-29"},
		{"0 0 13 * fri", "2026-02-06"},         // either
		{"0 0 29 2 */7", "2032-02-29"},         // a star in a field: both, a Sunday
		{"0 0 */5 * mon", "2026-02-16"},        // both again
		{"0 0 ? jan-mar wed#", ""},             // not of this dialect
		{"@yearly", "2027-01-01"},              //
		{"@weekly", "2026-02-01"},              // a Sunday
		{"  0   0  1  jan   * ", "2027-01-01"}, // spaces do not matter
	} {
		e, err := ParseExpr(c.line)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: no error", c.line)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Next(after, time.UTC).Format(time.DateOnly); got != c.want {
			t.Errorf("%s: %s, want %s", c.line, got, c.want)
		}
	}
	leap := parse(t, "0 0 29 2 *").Next(time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC), time.UTC)
	if leap.Format(time.DateOnly) != "2104-02-29" {
		t.Errorf("after 2096: %s, want 2104: 2100 is no leap year", leap)
	}
}

func TestBadLines(t *testing.T) {
	for line, part := range map[string]string{
		"":                        "five fields",
		"TZ=0":                    "zone",
		"TZ=UTC 0 0 * * *":        "zone",
		"CRON_TZ=UTC 0 0 * * *":   "zone",
		"* * * *":                 "five fields",
		"* * * * * *":             "five fields",
		"60 * * * *":              "60",
		"* 24 * * *":              "24",
		"* * 0 * *":               "0",
		"* * * 13 *":              "13",
		"* * * * 7":               "7",
		"*/0 * * * *":             "step",
		"5-1 * * * *":             "beyond",
		", * * * *":               "empty",
		"1,,2 * * * *":            "empty",
		"*-5 * * * *":             "star",
		"x * * * *":               "x",
		"0 0 30 2 *":              "no such day",
		"0 0 31 4,6,9,11 *":       "no such day",
		"@never":                  "@never",
		"@every":                  "@every",
		"@every 1s":               "1m",
		"@every 90.5s":            "whole seconds",
		"@every -1h":              "1m",
		"*/9999999999999 * * * *": "",
	} {
		_, err := ParseExpr(line)
		if part == "" { // only its first value
			if err != nil {
				t.Errorf("%q: %v", line, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: error %v, want one with %q", line, err, part)
		}
	}
}

func FuzzParseExpr(f *testing.F) {
	for _, s := range []string{"* * * * *", "@every 1h", "TZ=0", "0-0/9 ? 1,2 jan sun", "*/9223372036854775807 * * * *"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, err := ParseExpr(line)
		if err != nil {
			return
		}
		after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if next := e.Next(after, time.UTC); !next.After(after) {
			t.Errorf("%q: %s is not after %s", line, next, after)
		}
	})
}

// walk is the law said in another way: minute by minute of real time, looking at the wall. It keeps what the wall has
// shown, and is slow.
func walk(e Expr, from, to time.Time, z *time.Location) []time.Time {
	matches := func(wall time.Time) bool {
		return e.day(floorDiv(wall.Unix(), daySeconds)) && e.hour>>uint(wall.Hour())&1 == 1 && e.minute>>uint(wall.Minute())&1 == 1
	}
	wallOf := func(t time.Time) time.Time {
		l := t.In(z)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
	}
	var out []time.Time
	shown := wallOf(from.Add(-time.Minute))
	for at := from.Add(-48 * time.Hour); at.Before(from); at = at.Add(time.Minute) {
		if w := wallOf(at); w.After(shown) {
			shown = w
		}
	}
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		wall := wallOf(at)
		hit := matches(wall)
		if !e.realTime {
			hit = hit && wall.After(shown)
			for w := shown.Add(time.Minute); w.Before(wall); w = w.Add(time.Minute) {
				hit = hit || matches(w)
			}
		}
		if wall.After(shown) {
			shown = wall
		}
		if hit {
			out = append(out, at)
		}
	}
	return out
}

func TestNextAgainstWalker(t *testing.T) {
	names := []string{"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca",
		"America/Santiago", "Asia/Kathmandu", "Pacific/Chatham", "Asia/Tehran", "Africa/Cairo", "Antarctica/Troll"}
	changes := make(map[string][]time.Time)
	for _, name := range names {
		z := zone(t, name)
		for at := time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2035; {
			_, end := at.In(z).ZoneBounds()
			if end.IsZero() {
				break
			}
			changes[name] = append(changes[name], end.UTC())
			at = end
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "zone")
		z := zone(t, name)
		from := time.Date(2026, 2, 27, 0, 0, 0, 0, time.UTC)
		if list := changes[name]; len(list) > 0 {
			from = rapid.SampledFrom(list).Draw(t, "change")
		}
		from = from.Truncate(time.Minute).Add(time.Duration(rapid.IntRange(-36*60, 6*60).Draw(t, "minutes")) * time.Minute)
		e := parse(t, drawLine(t))
		to := from.Add(48 * time.Hour)
		want := walk(e, from, to, z)
		at := from.Add(-time.Nanosecond)
		for _, w := range want {
			if at = e.Next(at, z); !at.Equal(w) {
				t.Fatalf("%s in %s: got %s, want %s", e, name, at, w.In(z))
			}
		}
		if at = e.Next(at, z); at.Before(to) {
			t.Fatalf("%s in %s: got %s, which the walker does not see", e, name, at)
		}
	})
}

// drawLine draws lines that often hit the hours in which clocks change.
func drawLine(t *rapid.T) string {
	minute := rapid.SampledFrom([]string{"0", "30", "15,45", "*/10", "*", "59", "7-23/4"}).Draw(t, "minute")
	hour := rapid.SampledFrom([]string{"*", "*/2", "0", "1", "2", "3", "1-3", "23,0", "0-23", "2/3"}).Draw(t, "hour")
	dom := rapid.SampledFrom([]string{"*", "*/2", "1-15", "29"}).Draw(t, "dom")
	month := rapid.SampledFrom([]string{"*", "mar,apr,oct,nov", "*/2"}).Draw(t, "month")
	dow := rapid.SampledFrom([]string{"*", "sun", "mon-sat", "*/3"}).Draw(t, "dow")
	return strings.Join([]string{minute, hour, dom, month, dow}, " ")
}
