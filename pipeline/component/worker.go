package component

import (
	"context"
	"fmt"
	"time"
)

// Job is one piece of work.
type Job struct {
	Component string    // whose work it is
	Item      Item      // as it was read under the claim
	Token     uint64    // of the claim; goes with every effect of the work
	Attempt   int       // 1 for the first
	Deadline  time.Time // when the context will end
}

// Worker starts work. Func and Exec are workers.
type Worker interface {
	// Start begins the work of a job and returns at once. When ctx ends the work must end soon; context.Cause
	// says why. A result that comes after the time limit is a failure whatever it says; after Stop a success counts, and
	// anything else is as if it had never been. An error says that nothing was started.
	Start(ctx context.Context, j Job) (Work, error)
}

// Work is work that goes on.
type Work interface {
	// Wait returns when nothing of the work runs any more, which is proof: what may still run must not return. The
	// error says why there is no report. It is called once.
	Wait() (Report, error)
	// Kill ends the work by force, if there is any, and returns at once; Wait tells whether it helped.
	Kill()
}

// Func is work in a goroutine. A goroutine cannot be killed: a Func that does not return when its context ends keeps its
// claim, with an alarm, until it does. A panic is a failure, and the item's.
type Func func(ctx context.Context, j Job) (Report, error)

// Start implements Worker. The error is nil: f's own comes from Wait.
func (f Func) Start(ctx context.Context, j Job) (Work, error) {
	w := &funcWork{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer func() {
			if p := recover(); p != nil {
				w.report, w.err = Report{}, fmt.Errorf("worker panicked: %v", p)
			}
		}()
		w.report, w.err = f(ctx, j)
	}()
	return w, nil
}

type funcWork struct {
	done   chan struct{}
	report Report
	err    error
}

func (w *funcWork) Wait() (Report, error) {
	<-w.done
	return w.report, w.err
}

func (w *funcWork) Kill() {}
