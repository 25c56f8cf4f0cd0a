package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// What this program is told to be, instead of the tests.
const (
	guestEnv    = "FENCEPOST_CHAOS_GUEST"    // a host app: its guestSetup
	resourceEnv = "FENCEPOST_CHAOS_RESOURCE" // the resource: its address
)

// Settings that nodes and host apps share.
const (
	fenceTTL = 5 * time.Second
	attempts = 10
)

var daemon, command string // the built fencepostd and fencepost

func TestMain(m *testing.M) {
	if setup := os.Getenv(guestEnv); setup != "" {
		os.Exit(guestMain(setup))
	}
	if address := os.Getenv(resourceEnv); address != "" {
		os.Exit(resourceMain(address))
	}
	os.Exit(builtFirst(m))
}

// builtFirst builds the programs, with the mutant that is asked for, before the tests.
func builtFirst(m *testing.M) int {
	dir, err := tempDir("bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	daemon, command = filepath.Join(dir, "fencepostd"), filepath.Join(dir, "fencepost")
	build := exec.Command("go", "build", "-o", dir, "-tags", buildTags(), "../../fencepostd", "../../fencepost")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
