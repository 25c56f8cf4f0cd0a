package gms

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A group that stays one of two is warned once a term, and one of two founders at its start.
func TestAPairIsWarned(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	said := func() int { return strings.Count(text.String(), pairIsNoMajority) }
	var p pairWarning
	for _, step := range []struct {
		servers int
		at      time.Duration
		want    int
	}{
		{1, time.Second, 0}, {2, 2 * time.Second, 0}, {3, 5 * time.Second, 0}, {2, 6 * time.Second, 0}, {2, 15 * time.Second, 0},
		{2, 16 * time.Second, 1}, {2, time.Hour, 1}, {3, 2 * time.Hour, 1},
	} {
		if p.look(step.servers, step.at, log); said() != step.want {
			t.Errorf("%d servers at %v: said %d times", step.servers, step.at, said())
		}
	}
	text.Reset()
	for founders, want := range map[string]int{"n1": 0, "n1 n2": 1, "n1 n2 n3": 0} {
		text.Reset()
		tg := newTestGroup(t, 1)
		tg.start("n1", func(c *Config) { c.Bootstrap, c.Logger = strings.Fields(founders), log })
		tg.stop("n1")
		if said() != want {
			t.Errorf("founders %s: said %d times", founders, said())
		}
	}
}
