package gms

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or a node when a test has started this program as one. Groups mostly wait for their own
// time-outs: more of them than processors run beside each other, unless -parallel says how many.
func TestMain(m *testing.M) {
	if os.Getenv(hogEnv) != "" {
		hog()
	}
	if os.Getenv(processEnv) != "" {
		os.Exit(runProcess())
	}
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := p.Value.Set(strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if code == 0 {
		code = leaks()
	}
	os.Exit(code)
}

// leaks looks for goroutines that nobody waits for. A probe of gossip that is under way when its node stops is not one: the
// library offers no way to end it before its time-out (package gms/internal/gossip), which grows on a busy machine; that it
// ends is seen by every test in a bubble.
func leaks() int {
	if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode")); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left:", err)
		return 1
	}
	return 0
}
