package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	const text = `goos: linux
cpu: Some Processor @ 2.10GHz
BenchmarkLocks/etcd/clients=64-2         	   12345	     81000 ns/op	         3.250 p50-ms	     12345.0 pairs/s
etcd: v3.7.3
BenchmarkKilledNode-2                    	BenchmarkKilledNode: ms after the kill, 1 deaths, 1 by obituary
  raised     p50    9.1  p99    9.1  worst    9.1  the fence is raised
BenchmarkKilledNode: ms after the kill, 200 deaths, 200 by obituary
  raised     p50   10.1  p99   19.1  worst   22.1  the fence is raised
     200	        10.10 p50-ms	        19.10 p99-ms
2026/12/01 00:00:00 n1 says 3 things
BenchmarkBroken-2
--- FAIL: BenchmarkBroken-2
    x_test.go:1: 17 3 apples
BenchmarkAlone 	       1	         0 ns/op
PASS
ok  	example	10.0s
`
	got, err := Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := Output{
		Samples: []Sample{
			{Name: "Locks/etcd/clients=64", Rounds: 12345, Metrics: map[string]float64{"ns/op": 81000, "p50-ms": 3.25, "pairs/s": 12345}},
			{Name: "KilledNode", Rounds: 200, Metrics: map[string]float64{"p50-ms": 10.1, "p99-ms": 19.1}},
			{Name: "Alone", Rounds: 1, Metrics: map[string]float64{"ns/op": 0}},
		},
		Facts: map[string]string{"goos": "linux", "cpu": "Some Processor @ 2.10GHz", "etcd": "v3.7.3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
