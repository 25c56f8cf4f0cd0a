package sim

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// histories is for how long seeds are played: a minute, or an hour of them in the long form.
func histories(t *testing.T) time.Duration {
	if os.Getenv("FENCEPOST_LONG") != "" {
		return time.Hour
	}
	if testing.Short() {
		return 5 * time.Second
	}
	return time.Minute
}

// firstSeed is FENCEPOST_SEED, for one history alone. Else the long form begins with one of the clock, which is printed, and
// the short one always with the same: what fails there was brought by the change.
func firstSeed(t *testing.T) (seed uint64, only bool) {
	t.Helper()
	if s := os.Getenv("FENCEPOST_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("FENCEPOST_SEED: %v", err)
		}
		return seed, true
	}
	if os.Getenv("FENCEPOST_LONG") == "" {
		return 1, false
	}
	return uint64(time.Now().UnixMicro()), false
}

// A minute of histories under faults, each of them random: none breaks an invariant, and each comes to rest.
func TestNoHistoryBreaksAnInvariant(t *testing.T) {
	t.Parallel()
	seed, only := firstSeed(t)
	start := time.Now()
	var sum Report
	played := 0
	for ; played == 0 || !only && time.Since(start) < histories(t); played++ {
		p := Draw(seed + uint64(played))
		r, err := Play(p)
		sum.Add(r)
		if err != nil {
			small := Shrink(p)
			_, why := Play(small)
			t.Fatalf("%v\nrepeat it with: FENCEPOST_SEED=%d go test -run TestNoHistoryBreaksAnInvariant ./gms/internal/sim\nshrunk to: %vwhich says: %v", err, p.Seed, small, why)
		}
	}
	t.Logf("%d histories from seed %d: %d steps, %.0f a second; %d entries, %d runs opened, %d closed, %d recoveries, %d items done, %d restores committed",
		played, seed, sum.Steps, float64(sum.Steps)/time.Since(start).Seconds(), sum.Entries, sum.Runs, sum.Closed, sum.Recoveries, sum.Completed, sum.Commits)
	if !only && (sum.Recoveries == 0 || sum.Completed == 0 || sum.Commits == 0 || sum.Closed == 0) {
		t.Error("the histories hold nothing that could go wrong")
	}
}

// The same plan gives the same history, to the last step and the last byte of the state.
func TestAPlanIsOneHistory(t *testing.T) {
	t.Parallel()
	p := Draw(7)
	first, err := Play(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Play(p)
	if err != nil || again != first {
		t.Errorf("%+v, then %+v: %v", first, again, err)
	}
}

// Each rule that is taken out is missed: some history breaks an invariant, and shrinking keeps it broken.
func TestMutantsAreFound(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		for _, m := range []Mutant{GuardUnread, NoTombstone, LeaseNotAwaited} {
			t.Run(m.String(), func(t *testing.T) { findMutant(t, m) })
		}
		return
	}
	for m := Sound + 1; int(m) < len(mutants); m++ {
		t.Run(m.String(), func(t *testing.T) { findMutant(t, m) })
	}
}

func findMutant(t *testing.T, m Mutant) {
	start := time.Now()
	for seed := uint64(1); ; seed++ {
		p := Draw(seed)
		p.Mutant = m
		_, err := Play(p)
		if err == nil {
			if time.Since(start) > 5*time.Minute {
				t.Fatalf("not found in %d histories", seed)
			}
			continue
		}
		t.Logf("found in history %d: %v", seed, err)
		sound := p
		sound.Mutant = Sound
		if _, err := Play(sound); err != nil {
			t.Errorf("the same history breaks it without the mutant: %v", err)
		}
		return
	}
}
