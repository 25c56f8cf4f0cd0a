package gms

import (
	"testing"
	"testing/synctest"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// PROTOCOL.md 10: a run that has just been opened asks a replica that is not as far as its opening: it gets no answer before
// that is, since what fences it may lie in between.
func TestRule10_FencedIsAnsweredAtTheAskersEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		g.settle()
		g.rep.read(func(m *state.Machine) { g.stand.epoch = m.Position() + 1 })
		answer := make(chan bool, 1)
		g.wg.Go(func() {
			fenced, _, err := g.IsFenced(t.Context(), "c", "n2")
			answer <- fenced && err == nil
		})
		synctest.Wait()
		if len(answer) > 0 {
			t.Fatal("it was answered by what is older than the run that asks")
		}
		g.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_OPERATOR))
		if !<-answer {
			t.Error("n2, whose run was closed at that position, is not fenced")
		}
	})
}
