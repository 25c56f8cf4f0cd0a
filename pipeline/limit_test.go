package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

func TestLimitOf(t *testing.T) {
	at := time.Unix(1_900_000_000, 0)
	took := func(s ledger.State, d time.Duration) ledger.Task {
		return ledger.Task{State: s, Begun: at, Finished: at.Add(d)}
	}
	for name, c := range map[string]struct {
		earlier []ledger.Task
		want    time.Duration
	}{
		"the first":          {nil, 24 * time.Hour},
		"short ones":         {[]ledger.Task{took(ledger.Completed, time.Hour), took(ledger.Completed, 7*time.Hour)}, 24 * time.Hour},
		"a long one":         {[]ledger.Task{took(ledger.Completed, time.Hour), took(ledger.Completed, 10*time.Hour)}, 30 * time.Hour},
		"failed ones":        {[]ledger.Task{took(ledger.Failed, 40*time.Hour), took(ledger.Cancelled, 50*time.Hour)}, 24 * time.Hour},
		"of an older ledger": {[]ledger.Task{{State: ledger.Completed, Finished: at}}, 24 * time.Hour},
	} {
		if got := limitOf(c.earlier); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Nobody has set a limit: a first attempt that hangs ends after a day, and one whose kind has taken ten hours before after
// thirty.
func TestTimeLimitByItself(t *testing.T) {
	inRig(t, func(r *rig) {
		hangs := func(limit time.Duration) {
			r.Helper()
			hook, reached, _ := blockAt(128 << 10)
			r.server.onWrite = hook
			id := r.backup("all").ID
			<-reached
			began := time.Now()
			r.must(pause(r.Context(), limit-time.Minute))
			if row, err := r.led.Task(r.Context(), id); err != nil || row.State.Final() {
				r.Errorf("before the limit: %+v, %v", row, err)
			}
			done := r.awaitState(id, ledger.Failed)
			if took := time.Since(began); took > limit+time.Minute || !strings.Contains(done.Error, "time limit") {
				r.Errorf("it ended after %s: %s", took, done.Error)
			}
		}
		r.start("n1", func(c *Config) { // looks seldom, so that days are short
			c.PollEvery, c.ProgressEvery, c.ErrorsEvery = time.Hour, time.Hour, time.Hour
		}, nil)
		hangs(24 * time.Hour)

		hook, reached, goOn := blockAt(128 << 10)
		r.server.onWrite = hook
		slow := r.backup("all").ID
		<-reached
		r.must(pause(r.Context(), 10*time.Hour))
		close(goOn)
		r.awaitState(slow, ledger.Completed)
		hangs(30 * time.Hour)
		r.wantNoClaims()
	})
}
