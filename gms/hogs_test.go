package gms

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// hogEnv makes this program take a processor whole until it is killed.
const hogEnv = "FENCEPOST_TEST_HOG"

func hog() {
	for n := uint64(0); ; n++ {
		_ = n * n
	}
}

// Four programs that take all they get, beside five nodes of profile lan on two processors, for a minute: no run is closed.
func TestHogsCloseNobody(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (a minute on all processors)")
	}
	tg := newTestGroup(t, 5)
	p := startProcesses(t, tg)
	for _, name := range tg.names {
		p.await(name+" standing", func(e event) bool { return e.What == "standing" && e.Node == name })
	}
	for range 4 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), hogEnv+"=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	minute := time.NewTimer(time.Minute)
	defer minute.Stop()
	for over := false; !over; {
		select {
		case e := <-p.events:
			p.seen = append(p.seen, e)
			if e.What == "failure" {
				t.Errorf("%s heard that a run of %s was closed: %s", e.Node, e.About, e.Evidence)
			}
		case <-minute.C:
			over = true
		}
	}
}
