package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
)

// Every fault of the table has its test; that each test is there is held by cmd/internal/arch.
func TestFaultsAreAnswered(t *testing.T) {
	text, err := os.ReadFile("faults.go")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 22 {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^//\t%d +\S.*$`, i+1)).FindString(string(text))
		if !strings.Contains(line, "Test") {
			t.Errorf("fault %d names no test: %q", i+1, line)
		}
	}
	storages, err := os.ReadFile(filepath.Join("storage", "faults.go"))
	if err != nil {
		t.Fatal(err)
	}
	unused := []int{14, 19, 36, 38, 44, 45, 47, 54, 72, 84, 96} // numbers without a report
	for i := range 98 {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^//\tB%d +\S.*$`, i+1)).FindString(string(text) + string(storages))
		if strings.Contains(line, "Test") == slices.Contains(unused, i+1) {
			t.Errorf("report B%d: %q", i+1, line)
		}
	}
}

// The write that plans a task hangs: however often the nodes look meanwhile, nobody begins it; once its row is there
// somebody does.
func TestATaskBeginsOnlyWhenItsRowIsThere(t *testing.T) {
	inRig(t, func(r *rig) {
		reached, release := make(chan struct{}), make(chan struct{})
		r.store.BeforeCommit(func(_ context.Context, txn embedded.Txn) {
			for _, p := range txn.Puts {
				if strings.HasPrefix(p.Key, "task/") {
					r.store.BeforeCommit(nil)
					close(reached)
					<-release
				}
			}
		})
		var written atomic.Int64
		r.server.onWrite = func(context.Context, string, int64) error { written.Add(1); return nil }
		r.start("n1", nil, nil)
		r.start("n2", nil, nil)
		planned := make(chan ledger.Task, 1)
		go func() { planned <- r.backup("all") }()
		<-reached
		r.must(pause(r.Context(), time.Hour))
		synctest.Wait()
		if written.Load() != 0 {
			r.Error("a task without a row was begun")
		}
		r.wantObjects("one")
		close(release)
		task := <-planned
		done := r.awaitState(task.ID, ledger.Completed)
		if done.Attempt != 1 || written.Load() == 0 {
			r.Errorf("done: %+v, %d writes of a dump", done, written.Load())
		}
		r.wantWhole("one", done.Token)
	})
}
