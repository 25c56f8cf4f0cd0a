package component

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Outcome is how work ended.
type Outcome string

// Outcomes.
const (
	Done   Outcome = "done"
	Failed Outcome = "failed"
)

const (
	// MaxFailures bounds the failures of a report; one overflow entry follows them.
	MaxFailures = 20
	// MaxText bounds each text of a report, MaxWord each item and type in it, in bytes: a report fits into one value of
	// the state cache (64 KiB).
	MaxText = 1 << 10
	MaxWord = 128 // of a word, in bytes
)

// Failure is one thing that went wrong.
type Failure struct {
	Item    string `json:"item,omitempty"`    // what it is about, when that is not the item itself
	Type    string `json:"type,omitempty"`    // a word to count by
	Text    string `json:"text"`              // one sentence, no secrets
	Details string `json:"details,omitempty"` // for people; bounded, no secrets
}

// Report is what work says of itself. The zero value is a success that says nothing.
type Report struct {
	Outcome  Outcome   // "" is Done
	Failures []Failure // at most MaxFailures, and behind them the overflow entry, which is not kept here but made by List
	More     int       // failures that found no room
	Started  time.Time // zero: as the runner saw it
	Ended    time.Time // zero: as the runner saw it
	// Data, when there is any, replaces that of the item. More than MaxData bytes are a failure.
	Data json.RawMessage
	// Unpreservable means that this run shall be as if it had never been: no event, no failure counted.
	Unpreservable bool
}

// Fail adds a failure, within bounds, and makes the outcome Failed.
func (r *Report) Fail(f Failure) {
	r.Outcome = Failed
	if len(r.Failures) >= MaxFailures {
		r.More++
		return
	}
	r.Failures = append(r.Failures, Failure{cut(f.Item, MaxWord), cut(f.Type, MaxWord), cut(f.Text, MaxText), cut(f.Details, MaxText)})
}

// List returns the failures for people and for storing: where some found no room, one entry at the end says how many.
func (r Report) List() []Failure {
	if r.More == 0 {
		return r.Failures
	}
	over := Failure{Type: "overflow", Text: fmt.Sprintf("and %d more failures", r.More)}
	return append(r.Failures[:len(r.Failures):len(r.Failures)], over)
}

// Details is the text for an event: the first failure and how many there are.
func (r Report) Details() string {
	switch n := len(r.Failures) + r.More; {
	case n == 0:
		return ""
	case n == 1 || len(r.Failures) == 0:
		return cut(r.List()[0].Text, MaxText)
	default:
		return cut(fmt.Sprintf("%s (and %d more failures)", r.Failures[0].Text, n-1), MaxText)
	}
}

// Merge is the report of a parent: failed when any child failed, all failures within bounds, from the first start to
// the last end. Children that are unpreservable add nothing; of these alone the parent is unpreservable too.
func Merge(children ...Report) Report {
	var out Report
	out.Unpreservable = len(children) > 0
	for _, c := range children {
		if c.Unpreservable {
			continue
		}
		out.Unpreservable = false
		if c.Outcome == Failed {
			out.Outcome = Failed
		}
		for _, f := range c.Failures {
			out.Fail(f)
		}
		out.More += c.More
		if !c.Started.IsZero() && (out.Started.IsZero() || c.Started.Before(out.Started)) {
			out.Started = c.Started
		}
		if c.Ended.After(out.Ended) {
			out.Ended = c.Ended
		}
	}
	if out.Outcome == "" {
		out.Outcome = Done
	}
	return out
}

// bounded is r within the bounds, whoever filled it in.
func (r Report) bounded() Report {
	out := r
	out.Failures, out.More = nil, max(r.More, 0)
	for _, f := range r.Failures {
		out.Fail(f)
	}
	out.Outcome = r.Outcome
	if out.Outcome != Failed {
		out.Outcome = Done
	}
	if len(out.Failures)+out.More > 0 {
		out.Outcome = Failed
	}
	if len(out.Data) > MaxData {
		out.Data = nil
		out.Fail(Failure{Type: "data", Text: fmt.Sprintf("the item's new data has more than %d bytes", MaxData)})
	}
	return out
}

// wire is the JSON form, which child processes write.
type wire struct {
	Outcome     Outcome   `json:"outcome"`
	Failures    []Failure `json:"failures,omitempty"`
	More        int       `json:"more,omitempty"`
	Started     time.Time `json:"started,omitzero"`
	Ended       time.Time `json:"ended,omitzero"`
	Preservable *bool     `json:"preservable,omitempty"` // absent = true

	Data json.RawMessage `json:"data,omitempty"`
}

// MarshalJSON writes the report as a child process would. The error is nil.
func (r Report) MarshalJSON() ([]byte, error) {
	preservable := !r.Unpreservable
	r = r.bounded()
	return json.Marshal(wire{r.Outcome, r.Failures, r.More, r.Started, r.Ended, &preservable, r.Data})
}

// UnmarshalJSON reads the report of a child process; an outcome other than done or failed is an error.
func (r *Report) UnmarshalJSON(text []byte) error {
	var w wire
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	if w.Outcome != Done && w.Outcome != Failed {
		return fmt.Errorf("outcome is %q: want done or failed", w.Outcome)
	}
	*r = Report{w.Outcome, w.Failures, w.More, w.Started, w.Ended, w.Data, w.Preservable != nil && !*w.Preservable}.bounded()
	return nil
}

// cut bounds a text without breaking a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
