package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A storage that makes no progress for stall is left behind if the others are enough without it. If they are not, the
// whole attempt would be lost with it: then it has many times as long, since a service may ask to wait for minutes, and
// gives up by itself if there is no hope. The last step of a Put moves no bytes, and may take a while too.
const (
	patience = 10 // times stall, for one that cannot be spared
	atEnd    = 5  // times stall, for the last step of a Put
	looks    = 12 // times within stall that those which are not looked after by the writer are looked at
)

var errStalled = errors.New("takes no data")

func (f *fanout) lag(s *sink, d time.Duration) {
	why := fmt.Errorf("%w for %s", errStalled, d.Round(time.Second))
	if s.whole.Load() {
		why = fmt.Errorf("does not end for %s after the last byte: %w", d.Round(time.Second), errStalled)
	}
	s.fail(&storageError{name: s.name, err: why})
}

// spare tells whether n of the living sinks can be done without.
func (f *fanout) spare(n int) bool {
	living := 0
	for _, s := range f.sinks {
		if s.failure() == nil {
			living++
		}
	}
	return living-n >= f.need
}

// failLaggards fails the sinks that have taken least, after the writer has waited that many times stall.
func (f *fanout) failLaggards(waits int) {
	var last []*sink
	for _, s := range f.sinks {
		switch {
		case s.failure() != nil:
		case len(last) > 0 && s.taken.Load() > last[0].taken.Load():
		case len(last) > 0 && s.taken.Load() == last[0].taken.Load():
			last = append(last, s)
		default:
			last = []*sink{s}
		}
	}
	if waits < patience && !f.spare(len(last)) {
		return
	}
	for _, s := range last {
		f.lag(s, time.Duration(waits)*f.stall)
	}
}

// drain waits until all Puts have returned, when the stream is complete: nobody waits for a free block then, so here is
// looked after those that stall in what is left, or in their last step.
func (f *fanout) drain(done <-chan struct{}) {
	ticker := time.NewTicker(max(f.stall/looks, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		for _, s := range f.sinks {
			bound := f.stall
			if s.whole.Load() {
				bound = atEnd * f.stall
			}
			if !f.spare(1) {
				bound = patience * f.stall
			}
			if idle := s.idle(); idle >= bound && !s.over.Load() && s.failure() == nil {
				f.lag(s, idle)
			}
		}
	}
}

// inTime runs do for each of n storages at once, need of which are enough: when so many have succeeded, the others have
// stall left; when not, they have many times as long. It returns when all have ended.
func inTime(ctx context.Context, n, need int, stall time.Duration, do func(ctx context.Context, i int) error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make(chan error)
	for i := range n {
		go func() { results <- do(ctx, i) }() // ends with its result, which is waited for
	}
	timer := time.NewTimer(patience * stall)
	defer timer.Stop()
	good := 0
	for left := n; left > 0; {
		select {
		case err := <-results:
			left--
			if err == nil {
				if good++; good == need {
					timer.Reset(stall)
				}
			}
		case <-timer.C:
			cancel(errStalled)
		}
	}
}
