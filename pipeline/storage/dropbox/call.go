package dropbox

import (
	"context"
	"errors"
	"net/http"
	"time"
)

const (
	// attempts is how often a request is made at most when it fails as things do that pass.
	attempts = 6
	// refusals is how often it is made at most when the service asks to wait. Each time is as long as it says.
	refusals = 30
	// renewals is how often it is made with another access token; what another caller has renewed meanwhile does not count.
	renewals = 3
	// firstPause doubles with each failure, up to longestPause.
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
)

// call is one request that is made until it succeeds or that cannot help.
type call struct {
	// once makes the request. unclear says that an earlier attempt may have been carried out.
	once func(ctx context.Context, unclear bool) error
	// sure ends the call, but not while its outcome is unclear. nil: its ctx alone does.
	sure context.Context
}

// call makes a request that may be repeated as it is.
func (a *Account) call(ctx context.Context, once func(ctx context.Context) error) error {
	return a.perform(ctx, call{once: func(ctx context.Context, _ bool) error { return once(ctx) }})
}

// perform makes a request until its outcome is known, or nothing helps.
func (a *Account) perform(ctx context.Context, c call) error {
	var h history
	for {
		within := ctx
		if c.sure != nil && !h.unclear {
			within = c.sure
		}
		if err := a.wait(within, max(a.paused(), h.pause)); err != nil {
			return err
		}
		err := c.once(ctx, h.unclear)
		if err == nil || ctx.Err() != nil {
			return err
		}
		next := h.after(err, a.jitter())
		switch {
		case next.stop:
			return err
		case next.everybody:
			a.pause(next.pause)
			next.pause = 0
		case next.token != "":
			if a.spoil(next.token) { // otherwise another caller has noticed before
				next.renewals++
			}
		}
		h = next.history
	}
}

// history is what has become of a request so far.
type history struct {
	failures, refusals int
	renewals           int           // access tokens that were refused
	unclear            bool          // an attempt may have been carried out
	pause              time.Duration // before the next attempt
}

// verdict is what to do after an attempt that failed.
type verdict struct {
	history
	stop      bool
	everybody bool   // the pause is for all that use the account
	token     string // the access token is worth nothing
}

// after decides what follows an error. It is pure; jitter is in [0, 1).
func (h history) after(err error, jitter float64) verdict {
	v := verdict{history: h}
	v.pause = 0
	var e *apiError
	known := errors.As(err, &e)
	switch {
	case known && (e.status == http.StatusTooManyRequests || e.has("too_many_write_operations") || e.has("too_many_requests")):
		v.refusals++
		v.everybody, v.stop = true, v.refusals > refusals
		v.pause = e.after
		if v.pause < 0 {
			v.pause = backOff(v.refusals)
		}
		v.pause += time.Duration(jitter * float64(min(v.pause/10+100*time.Millisecond, 10*time.Second)))
	case known && e.status == http.StatusUnauthorized && !e.has("missing_scope"):
		v.stop, v.token = v.renewals == renewals || e.token == "", e.token
	case !known || e.status == http.StatusConflict && e.tags == "" || // a proxy's
		e.status >= http.StatusInternalServerError && e.status != http.StatusInsufficientStorage:
		v.failures++
		v.unclear, v.stop = true, v.failures >= attempts || final(err)
		v.pause = backOff(v.failures)
		v.pause = v.pause/2 + time.Duration(jitter*float64(v.pause/2))
		if known {
			v.pause = max(v.pause, e.after)
		}
	default:
		v.stop = true
	}
	return v
}

// final tells whether err is a decision of ours, which repeating does not change.
func final(err error) bool {
	var f *finalError
	return errors.As(err, &f)
}

// finalError marks an error as one that is not to be repeated.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// backOff is the pause after the n-th failure, from 1.
func backOff(n int) time.Duration {
	d := firstPause
	for range n - 1 {
		if d *= 2; d >= longestPause {
			return longestPause
		}
	}
	return d
}
