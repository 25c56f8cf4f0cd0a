package recovery

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fencepost/fencepost/signals"
)

// result is what is known when an action has returned.
type result struct {
	err      error // of the action
	acquired bool  // it raised the fence
	released bool  // it lowered the fence
	cause    error // why its context had ended by then; nil: it had not
}

// step is what to tell the log.
type step int

const (
	stepNone    step = iota // the result counts for nothing, or all is told
	stepRelease             // lower the fence
	stepFail                // report failure
)

// errHung: the action promised progress and gave none.
var errHung = fmt.Errorf("no progress: %w", signals.ErrFenceLost)

// judge decides what an action's end means (PROTOCOL 14, 15).
func judge(r result) (step, Failure) {
	switch {
	case r.released:
		return stepNone, Failure{}
	case errors.Is(r.cause, signals.ErrNotAppointed):
		return stepNone, Failure{}
	case r.err == nil && r.acquired:
		return stepRelease, Failure{}
	case r.cause != nil && !errors.Is(r.cause, signals.ErrFenceLost), errors.Is(r.err, signals.ErrStopped):
		// Interrupted by a stop, not failed: the log hands the recovery over when this run is closed.
		return stepNone, Failure{}
	case r.err == nil:
		return stepFail, Failure{Why: "action returned nil without having acquired the fence"}
	case errors.Is(r.cause, errHung):
		return stepFail, Failure{Why: r.cause.Error()}
	case errors.Is(r.cause, signals.ErrFenceLost), isAny(r.err, signals.ErrUnavailable, signals.ErrFenceLost):
		// A fence that was not renewed in time says something about the group, not about the action.
		return stepFail, Failure{Unavailable: true, Why: sentence(r.err)}
	default:
		return stepFail, Failure{Why: sentence(r.err)}
	}
}

// verdict is what one delivery came to.
type verdict int

const (
	verdictDone   verdict = iota // the recovery has ended
	verdictVoid                  // not ours any more, or nothing to tell
	verdictFailed                // to be delivered again unless it moves
)

// String names the verdict in the log.
func (v verdict) String() string { return [...]string{"done", "void", "failed"}[v] }

// next decides what the log's answer to a step means. again: repeat the step; also: report this failure instead.
func next(s step, answer error) (v verdict, again bool, also *Failure) {
	switch {
	case errors.Is(answer, signals.ErrNotAppointed):
		return verdictVoid, false, nil
	case errors.Is(answer, signals.ErrUnavailable):
		return verdictVoid, true, nil
	case s == stepRelease && answer == nil:
		return verdictDone, false, nil
	case s == stepRelease:
		return verdictFailed, false, &Failure{Why: sentence(answer)}
	default:
		return verdictFailed, false, nil
	}
}

func isAny(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// maxWhy bounds what a failure says in the log of the group, in bytes.
const maxWhy = 240

// sentence is what err says, as one bounded line of valid text.
func sentence(err error) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	if len(s) > maxWhy {
		s = strings.ToValidUTF8(s[:maxWhy-len("…")], "") + "…"
	}
	return s
}
