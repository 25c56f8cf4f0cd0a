package web

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// words are what sheets can say.
func (s *Site) words() template.FuncMap {
	return template.FuncMap{
		"asset": s.assets.address, "at": at, "ago": func(t *time.Time) string { return ago(*t, s.cfg.Now()) },
		"exact": func(t *time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"rfc":   func(t *time.Time) string { return t.UTC().Format(time.RFC3339) }, "zoned": func(t time.Time) string { return t.Format("Mon 2 Jan 2006 15:04 -07:00") },
		"size": size, "took": took, "tone": tone, "percent": percent, "id": short, "join": func(list []string) string { return strings.Join(list, ", ") },
		"segment": url.PathEscape, "key": drawKey, "dict": dict, "json": pretty,
		"clock": func(t time.Time) string { return t.UTC().Format("15:04:05") }, "millis": func(t *time.Time) string { return t.UTC().Format("15:04:05.000 UTC") },
		"raise": func(y int) int { return y - 34 }, "lower": func(y int) int { return y + 17 }, "said": shown, "scanned": func() int { return scanned },
		"plural": plural, "tail": shortPosition,
	}
}

// at is a time that there is; nil for none.
func at(v any) *time.Time {
	switch t := v.(type) {
	case time.Time:
		if !t.IsZero() {
			return &t
		}
	case *time.Time:
		if t != nil && !t.IsZero() {
			return t
		}
	}
	return nil
}

// ago is a time as people say it.
func ago(t, now time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		return "in " + span(-d)
	}
	if d < time.Second {
		return "now"
	}
	return span(d) + " ago"
}

// span is a duration in its largest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// took is a duration in milliseconds, as precise as it matters.
func took(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return strings.TrimSuffix(d.Round(time.Second).String(), "0s")
	}
	return span(d)
}

// size is a number of bytes for people.
func size(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	v, units := float64(bytes)/unit, "KMGTPE"
	for v >= unit && len(units) > 1 {
		v, units = v/unit, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", v, units[0])
}

func percent(p api.Progress) int {
	if p.Estimate <= 0 {
		return 0
	}
	return int(min(100, p.Read*100/p.Estimate))
}

// short is the beginning of an id.
func short(id string) string { return id[:min(len(id), 10)] }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// tone is the colour of a word: what it says for itself is the word.
func tone(word string) string {
	switch word {
	case "completed", "good", "well", "ready", "present", "held", "released", "working", "keep", "done", "enabled", "approved", "yes", "lowered":
		return "good"
	case "critical", "alarmed", "noquorum", "no quorum", "failed", "corrupt", "missing", "strange", "parked", "quarantined", "expired", "overdue", "refused", "remove", "locked", "dropped":
		return "bad"
	case "warning", "warned", "suspected", "interrupted", "reverted", "away", "suspect", "orphan", "maintenance", "deleting", "draining", "stopping", "waiting", "queued", "pinned", "none",
		"cancelling", "withdrawn", "raised", "appointed", "paused", "fenced":
		return "warn"
	case "planned", "unknown", "unwatched", "gone", "drained", "joined", "disabled", "void", "asked":
		return "idle"
	}
	return "busy"
}

// dict makes what a part is given, of names and values in turn.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// pretty is a value as JSON for people.
func pretty(v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return string(text), err
}
