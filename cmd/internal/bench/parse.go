package bench

import (
	"bufio"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Sample is what one benchmark reported.
type Sample struct {
	Name    string             `json:"name"`       // without "Benchmark" and without the number of processors
	Rounds  int                `json:"iterations"` // of the benchmark's loop
	Metrics map[string]float64 `json:"metrics"`    // by unit
}

// Output is what a run of the go command printed, as far as it concerns benchmarks.
type Output struct {
	Samples []Sample
	Facts   map[string]string // lines "key: value" before or between them: versions, the processor
}

var (
	benchName = regexp.MustCompile(`^Benchmark([A-Z][^\s:]*?)(?:-\d+)?(?:\s|$)`)
	fact      = regexp.MustCompile(`^([a-z][a-z0-9-]*): (\S.*)$`)
)

// Parse reads what the go command prints with -bench. What a benchmark itself prints comes between its name and its results,
// on the same line or on lines of its own; it is skipped.
func Parse(r io.Reader) (Output, error) {
	out := Output{Facts: map[string]string{}}
	name := ""
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := fact.FindStringSubmatch(line); m != nil {
			out.Facts[m[1]] = m[2]
			continue
		}
		if m := benchName.FindStringSubmatch(line); m != nil {
			name, line = m[1], strings.TrimPrefix(line, strings.TrimSpace(m[0]))
		}
		if rounds, metrics, ok := results(line); ok && name != "" {
			out.Samples = append(out.Samples, Sample{Name: name, Rounds: rounds, Metrics: metrics})
			name = ""
		}
	}
	return out, lines.Err()
}

// results reads a count and pairs of value and unit; ok is false when the line is anything else.
func results(line string) (rounds int, metrics map[string]float64, ok bool) {
	f := strings.Fields(line)
	if len(f) < 3 || len(f)%2 == 0 {
		return 0, nil, false
	}
	rounds, err := strconv.Atoi(f[0])
	if err != nil {
		return 0, nil, false
	}
	metrics = map[string]float64{}
	for i := 1; i < len(f); i += 2 {
		value, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return 0, nil, false
		}
		metrics[f[i+1]] = value
	}
	return rounds, metrics, true
}
