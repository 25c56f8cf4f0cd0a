package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Window is a stretch of the day in which occurrences may be due, on a wall clock of the schedule's zone. One that ends
// before it begins goes on to the next day, and belongs to the day on which it began.
type Window struct {
	days     uint // bit n = weekday n, Sunday 0
	from, to int  // minutes of the day, to excluded
}

// ParseWindow reads "22:00-06:00" or "mon-fri,sun 22:00-06:00". 24:00 is an end; both ends equal is an error.
func ParseWindow(text string) (Window, error) {
	w := Window{days: 1<<7 - 1}
	fields := strings.Fields(strings.ToLower(text))
	var err error
	switch len(fields) {
	case 1:
	case 2:
		if w.days, err = parseDays(fields[0]); err != nil {
			return Window{}, fmt.Errorf("parse window %q: %w", text, err)
		}
	default:
		return Window{}, fmt.Errorf("parse window %q: want [DAYS] HH:MM-HH:MM", text)
	}
	from, to, _ := strings.Cut(fields[len(fields)-1], "-")
	if w.from, err = parseClock(from); err != nil {
		return Window{}, fmt.Errorf("parse window %q: %w", text, err)
	}
	if w.to, err = parseClock(to); err != nil {
		return Window{}, fmt.Errorf("parse window %q: %w", text, err)
	}
	if w.from == w.to || w.from == 24*60 {
		return Window{}, fmt.Errorf("parse window %q: it is empty", text)
	}
	return w, nil
}

func parseClock(text string) (int, error) {
	var h, m int
	if n, err := fmt.Sscanf(text, "%d:%d", &h, &m); n != 2 || err != nil || fmt.Sprintf("%02d:%02d", h, m) != text {
		return 0, fmt.Errorf("%q is not a time of day like 06:00", text)
	}
	if h < 0 || m < 0 || m > 59 || h*60+m > 24*60 {
		return 0, fmt.Errorf("%q is not a time of day", text)
	}
	return h*60 + m, nil
}

func parseDays(text string) (uint, error) {
	var days uint
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, okA := weekday(first)
		b, okB := weekday(last)
		if !okA || !okB {
			return 0, fmt.Errorf("%q: days are sun, mon, tue, wed, thu, fri, sat", part)
		}
		for d := a; ; d = (d + 1) % 7 {
			days |= 1 << d
			if d == b {
				break
			}
		}
	}
	return days, nil
}

func weekday(name string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.ToLower(d.String()[:3]) == name {
			return d, true
		}
	}
	return 0, false
}

// Contains tells whether the wall clock of t's zone is inside the window.
func (w Window) Contains(t time.Time) bool {
	minute := t.Hour()*60 + t.Minute()
	today := w.days>>uint(t.Weekday())&1 == 1
	if w.from < w.to {
		return today && w.from <= minute && minute < w.to
	}
	yesterday := w.days>>uint((t.Weekday()+6)%7)&1 == 1
	return today && minute >= w.from || yesterday && minute < w.to
}
