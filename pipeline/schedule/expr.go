package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Expr is a parsed line: the times at which something is due, as a set. The zero value is not usable.
type Expr struct {
	text  string
	every time.Duration // @every; else the fields count

	minute, hour, dom, month, dow uint64 // bit n = value n
	domAny, dowAny                bool   // the field contains "*" or "?"
	realTime                      bool   // any hour: follows real time when clocks change
}

// MinEvery is the shortest distance of an @every line.
const MinEvery = time.Minute

// ParseExpr reads a line of five fields or a descriptor (see the package's doc). A line that never comes (31 February)
// is an error, and so is one with a zone in it.
func ParseExpr(line string) (Expr, error) {
	line = strings.Join(strings.Fields(line), " ")
	if strings.Contains(line, "=") {
		return Expr{}, fmt.Errorf("parse cron line %q: the zone is a setting of its own, not part of the line", line)
	}
	var e Expr
	var err error
	if strings.HasPrefix(line, "@") {
		e, err = parseDescriptor(line)
	} else {
		e, err = parseFields(line)
	}
	if err != nil {
		return Expr{}, fmt.Errorf("parse cron line %q: %w", line, err)
	}
	e.text = line
	if e.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.UTC).IsZero() {
		return Expr{}, fmt.Errorf("parse cron line %q: there is no such day", line)
	}
	return e, nil
}

// String is the line as it was given, with single spaces.
func (e Expr) String() string { return e.text }

func parseDescriptor(line string) (Expr, error) {
	if d, ok := strings.CutPrefix(line, "@every "); ok {
		every, err := time.ParseDuration(d)
		if err != nil {
			return Expr{}, err
		}
		if every < MinEvery || every%time.Second != 0 {
			return Expr{}, fmt.Errorf("every %s: want whole seconds, %s or more", every, MinEvery)
		}
		return Expr{every: every}, nil
	}
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(line)
	if err != nil {
		return Expr{}, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Expr{}, errors.New("unknown descriptor")
	}
	return fromSpec(spec), nil
}

// starBit is set by the parser in a field that was a bare star.
const starBit = 1 << 63

func fromSpec(s *cron.SpecSchedule) Expr {
	const value = starBit - 1
	const allHours = 1<<24 - 1
	return Expr{
		minute: s.Minute & value, hour: s.Hour & value, dom: s.Dom & value, month: s.Month & value, dow: s.Dow & value,
		domAny: s.Dom&starBit != 0, dowAny: s.Dow&starBit != 0,
		realTime: s.Hour&starBit != 0 || s.Hour&value == allHours,
	}
}

func parseFields(line string) (Expr, error) {
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return Expr{}, fmt.Errorf("want five fields (minute hour day month weekday), got %d", len(fields))
	}
	for _, f := range fields {
		if err := checkField(f); err != nil {
			return Expr{}, err
		}
	}
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(line)
	if err != nil {
		return Expr{}, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Expr{}, errors.New("not a line of five fields")
	}
	e := fromSpec(spec)
	// The parser forgets the star of "*/2".
	anyOf := func(field string) bool { return strings.ContainsAny(field, "*?") }
	e.realTime = e.realTime || anyOf(fields[1])
	e.domAny, e.dowAny = anyOf(fields[2]), anyOf(fields[4])
	return e, nil
}

// checkField refuses what the parser lets through.
func checkField(f string) error {
	for part := range strings.SplitSeq(f, ",") {
		rest, star := strings.CutPrefix(strings.Replace(part, "?", "*", 1), "*")
		switch {
		case part == "":
			return fmt.Errorf("%q: an empty part", f)
		case star && rest != "" && !strings.HasPrefix(rest, "/"):
			return fmt.Errorf("%q: only a step may follow a star", f)
		}
	}
	return nil
}

// day tells whether the date that is n days after 1970-01-01 matches.
func (e Expr) day(n int64) bool {
	y, m, d := time.Unix(n*daySeconds, 0).UTC().Date()
	if e.month>>uint(m)&1 == 0 {
		return false
	}
	byDate := e.dom>>uint(d)&1 == 1
	byWeekday := e.dow>>uint(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Weekday())&1 == 1
	if e.domAny || e.dowAny {
		return byDate && byWeekday
	}
	return byDate || byWeekday
}

// inDay returns the first matching minute of a day at or after minute from.
func (e Expr) inDay(from int64) (int64, bool) {
	for h := from / 60; h < 24; h++ {
		if e.hour>>uint(h)&1 == 0 {
			continue
		}
		for m := max(from-h*60, 0); m < 60; m++ {
			if e.minute>>uint(m)&1 == 1 {
				return h*60 + m, true
			}
		}
	}
	return 0, false
}
