package signals

// Kind says what a signal tells. The strings are used in logs and formats and never change.
type Kind string

// Kinds of signal.
const (
	// JoinNotification: a core member was admitted. A newcomer gets one for itself and one per member already there.
	JoinNotification Kind = "join"
	// JoinedAndReadyNotification: a member reported itself ready for work.
	JoinedAndReadyNotification Kind = "joined-and-ready"
	// FailureSuspected: first doubt about a member. Nothing is recovered because of it.
	FailureSuspected Kind = "failure-suspected"
	// FailureNoLongerSuspected: the doubt was withdrawn.
	FailureNoLongerSuspected Kind = "failure-no-longer-suspected"
	// FailureNotification: a member's run was closed by anything but its own leaving. Facts.Evidence says by what.
	FailureNotification Kind = "failure"
	// FailureRecovery: this member, and no other, is appointed to recover one component of a closed run.
	FailureRecovery Kind = "failure-recovery"
	// PlannedShutdown: a member left. Facts.Shutdown tells its own leaving from a shutdown of the group.
	PlannedShutdown Kind = "planned-shutdown"
	// GroupLeadershipNotification: Facts.Member is the new leader.
	GroupLeadershipNotification Kind = "group-leadership"
	// GroupStartup: a mark in the start of the whole group; Facts.Phase says which.
	GroupStartup Kind = "group-startup"
	// GroupShutdown: a mark in the shutdown of the whole group; Facts.Phase says which.
	GroupShutdown Kind = "group-shutdown"
	// MessageReceived: bytes that a member sent to a component; the signal is a *Message.
	MessageReceived Kind = "message"
	// QuorumLost: no leader can be reached; nothing new is granted until QuorumRegained.
	QuorumLost Kind = "quorum-lost"
	// QuorumRegained: the group decides again.
	QuorumRegained Kind = "quorum-regained"
)

// Kinds lists every kind, in the order of the constants.
func Kinds() []Kind {
	return []Kind{
		JoinNotification, JoinedAndReadyNotification, FailureSuspected, FailureNoLongerSuspected,
		FailureNotification, FailureRecovery, PlannedShutdown, GroupLeadershipNotification,
		GroupStartup, GroupShutdown, MessageReceived, QuorumLost, QuorumRegained,
	}
}

// Evidence says why a run was closed.
type Evidence string

// Evidence that may close a run.
const (
	Obituary Evidence = "obituary"  // its own warden saw it die
	Refused  Evidence = "refused"   // its host is there, its ports are not
	NewerRun Evidence = "newer run" // its node opened another run
	Lapsed   Evidence = "lapsed"    // its lease ran out
	Left     Evidence = "left"      // it left by itself
	Operator Evidence = "operator"  // a person said so
)

// Shutdown is the sub-type of a PlannedShutdown.
type Shutdown string

// Sub-types of PlannedShutdown; empty for other kinds.
const (
	ShutdownInstance Shutdown = "instance" // one member leaves
	ShutdownGroup    Shutdown = "group"    // the member leaves because the whole group is shut down
)

// Phase tells the marks of a GroupStartup or GroupShutdown apart.
type Phase string

// Phases of a start or shutdown of the group; empty for other kinds.
const (
	PhaseInitiated Phase = "initiated"
	PhaseCompleted Phase = "completed"
	PhaseFailed    Phase = "failed"
)
