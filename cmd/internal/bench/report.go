package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is everything of one call of the program.
type Report struct {
	Date     time.Time         `json:"date"`
	Version  string            `json:"version"` // of the sources
	Quick    bool              `json:"quick"`   // a trial of the measurements: its numbers mean nothing
	Machine  Machine           `json:"machine"`
	Facts    map[string]string `json:"facts"` // versions of peers and programs
	Samples  []Sample          `json:"samples"`
	Verdicts []Verdict         `json:"verdicts"`
	Failed   []string          `json:"failed,omitempty"` // runs that did not end well
}

// Add takes what a run printed.
func (r *Report) Add(o Output) {
	r.Samples = append(r.Samples, o.Samples...)
	for k, v := range o.Facts {
		r.Facts[k] = v
	}
}

// Print writes the table for people.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s, %s\n", r.Date.UTC().Format(time.DateOnly), r.Version, r.Machine)
	if r.Quick {
		fmt.Fprintln(w, "A trial of the measurements: these numbers mean nothing.")
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tGOAL\tMEASURED\tPEER\tRATIO\tANSWER")
	last, answers := "", map[Answer]int{}
	for _, v := range r.Verdicts {
		answers[v.Answer]++
		what := v.What
		if what == last {
			what = ""
		}
		last = v.What
		unit := v.Metric[strings.LastIndexByte(v.Metric, ' ')+1:]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", what, v.Goal, number(v.Measured, unit), number(v.Peer, unit), number(v.Ratio, ""), v.Answer)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d met, %d not met, %d not measured\n", answers[Met], answers[NotMet], answers[NotMeasured])
	return err
}

// Write puts the report into a file of the folder, named by its date, and says where.
func (r *Report) Write(dir string) (path string, err error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode the report: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a place for the report: %w", err)
	}
	path = filepath.Join(dir, r.Date.UTC().Format("2006-01-02T150405")+".json")
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("write the report: %w", err)
	}
	return path, nil
}

func number(v *float64, unit string) string {
	if v == nil {
		return "–"
	}
	return strings.TrimSpace(short(*v) + " " + label(unit))
}

// label is the unit itself of a metric's: "ms" of "p50-ms".
func label(unit string) string { return unit[strings.LastIndexByte(unit, '-')+1:] }

// short is a number with three digits that count, and all digits before the point.
func short(v float64) string {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	scale := math.Pow(10, float64(digits))
	return strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64)
}
