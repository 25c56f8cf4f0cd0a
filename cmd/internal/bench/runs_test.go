package bench

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRunsFindBenchmarks: the tables name benchmarks that are there. Every run matches one in its package, and every metric of
// a goal is of a benchmark that some run matches.
func TestRunsFindBenchmarks(t *testing.T) {
	alone, beside := Plan(Runs, Options{}), Plan(Runs, Options{Peers: true})
	found := map[string]bool{}
	for _, r := range slices.Concat(alone, beside) {
		names := benchmarksIn(t, filepath.Join("../../..", r.Module, r.Package))
		function, _, _ := strings.Cut(r.Bench, "/")
		match := regexp.MustCompile("^" + function)
		names = slices.DeleteFunc(names, func(n string) bool { return !match.MatchString(n) })
		if len(names) == 0 {
			t.Errorf("run %s: no benchmark of %s matches %s", r.Name, r.Package, r.Bench)
		}
		for _, n := range names {
			found[n] = true
		}
	}
	for _, row := range Rows {
		if (len(row.Goals) == 0) == (row.Unmeasured == "") {
			t.Errorf("%s: want either goals, or words for what has no measurement", row.What)
		}
		for _, g := range row.Goals {
			for _, m := range []Metric{g.Of, g.Per} {
				if name, _, _ := strings.Cut(m.Bench, "/"); m != (Metric{}) && !found[name] {
					t.Errorf("%s: no run measures %s", row.What, m)
				}
			}
			if (g.Per == (Metric{})) != (row.Against == "") {
				t.Errorf("%s: %s and against %q do not fit", row.What, g, row.Against)
			}
		}
	}
}

func benchmarksIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func Benchmark(\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	return names
}

func TestPlan(t *testing.T) {
	runs := []Run{
		{Name: "a", Quick: "1x", Time: "9x"},
		{Name: "ab", Time: "9x", Beside: &Run{Name: "ab", Module: "peers"}},
	}
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{}, "a ab"},
		{Options{Peers: true}, "a ab@peers"},
		{Options{Quick: true}, "a"},
		{Options{Only: "b"}, "ab"},
		{Options{Only: "x"}, ""},
	} {
		var got []string
		for _, r := range Plan(runs, c.options) {
			name := r.Name
			if r.Module != "" {
				name += "@" + r.Module
			}
			got = append(got, name)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%+v: %q", c.options, s)
		}
	}
}

func TestArgs(t *testing.T) {
	r := Run{Name: "x", Bench: "X", Time: "9x", Quick: "1x", Package: "./p", Sized: true, Full: []string{"-members=50"}}
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{DumpMB: 8, Profile: "/p"}, "test -run none -bench X -benchtime 9x -timeout 60m -cpuprofile /p/x.cpu -memprofile /p/x.mem -o /p/x.test ./p -dump-mb=8 -members=50"},
		{Options{DumpMB: 2048}, "test -run none -bench X -benchtime 9x -timeout 60m ./p -dump-mb=2048 -members=50"},
		{Options{DumpMB: 2048, Quick: true}, "test -run none -bench X -benchtime 1x -timeout 60m ./p -dump-mb=16"},
		{Options{DumpMB: 8, Quick: true}, "test -run none -bench X -benchtime 1x -timeout 60m ./p -dump-mb=8"},
	} {
		if got := strings.Join(r.Args(c.options), " "); got != c.want {
			t.Errorf("%+v: %s", c.options, got)
		}
	}
}
