package bench

import (
	"testing"
)

func TestJudge(t *testing.T) {
	ours, peer := Metric{"Locks/ours", "pairs/s"}, Metric{"Locks/peer", "pairs/s"}
	samples := []Sample{
		{Name: "Locks/ours", Metrics: map[string]float64{"pairs/s": 1, "p50-ms": 15}},
		{Name: "Locks/ours", Metrics: map[string]float64{"pairs/s": 400}},
		{Name: "Locks/peer", Metrics: map[string]float64{"pairs/s": 100, "idle": 0}},
	}
	for _, c := range []struct {
		goal   Goal
		text   string
		answer Answer
		ratio  float64
	}{
		{Goal{Of: Metric{"Locks/ours", "p50-ms"}, Bound: 15}, "≤ 15 ms", Met, 1},
		{Goal{Of: Metric{"Locks/ours", "p50-ms"}, Bound: 10}, "≤ 10 ms", NotMet, 1.5},
		{Goal{Of: ours, Per: peer, AtLeast: true, Bound: 4}, "≥ 4 ×", Met, 4},
		{Goal{Of: ours, Per: peer, AtLeast: true, Bound: 4.5}, "≥ 4.5 ×", NotMet, 4},
		{Goal{Of: ours, Per: peer, Bound: 1.15}, "≤ 1.15 ×", NotMet, 4},
		{Goal{Of: Metric{"Locks/nobody", "pairs/s"}, Bound: 1}, "≤ 1 pairs/s", NotMeasured, 0},
		{Goal{Of: ours, Per: Metric{"Locks/nobody", "pairs/s"}, AtLeast: true}, "≥ 0 ×", NotMeasured, 0},
		{Goal{Of: ours, Per: Metric{"Locks/peer", "idle"}, AtLeast: true}, "≥ 0 ×", NotMeasured, 0},
	} {
		v := Judge([]Row{{What: "it", Goals: []Goal{c.goal}}}, samples)[0]
		if v.Goal != c.text || v.Answer != c.answer {
			t.Errorf("%+v: %s, %s; want %s, %s", c.goal, v.Goal, v.Answer, c.text, c.answer)
		}
		switch {
		case c.answer == NotMeasured && (v.Ratio != nil || v.Why == ""):
			t.Errorf("%s: not measured, with a ratio or without a reason: %+v", c.text, v)
		case c.answer != NotMeasured && *v.Ratio != c.ratio:
			t.Errorf("%s: ratio %v, want %v", c.text, *v.Ratio, c.ratio)
		}
	}
	if v := Judge([]Row{{What: "it", Unmeasured: "fast"}}, samples); len(v) != 1 || v[0].Answer != NotMeasured || v[0].Goal != "fast" {
		t.Errorf("a row without goals: %+v", v)
	}
}
