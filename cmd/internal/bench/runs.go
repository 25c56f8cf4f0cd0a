package bench

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Options of a call of the program.
type Options struct {
	Only   string // runs whose names hold this word; "" is all
	Peers  bool   // measure the peers too
	Quick  bool   // a trial: few rounds of each, on little data
	DumpMB int    // size of the dump that is made and restored; of a trial at most 16

	// Profile is the folder into which each run puts profiles of its processor time and of its allocations, and the program
	// that they are of; "" is none. Servers of the locks put theirs beside them; nodes that are daemons make none.
	Profile string
}

// ServerProfiles names the environment variable with that folder, for servers that a benchmark starts from its own program.
const ServerProfiles = "FENCEPOST_BENCH_PROFILES"

// Run is one call of the go command.
type Run struct {
	Name    string
	Module  string   // the folder it is called in, relative to the top; "" is the top
	Package string   // as the go command takes it there
	Bench   string   // a pattern, as the go command takes it
	Time    string   // how long or how often, as -benchtime
	Quick   string   // the same for a trial; "" leaves it out of one
	Sized   bool     // it takes the flag -dump-mb
	Full    []string // flags that make it as large as is promised; a trial is small
	Beside  *Run     // what is called instead when peers are measured too: the same, and the peers in turn with it
}

// Args of the go command.
func (r Run) Args(o Options) []string {
	time, size := r.Time, o.DumpMB
	if o.Quick {
		time, size = r.Quick, min(size, 16)
	}
	args := []string{"test", "-run", "none", "-bench", r.Bench, "-benchtime", time, "-timeout", "60m"}
	if o.Profile != "" {
		to := func(what string) string { return filepath.Join(o.Profile, r.Name+what) }
		args = append(args, "-cpuprofile", to(".cpu"), "-memprofile", to(".mem"), "-o", to(".test"))
	}
	args = append(args, r.Package)
	if r.Sized {
		args = append(args, fmt.Sprintf("-dump-mb=%d", size))
	}
	if !o.Quick {
		args = append(args, r.Full...)
	}
	return args
}

// Plan lists what is called, in order.
func Plan(runs []Run, o Options) []Run {
	var out []Run
	for _, r := range runs {
		if o.Peers && r.Beside != nil {
			r = *r.Beside
		}
		if strings.Contains(r.Name, o.Only) && (!o.Quick || r.Quick != "") {
			out = append(out, r)
		}
	}
	return out
}

// Runs is everything that is measured.
var Runs = []Run{
	{Name: "killed-node", Package: "./cmd/internal/e2e", Bench: "KilledNode$", Time: "200x", Quick: "1x"},
	{Name: "killed-leader", Package: "./cmd/internal/e2e", Bench: "KilledLeader$", Time: "100x", Quick: "1x"},
	{
		Name: "locks", Package: "./cmd/internal/bench/locks", Bench: "Locks$", Time: "10s", Quick: "100x",
		Beside: &Run{Name: "locks", Module: "cmd/internal/bench/peers", Package: ".", Bench: "Locks$", Time: "10s", Quick: "100x"},
	},
	{
		Name: "dumps", Package: "./cmd/internal/e2e", Bench: "Dump$/./^(fencepost|three)$", Time: "1x", Quick: "1x", Sized: true,
		Beside: &Run{Name: "dumps", Package: "./cmd/internal/e2e", Bench: "Dump$", Time: "1x", Quick: "1x", Sized: true},
	},
	{Name: "idle", Package: "./cmd/internal/e2e", Bench: "Idle$", Time: "60x", Quick: "2x"},
	{Name: "start", Package: "./cmd/internal/e2e", Bench: "Start$", Time: "20x", Quick: "1x"},
	{Name: "planned-stop", Package: "./gms", Bench: "PlannedStop$", Time: "50x", Quick: "2x"},
	{Name: "crowd", Package: "./cmd/internal/e2e", Bench: "Crowd$", Time: "20x", Quick: "1x", Full: []string{"-members=50"}},
	{Name: "ledger", Package: "./cmd/internal/e2e", Bench: "Ledger$", Time: "200x", Quick: "5x", Full: []string{"-tasks=1000000"}},
	{Name: "components", Package: "./cmd/internal/app", Bench: "Component$", Time: "1x"},
}
