package recovery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fencepost/fencepost/signals"
)

func TestJudge(t *testing.T) {
	boom := errors.New("boom")
	moved := fmt.Errorf("handed over: %w", signals.ErrNotAppointed)
	lost := fmt.Errorf("late: %w", signals.ErrFenceLost)
	fail := func(why string) Failure { return Failure{Why: why} }
	away := func(why string) Failure { return Failure{Why: why, Unavailable: true} }
	for _, tc := range []struct {
		name string
		in   result
		step step
		fail Failure
	}{
		{"done", result{acquired: true}, stepRelease, Failure{}},
		{"released by itself", result{acquired: true, released: true}, stepNone, Failure{}},
		{"released, then an error", result{err: boom, acquired: true, released: true}, stepNone, Failure{}},
		{"error", result{err: boom, acquired: true}, stepFail, fail("boom")},
		{"error before acquire", result{err: boom}, stepFail, fail("boom")},
		{"panic", result{err: &signals.PanicError{Value: 7}}, stepFail, fail("action panicked: 7")},
		{"never acquired", result{}, stepFail, fail("action returned nil without having acquired the fence")},
		{"unavailable", result{err: fmt.Errorf("dial: %w", signals.ErrUnavailable), acquired: true}, stepFail, away("dial: unavailable")},
		{"moved", result{err: boom, acquired: true, cause: moved}, stepNone, Failure{}},
		{"moved, returned nil", result{acquired: true, cause: moved}, stepNone, Failure{}},
		{"lost", result{err: context.Canceled, acquired: true, cause: lost}, stepFail, away("context canceled")},
		{"lost, but finished", result{acquired: true, cause: lost}, stepRelease, Failure{}},
		{"hung", result{err: context.Canceled, acquired: true, cause: errHung}, stepFail, fail("no progress: fence is lost")},
		{"stopped", result{err: context.Canceled, acquired: true, cause: ErrStopped}, stepNone, Failure{}},
		{"stopped, but finished", result{acquired: true, cause: ErrStopped}, stepRelease, Failure{}},
		{"stopped before acquire", result{cause: ErrStopped}, stepNone, Failure{}},
		{"host's context ended", result{err: boom, cause: context.Canceled}, stepNone, Failure{}},
		{"router stopped", result{err: fmt.Errorf("%w: %w", signals.ErrStopped, boom)}, stepNone, Failure{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, f := judge(tc.in)
			if s != tc.step || f != tc.fail {
				t.Errorf("judge = %v, %+v; want %v, %+v", s, f, tc.step, tc.fail)
			}
		})
	}
}

func TestNext(t *testing.T) {
	left := fmt.Errorf("two orphans: %w", signals.ErrWorkLeft)
	for _, tc := range []struct {
		name    string
		step    step
		answer  error
		verdict verdict
		again   bool
		also    string
	}{
		{"released", stepRelease, nil, verdictDone, false, ""},
		{"released too late", stepRelease, signals.ErrNotAppointed, verdictVoid, false, ""},
		{"work left", stepRelease, left, verdictFailed, false, left.Error()},
		{"no quorum", stepRelease, signals.ErrUnavailable, verdictVoid, true, ""},
		{"failure counted", stepFail, nil, verdictFailed, false, ""},
		{"failure too late", stepFail, signals.ErrNotAppointed, verdictVoid, false, ""},
		{"failure without quorum", stepFail, signals.ErrUnavailable, verdictVoid, true, ""},
		{"failure refused", stepFail, errors.New("odd"), verdictFailed, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, again, also := next(tc.step, tc.answer)
			if v != tc.verdict && !again || again != tc.again {
				t.Errorf("next = %v, again %v; want %v, %v", v, again, tc.verdict, tc.again)
			}
			if (also == nil) != (tc.also == "") || also != nil && also.Why != tc.also {
				t.Errorf("also %+v, want %q", also, tc.also)
			}
		})
	}
}

func TestSentenceIsOneBoundedLineOfText(t *testing.T) {
	for _, in := range []string{strings.Repeat("x", 10*maxWhy), strings.Repeat("ü", maxWhy), "x" + strings.Repeat("ü", maxWhy)} {
		got := sentence(errors.New(in))
		if len(got) > maxWhy || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
	if got, want := sentence(errors.New("a\xff\n\n b ")), "a? b"; got != want {
		t.Errorf("sentence %q, want %q", got, want)
	}
}

func TestBackoffDoublesUpToItsBound(t *testing.T) {
	b := newBackoff(200*time.Millisecond, time.Second)
	k, now := key{"c", "r"}, time.Unix(0, 0)
	for i, want := range []time.Duration{200, 400, 800, 1000, 1000} {
		want *= time.Millisecond
		if got := b.failed(k, now); got != want || !b.notBefore[k].Equal(now.Add(want)) {
			t.Errorf("failure %d: pause %v, want %v", i+1, got, want)
		}
	}
	b.succeeded(k)
	if got := b.failed(k, now); got != 200*time.Millisecond {
		t.Errorf("after a success: %v", got)
	}
}

func TestBackoffForgetsInTime(t *testing.T) {
	b := newBackoff(time.Second, time.Second)
	start := time.Unix(0, 0)
	b.failed(key{"c", "old"}, start)
	b.failed(key{"c", "other"}, start.Add(remember))
	if len(b.failures) != 2 {
		t.Errorf("forgotten too early: %v", b.failures)
	}
	b.failed(key{"c", "other"}, start.Add(remember+2*time.Second))
	if len(b.failures) != 1 || len(b.notBefore) != 1 {
		t.Errorf("kept for ever: %v", b.failures)
	}
}

func TestPromiseKept(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	for _, tc := range []struct {
		name            string
		now, last, hold int
		every           int
		want            bool
	}{
		{"no promise", 1000, 0, 0, 0, true},
		{"in time", 10, 5, 0, 5, true},
		{"late", 11, 5, 0, 5, false},
		{"suspended", 60, 5, 100, 5, true},
		{"anew after the suspension", 104, 5, 100, 5, true},
		{"late after the suspension", 106, 5, 100, 5, false},
		{"progress after the suspension", 109, 105, 100, 5, true},
	} {
		if got := promiseKept(at(tc.now), at(tc.last), at(tc.hold), time.Duration(tc.every)*time.Second); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// PROTOCOL 15: what was away for every candidate is not asked for at full speed by one that has not tried yet; each
// appointment pauses once, from when it is learned.
func TestRule15_BackoffByRounds(t *testing.T) {
	b := newBackoff(time.Second, time.Second)
	start := time.Unix(0, 0)
	a := Appointed{Ref: Ref{Component: "c", Run: "r", Index: 7}, Pause: 10 * time.Second}
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	b.rounds([]Appointed{a}, at(0))
	b.rounds([]Appointed{a}, at(5))
	if got := b.notBefore[a.key()]; !got.Equal(at(10)) {
		t.Errorf("the first pause ends at %v", got)
	}
	if p := decide(at(9), []Appointed{a}, nil, b.notBefore); len(p.start) != 0 || !p.wake.Equal(at(10)) {
		t.Errorf("before its end: %+v", p)
	}
	if p := decide(at(10), []Appointed{a}, nil, b.notBefore); len(p.start) != 1 {
		t.Errorf("after its end: %+v", p)
	}
	a.Index = 8
	b.rounds([]Appointed{a}, at(20))
	if got := b.notBefore[a.key()]; !got.Equal(at(30)) {
		t.Errorf("the next appointment's pause ends at %v", got)
	}
	b.rounds(nil, at(21))
	if len(b.paused) != 0 {
		t.Error("a recovery that is over is remembered")
	}
}
