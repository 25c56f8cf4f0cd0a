package app

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// told is a clock that has heard of others, by how far they are ahead of it.
func told(t *testing.T, others map[string]time.Duration) *groupClock {
	t.Helper()
	base := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	c := newGroupClock(func() time.Time { return base })
	for node, ahead := range others {
		o := newGroupClock(func() time.Time { return base.Add(ahead) })
		m := signals.NewMessage(signals.Facts{Member: signals.Member{Node: node}}, clockComponent, o.say())
		if err := c.hear(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// One clock that is an hour off, either way, moves nobody's time: neither the others' nor its own.
func TestOneWrongClock(t *testing.T) {
	base := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		others map[string]time.Duration
		want   time.Duration
		off    string
		doubt  string // the node whose clock keeps everybody from pruning
	}{
		"alone":           {nil, 0, "", ""},
		"one ahead":       {map[string]time.Duration{"n2": 0, "n3": time.Hour}, 0, "", "n3"},
		"one behind":      {map[string]time.Duration{"n2": 0, "n3": -time.Hour}, 0, "", "n3"},
		"this one ahead":  {map[string]time.Duration{"n2": -time.Hour, "n3": -time.Hour}, -time.Hour, "ahead of", "this node"},
		"this one behind": {map[string]time.Duration{"n2": time.Hour, "n3": time.Hour}, time.Hour, "behind", "this node"},
		"two: the lower":  {map[string]time.Duration{"n2": time.Hour}, 0, "", "n2"},
		"two: too":        {map[string]time.Duration{"n2": -time.Hour}, -time.Hour, "ahead of", "this node"},
		"gone":            {map[string]time.Duration{"n8": time.Hour, "n9": time.Hour}, 0, "", ""},
	} {
		clock := told(t, c.others)
		clock.agree("n1", []string{"n1", "n2", "n3"})
		if got := clock.Now().Sub(base); got != c.want {
			t.Errorf("%s: the group's time is %s from this node's, want %s", name, got, c.want)
		}
		if clock.Settled() != (len(c.others) == 2 && name != "gone") {
			t.Errorf("%s: settled is %t", name, clock.Settled())
		}
		if p := clock.problem(); (p == "") != (c.off == "") || !strings.Contains(p, c.off) {
			t.Errorf("%s: problem %q", name, p)
		}
		if err := clock.Doubt(); (err == nil) != (c.doubt == "") || err != nil && !strings.Contains(err.Error(), c.doubt) {
			t.Errorf("%s: doubt %v, want %q", name, err, c.doubt)
		}
	}
}

func TestServersClock(t *testing.T) {
	base := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	c := newGroupClock(func() time.Time { return base })
	c.follow(base.Add(time.Hour+time.Second), base, base.Add(2*time.Second))
	if got := c.Now(); !got.Equal(base.Add(time.Hour)) {
		t.Errorf("now is %s", got)
	}
}
