package gms

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or a node when a test has started this program as one. Groups mostly wait for their own
// time-outs: more of them than processors run beside each other, unless -parallel says how many.
func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		os.Exit(runProcess())
	}
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := p.Value.Set(strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
