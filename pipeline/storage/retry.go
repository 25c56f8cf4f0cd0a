package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"time"
)

// RetryOptions bound the repetition of failed calls.
type RetryOptions struct {
	// Attempts is how often a call is made at most, the first included. 0 means 6; 1 never repeats.
	Attempts int
	// First is the upper bound of the pause before the second attempt; it doubles for each further one. 0 means 500 ms.
	First time.Duration
	// Longest bounds the pause. 0 means 30 s. With the defaults a call gives up after at most about 16 s of pauses.
	Longest time.Duration
	// Wait passes d or returns the cause when ctx ends earlier. nil means a timer; tests put their own here.
	Wait func(ctx context.Context, d time.Duration) error
	// Jitter returns a number in [0, 1). nil means a random one. A pause is between half of its bound and all of it.
	Jitter func() float64
}

// Retry wraps s so that calls which failed with an unclassified error are repeated with growing, jittered pauses. The
// classes of this package and the end of ctx are final. A Put is repeated only when its reader was not touched or is a
// Rewinder; a Put that was repeated may answer ErrExists or ErrStale because an earlier attempt had worked. Get repeats
// the opening, not the reading. A listing goes on behind the last name that it has shown.
func Retry(s Storage, o RetryOptions) Wrapper {
	if o.Attempts <= 0 {
		o.Attempts = 6
	}
	if o.First <= 0 {
		o.First = 500 * time.Millisecond
	}
	if o.Longest <= 0 {
		o.Longest = 30 * time.Second
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	return &retry{Storage: s, o: o}
}

type retry struct {
	Storage
	o RetryOptions
}

func (s *retry) Unwrap() Storage { return s.Storage }

// Final tells whether repeating a call that failed with err cannot help: err is of a class, or a context ended.
func Final(err error) bool {
	for _, class := range []error{ErrNotFound, ErrExists, ErrStale, ErrPermanent, ErrNoOwner, ErrForeign,
		context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}

// pause is the time before attempt n+1 (n ≥ 1): First·2^(n-1), at most Longest, times 0.5 to 1.
func (o RetryOptions) pause(n int) time.Duration {
	d := o.First
	for range n - 1 {
		if d >= o.Longest/2 {
			d = o.Longest
			break
		}
		d *= 2
	}
	d = min(d, o.Longest)
	return d/2 + time.Duration(o.Jitter()*float64(d/2))
}

// do makes call until it succeeds, its error is final, ctx has ended, again says no, or the attempts are used up.
func (s *retry) do(ctx context.Context, call func() error, again func() bool) error {
	for n := 1; ; n++ {
		err := call()
		switch {
		case err == nil || Final(err):
			return err
		case ctx.Err() != nil: // the reason why it is not tried again
			return fmt.Errorf("%w (last error: %w)", context.Cause(ctx), err)
		case !again():
			return err
		}
		if n == s.o.Attempts {
			return fmt.Errorf("after %d attempts: %w", n, err)
		}
		if waitErr := s.o.Wait(ctx, s.o.pause(n)); waitErr != nil {
			return fmt.Errorf("%w (last error: %w)", waitErr, err)
		}
	}
}

func always() bool { return true }

// wait passes d, or returns the cause of ctx's end.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *retry) Put(ctx context.Context, name string, r io.Reader, c Condition) (Info, error) {
	var info Info
	in := &touched{r: r}
	err := s.do(ctx, func() (err error) {
		info, err = s.Storage.Put(ctx, name, in, c)
		return err
	}, in.rewind)
	return info, err
}

// touched notes whether a reader was read from.
type touched struct {
	r    io.Reader
	read bool
}

func (t *touched) Read(p []byte) (int, error) {
	t.read = true
	return t.r.Read(p)
}

// rewind makes the reader whole again and tells whether it is.
func (t *touched) rewind() bool {
	if !t.read {
		return true
	}
	if rw, ok := t.r.(Rewinder); ok && rw.Rewind() == nil {
		t.read = false
		return true
	}
	return false
}

func (s *retry) Get(ctx context.Context, name string) (io.ReadCloser, Info, error) {
	var r io.ReadCloser
	var info Info
	err := s.do(ctx, func() (err error) {
		r, info, err = s.Storage.Get(ctx, name)
		return err
	}, always)
	return r, info, err
}

func (s *retry) Stat(ctx context.Context, name string) (Info, error) {
	var info Info
	err := s.do(ctx, func() (err error) {
		info, err = s.Storage.Stat(ctx, name)
		return err
	}, always)
	return info, err
}

func (s *retry) Delete(ctx context.Context, name string) error {
	return s.do(ctx, func() error { return s.Storage.Delete(ctx, name) }, always)
}

func (s *retry) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		last, stopped := "", false
		err := s.do(ctx, func() error {
			for info, err := range s.Storage.List(ctx, prefix) {
				if err != nil {
					return err
				}
				if info.Name <= last { // shown by an earlier attempt
					continue
				}
				last = info.Name
				if !yield(info, nil) {
					stopped = true
					return nil
				}
			}
			return nil
		}, always)
		if err != nil && !stopped {
			yield(Info{}, err)
		}
	}
}
