package bench

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sampleReport() Report {
	r := Report{Date: time.Date(2026, 12, 1, 1, 2, 3, 0, time.UTC), Version: "v1", Machine: Machine{Processors: 2, Memory: 8 << 30, System: "linux"}, Facts: map[string]string{}}
	r.Add(Output{
		Samples: []Sample{{Name: "A", Rounds: 1, Metrics: map[string]float64{"p50-ms": 10.1234, "p99-ms": 4321.5}}},
		Facts:   map[string]string{"etcd": "v3"},
	})
	r.Verdicts = Judge([]Row{
		{What: "first", Goals: []Goal{{Of: Metric{"A", "p50-ms"}, Bound: 15}, {Of: Metric{"A", "p99-ms"}, Bound: 60}}},
		{What: "second", Unmeasured: "≤ 1 s"},
	}, r.Samples)
	return r
}

func TestPrint(t *testing.T) {
	var b strings.Builder
	r := sampleReport()
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	want := `2026-12-01, v1, 2 processors, 8 GiB, linux

WHAT    GOAL     MEASURED  PEER  RATIO  ANSWER
first   ≤ 15 ms  10.1 ms   –     0.675  met
        ≤ 60 ms  4322 ms   –     72     not met
second  ≤ 1 s    –         –     –      not measured

1 met, 1 not met, 1 not measured
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestWrite(t *testing.T) {
	r := sampleReport()
	path, err := r.Write(t.TempDir() + "/deep")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Error(diff)
	}
}
