package gms

import (
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Step is something that happened to a recovery: its time line is kept in the log, the first step and the last ones, at
// most 20 in all.
type Step struct {
	What     string    // closed, queued, waiting, appointed, raised, failed, handed over, parked, retried, released, dropped, quiesced
	Position uint64    // of the entry that did it
	Time     time.Time // by the clock of the leader that proposed that entry, for people; zero when it did not say
	Node     string    // appointed, or holding; the dead one's for closed and quiesced; empty while it is nobody's
	Run      string    // that node's run, as hex
	Token    uint64    // of the fence, where one was raised
	Why      string    // one sentence
}

var stepNames = map[wire.RecoveryStep_Kind]string{
	wire.RecoveryStep_KIND_CLOSED: "closed", wire.RecoveryStep_KIND_QUEUED: "queued", wire.RecoveryStep_KIND_WAITING: "waiting",
	wire.RecoveryStep_KIND_APPOINTED: "appointed", wire.RecoveryStep_KIND_RAISED: "raised", wire.RecoveryStep_KIND_FAILED: "failed",
	wire.RecoveryStep_KIND_HANDED_OVER: "handed over", wire.RecoveryStep_KIND_PARKED: "parked", wire.RecoveryStep_KIND_RETRIED: "retried",
	wire.RecoveryStep_KIND_RELEASED: "released", wire.RecoveryStep_KIND_DROPPED: "dropped", wire.RecoveryStep_KIND_QUIESCED: "quiesced",
}

func stepsOf(r *wire.Recovery) []Step {
	list := make([]Step, 0, len(r.GetSteps()))
	for _, s := range r.GetSteps() {
		step := Step{What: stepNames[s.GetKind()], Position: s.GetPosition(), Node: s.GetNode(), Token: s.GetToken(), Why: s.GetWhy()}
		if s.GetTime() > 0 {
			step.Time = time.UnixMilli(s.GetTime()).UTC()
		}
		if len(s.GetRun()) > 0 {
			step.Run = hexID(s.GetRun())
		}
		list = append(list, step)
	}
	return list
}
