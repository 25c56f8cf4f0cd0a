package web

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestSettled reads the lines that recoverers write.
func TestSettled(t *testing.T) {
	for text, want := range map[string][2]string{
		"task settled, was uploading, is planned: its node ended":                                           {"uploading", "planned"},
		"task settled, was applying processors, is completed":                                               {"applying processors", "completed"},
		"task settled, was restoring, is reverted, reason the attempt ended with its node and was reverted": {"restoring", "reverted"},
	} {
		if was, is, ok := settled(api.LogLine{Text: text}); !ok || was != want[0] || is != want[1] {
			t.Errorf("%q: %q, %q, %t", text, was, is, ok)
		}
	}
	if _, _, ok := settled(api.LogLine{Text: "attempt begins, type create, attempt 1"}); ok {
		t.Error("another line is taken for it")
	}
}

// TestTimeLine draws a death whose first recoverer failed: evidence, view, appointed, fence, each orphan under the fence that
// settled it, lowered; each on the lane of whose doing it is, from left to right.
func TestTimeLine(t *testing.T) {
	s := fullSample()
	r := s.recovered[0]
	at := r.Steps[5].At.Add(30 * time.Millisecond)
	l := draw(r, []orphan{{Task: api.Task{ID: "t1", Database: "shop"}, Line: api.LogLine{At: at, Node: "n3"}, Was: "uploading", Is: "planned"}})
	var got []string
	for i, m := range l.Marks {
		for _, lane := range l.Lanes {
			if lane.Y == m.Y {
				got = append(got, lane.Name+": "+strings.TrimRight(m.What, ".0123456789…")+" "+m.Offset)
			}
		}
		if i > 0 && m.X <= l.Marks[i-1].X || m.X > l.Width || m.Y > l.Height {
			t.Errorf("%s is at %d, %d", m.What, m.X, m.Y)
		}
	}
	want := "n2: evidence +0 ms|the group's log: view  +0 ms|the group's log: appointed +0 ms|n1: fence raised +21 ms|n1: failed +60 ms|the group's log: appointed +60 ms|" +
		"n3: fence raised +84 ms|n3: orphan shop +114 ms|n2: quiesced +130 ms|n3: fence lowered +480 ms"
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("drawn:\n%s\nwant\n%s", text, want)
	}
}

// TestSettledBy: of two recoveries by one node, a line belongs to the one whose fence it was written under.
func TestSettledBy(t *testing.T) {
	one := api.Recovery{Component: "backup", Recoverer: "n3", Token: 10}
	two := api.Recovery{Component: "backup", Recoverer: "n3", Token: 20}
	all := []api.Recovery{two, one, {Component: "backup", Recoverer: "n1", Token: 12}, {Component: "restore", Recoverer: "n3", Token: 13}}
	for token, want := range map[uint64][2]bool{9: {}, 10: {}, 15: {true, false}, 20: {true, false}, 25: {false, true}} {
		l := api.LogLine{Node: "n3", Token: token}
		if got := [2]bool{settledBy(l, one, all), settledBy(l, two, all)}; got != want {
			t.Errorf("token %d: %v, want %v", token, got, want)
		}
	}
	if settledBy(api.LogLine{Node: "n1", Token: 15}, one, all) {
		t.Error("another node's line is taken for it")
	}
}
