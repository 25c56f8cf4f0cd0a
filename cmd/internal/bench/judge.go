package bench

import "fmt"

// Metric names one number of one benchmark.
type Metric struct{ Bench, Unit string }

// String is for tables.
func (m Metric) String() string { return m.Bench + " " + m.Unit }

// Goal is a bound on a metric, or on its ratio to another one.
type Goal struct {
	Of      Metric
	Per     Metric // what Of is divided by; zero: nothing
	AtLeast bool   // Bound is the least that will do; otherwise the most
	Bound   float64
}

// String is the goal as the table shows it: "≤ 15 ms", "≥ 4 ×".
func (g Goal) String() string {
	sign, unit := "≤", label(g.Of.Unit)
	if g.AtLeast {
		sign = "≥"
	}
	if g.Per != (Metric{}) {
		unit = "×"
	}
	return fmt.Sprintf("%s %s %s", sign, short(g.Bound), unit)
}

// Answer says how a goal was kept.
type Answer string

// What is not measured is never met.
const (
	Met         Answer = "met"
	NotMet      Answer = "not met"
	NotMeasured Answer = "not measured"
)

// Verdict is one goal and what was measured of it.
type Verdict struct {
	What     string   `json:"what"`
	Against  string   `json:"against,omitempty"`
	Metric   string   `json:"metric,omitempty"`
	Goal     string   `json:"goal"`
	Measured *float64 `json:"measured,omitempty"`
	Peer     *float64 `json:"peer,omitempty"`  // what it is compared with
	Ratio    *float64 `json:"ratio,omitempty"` // of the two; without a peer, of what was measured to the bound
	Answer   Answer   `json:"answer"`
	Why      string   `json:"why,omitempty"` // it was not measured
}

// Judge compares what was measured with each goal of each row, in their order. When a benchmark reported several times,
// the last word counts.
func Judge(rows []Row, samples []Sample) []Verdict {
	values := map[Metric]float64{}
	for _, s := range samples {
		for unit, v := range s.Metrics {
			values[Metric{s.Name, unit}] = v
		}
	}
	var out []Verdict
	for _, r := range rows {
		if len(r.Goals) == 0 {
			out = append(out, Verdict{What: r.What, Against: r.Against, Goal: r.Unmeasured, Answer: NotMeasured, Why: "nothing measures it yet"})
		}
		for _, g := range r.Goals {
			v := judge(g, values)
			v.What, v.Against, v.Metric, v.Goal = r.What, r.Against, g.Of.String(), g.String()
			out = append(out, v)
		}
	}
	return out
}

func judge(g Goal, values map[Metric]float64) (v Verdict) {
	v.Answer = NotMeasured
	of, ok := values[g.Of]
	if !ok {
		v.Why = "no " + g.Of.String()
		return v
	}
	v.Measured = &of
	compared, ratio := of, of/g.Bound
	if g.Per != (Metric{}) {
		per, ok := values[g.Per]
		if !ok || per == 0 {
			v.Why = "no " + g.Per.String()
			return v
		}
		ratio = of / per
		compared, v.Peer = ratio, &per
	}
	v.Ratio, v.Answer = &ratio, NotMet
	if g.AtLeast && compared >= g.Bound || !g.AtLeast && compared <= g.Bound {
		v.Answer = Met
	}
	return v
}
