package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline"
)

// A claim of this run that nobody works on is given back in time, so that its task is not held for as long as the process
// lives; one that was met only now is left alone.
func TestLostClaimIsGivenBack(t *testing.T) {
	a, _ := start(t, config(t))
	ready(t, a)
	b := &bridge{group: a.group, granted: func(context.Context, uint64) error { return nil }, log: slog.New(slog.DiscardHandler)}
	lost, err := a.group.Claim(t.Context(), "backup", "lost", 1)
	if err != nil {
		t.Fatal(err)
	}
	busy := func() {
		t.Helper()
		if _, err := b.TryClaim(t.Context(), "backup", "lost", 2); !errors.Is(err, pipeline.ErrBusy) {
			t.Fatalf("claim: %v, want busy", err)
		}
	}
	busy()
	busy()
	b.lost[lost.Token] = time.Now().Add(-lostAfter)
	busy() // and gives it back
	c, err := b.TryClaim(t.Context(), "backup", "lost", 2)
	if err != nil || c.Token <= lost.Token {
		t.Errorf("claim after it: %+v, %v", c, err)
	}
}
