package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// told are the lines of a task, with who tells them.
func (r *rig) told(id string) (lines []string) {
	r.Helper()
	log, err := r.led.Log(r.Context(), id)
	r.must(err)
	for _, l := range log.Lines {
		lines = append(lines, fmt.Sprintf("%d %s %s: %s", l.Attempt, l.Node, l.Level, l.Text))
	}
	return lines
}

// wantTold demands lines in this order, whatever is told between them.
func (r *rig) wantTold(id string, want ...string) {
	r.Helper()
	told := r.told(id)
	for _, w := range want {
		i := slices.IndexFunc(told, func(line string) bool { return strings.Contains(line, w) })
		if i < 0 {
			r.Fatalf("nothing says %q (after what came before) in:\n%s", w, strings.Join(r.told(id), "\n"))
		}
		told = told[i+1:]
	}
}

// What happened to a task can be read where the task is, whoever did it: each attempt, its stages, and why it ended.
func TestTaskLog(t *testing.T) {
	inRig(t, func(r *rig) {
		var calls atomic.Int32
		r.server.onDump = func(context.Context) error {
			if calls.Add(1) == 1 {
				return fmt.Errorf("server is being restarted: %w", source.ErrUnavailable)
			}
			return nil
		}
		r.start("n1", nil, nil)
		done := r.awaitState(r.backup("all").ID, ledger.Completed)
		r.wantNoClaims()
		r.wantTold(done.ID, "1 n1 info: attempt begins", "1 n1 info: creating", "1 n1 info: attempt ended, state planned: start dump of shop: server is being restarted",
			"2 n1 info: attempt begins", "2 n1 info: uploading", "2 n1 info: task completed")
	})
}

// The heir of a dead node tells what it found and did; the dead one's lines stay, as far as they were written.
func TestTaskLogOfARecovery(t *testing.T) {
	inRig(t, func(r *rig) {
		hook, reached, _ := blockAt(128 << 10)
		r.server.onWrite = hook
		dead := r.start("n1", nil, nil)
		id := r.backup("all").ID
		<-reached
		r.must(pause(r.Context(), time.Minute)) // the dead node's lines are written at intervals
		row, err := r.led.Task(r.Context(), id)
		r.must(err)
		dead.kill(row.Token)
		heir := r.start("n2", nil, nil)
		_, claim, err := r.recoverBy(heir, dead, row)
		r.must(err)
		r.must(heir.w.Resume(r.Context(), claim))
		r.awaitState(id, ledger.Completed)
		r.wantNoClaims()
		r.wantTold(id, "1 n1 info: attempt begins", "2 n2 info: task settled", "2 n2 info: attempt begins", "2 n2 info: task completed")
	})
}

// A ledger that is away takes no line, and loses none: they come when it is back.
func TestTaskLogOutlastsTheLedger(t *testing.T) {
	inRig(t, func(r *rig) {
		hook, reached, goOn := blockAt(128 << 10)
		r.server.onWrite = hook
		led := &deaf{Ledger: r.led}
		r.start("n1", func(c *Config) { c.Ledger = led }, nil)
		led.away.Store(true)
		id := r.backup("all").ID
		<-reached
		r.must(pause(r.Context(), 10*time.Minute))
		if lines := r.told(id); len(lines) != 0 {
			r.Errorf("told while the ledger was away: %q", lines)
		}
		led.away.Store(false)
		close(goOn)
		r.awaitState(id, ledger.Completed)
		r.wantNoClaims()
		r.wantTold(id, "attempt begins", "creating", "uploading", "task completed")
	})
}

// deaf takes no lines while it is away.
type deaf struct {
	ledger.Ledger
	away atomic.Bool
}

func (l *deaf) AppendLog(ctx context.Context, g ledger.Guard, lines []ledger.LogLine) error {
	if l.away.Load() {
		return errors.Join(ledger.ErrUnavailable, errBoom)
	}
	return l.Ledger.AppendLog(ctx, g, lines)
}

func TestNextRate(t *testing.T) {
	for _, c := range []struct {
		last, n int64
		d       time.Duration
		want    int64
	}{
		{0, 2000, 2 * time.Second, 1000},
		{1000, 6000, 2 * time.Second, 2000},
		{1000, 0, time.Second, 0},
		{1000, 10, 0, 0},
		{0, -5, time.Second, 0},
	} {
		if got := nextRate(c.last, c.n, c.d); got != c.want {
			t.Errorf("nextRate(%d, %d, %s) = %d, want %d", c.last, c.n, c.d, got, c.want)
		}
	}
}
