package gms

import (
	"errors"
	"testing"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// At most once, and never backwards: what comes late or again is refused, whatever became of the ones between.
func TestMessagesAreTakenOnceAndInOrder(t *testing.T) {
	m := newMessenger()
	open := func(state.RunID) bool { return true }
	lane := messageLane{runOf(2), "c"}
	for i, step := range []struct {
		lane    messageLane
		seq     uint64
		deliver error
		want    wire.TellReply_Outcome
	}{
		{lane, 1, nil, wire.TellReply_OUTCOME_QUEUED},
		{lane, 1, nil, wire.TellReply_OUTCOME_STALE},
		{lane, 3, nil, wire.TellReply_OUTCOME_QUEUED},
		{lane, 2, nil, wire.TellReply_OUTCOME_STALE},
		{lane, 4, signals.ErrQueueFull, wire.TellReply_OUTCOME_FULL},
		{lane, 4, nil, wire.TellReply_OUTCOME_STALE},
		{lane, 5, signals.ErrNoFactory, wire.TellReply_OUTCOME_NO_COMPONENT},
		{lane, 6, signals.ErrStopped, wire.TellReply_OUTCOME_NOT_MEMBER},
		{messageLane{runOf(2), "d"}, 1, nil, wire.TellReply_OUTCOME_QUEUED},
		{messageLane{runOf(3), "c"}, 1, nil, wire.TellReply_OUTCOME_QUEUED},
	} {
		delivered := false
		got := m.take(step.lane, step.seq, open, func() error { delivered = true; return step.deliver })
		if got != step.want || delivered == (got == wire.TellReply_OUTCOME_STALE) {
			t.Errorf("step %d: %v, delivered %v, want %v", i, got, delivered, step.want)
		}
	}
	if m.received.Load() != 4 || m.dropped.Load() != 1 || m.unhandled.Load() != 1 {
		t.Errorf("%d received, %d dropped, %d unhandled", m.received.Load(), m.dropped.Load(), m.unhandled.Load())
	}
}

func TestLanesOfTheClosedAreForgotten(t *testing.T) {
	m := newMessenger()
	none := func(state.RunID) bool { return false }
	deliver := func() error { return nil }
	for i := range 3 * manyLanes {
		m.take(messageLane{state.RunID{1, byte(i), byte(i >> 8)}, "c"}, 1, none, deliver)
		m.lane(messageLane{state.RunID{1, byte(i), byte(i >> 8)}, "c"}, none)
	}
	if len(m.last) > manyLanes || len(m.lanes) > manyLanes {
		t.Errorf("%d and %d lanes are kept", len(m.last), len(m.lanes))
	}
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	good := func() *wire.TellRequest {
		return &wire.TellRequest{From: runOf(2).Bytes(), To: runOf(1).Bytes(), Component: "c", Seq: 1}
	}
	for name, spoil := range map[string]func(*wire.TellRequest){
		"no sender":    func(r *wire.TellRequest) { r.From = nil },
		"no component": func(r *wire.TellRequest) { r.Component = "" },
		"no number":    func(r *wire.TellRequest) { r.Seq = 0 },
		"too large":    func(r *wire.TellRequest) { r.Payload = make([]byte, MaxMessage+1) },
	} {
		r := good()
		spoil(r)
		if _, err := (handler{g: g.Group}).Tell(t.Context(), r); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// One whose caller is not known is not a member's; one for another run is not ours.
	if r, err := (handler{g: g.Group}).Tell(t.Context(), good()); err != nil || r.GetOutcome() != wire.TellReply_OUTCOME_NOT_MEMBER {
		t.Errorf("from nobody: %v, %v", r, err)
	}
	other := good()
	other.To = runOf(7).Bytes()
	if r := g.told(t.Context(), other); r.GetOutcome() != wire.TellReply_OUTCOME_NOT_MEMBER {
		t.Errorf("for another run: %v", r)
	}
}
