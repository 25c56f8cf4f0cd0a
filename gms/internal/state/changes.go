package state

import "github.com/fencepost/fencepost/gms/internal/wire"

// Change is one effect of an entry: one of the types of this file. The shell turns them into signals, wake-ups and
// timers; they hold only values that never change afterwards.
type Change interface{ change() }

type (
	// GroupFormed: FormGroup was applied.
	GroupFormed struct {
		ClusterID []byte
		Base      uint64
	}
	// Rebased: positions and tokens continue above Base.
	Rebased struct {
		Base   uint64
		Reason string
	}
	// ProtocolRaised: the group writes Protocol from the next command on.
	ProtocolRaised struct{ Protocol uint32 }
	// SettingsChanged has the group's settings as they are now.
	SettingsChanged struct{ Settings *wire.Settings }

	// ViewChanged comes first among the changes of its entry.
	ViewChanged struct{ View, Previous View }
	// RunOpened: a run was admitted. Previous is the node's run before, closed by now, when it is still known.
	RunOpened struct {
		Run      Run
		Previous *Run
	}
	// RunClosed: Run.Evidence and Run.Detail say why. GroupShutdown: while the whole group is being shut down.
	RunClosed struct {
		Run           Run
		GroupShutdown bool
	}
	// RunQuiesced: nothing of the closed run is left on its machine.
	RunQuiesced struct{ Run Run }
	// SuspectedChanged: Run.Suspected is new.
	SuspectedChanged struct {
		Run Run
		Why string
	}
	// ReadyChanged: Run.Ready is new.
	ReadyChanged struct{ Run Run }
	// ReadyViewChanged comes last among the changes of its entry, but for audits.
	ReadyViewChanged struct{ View, Previous View }
	// LeaderChanged: another node leads, from this entry on.
	LeaderChanged struct {
		Node string
		Term uint64
	}
	// GroupAnnounced: the run says how far the start or the shutdown of the whole group is.
	GroupAnnounced struct {
		Run   Run
		Kind  wire.AnnounceGroup_Kind
		Phase wire.AnnounceGroup_Phase
		// What is under way from here on.
		Starting, Stopping bool
	}
	// ComponentRegistered: the run recovers one more component.
	ComponentRegistered struct {
		Run       Run
		Component string
	}
	// NodeForgotten: nothing is kept of the node any more, but for its home when that is burnt.
	NodeForgotten struct {
		Node  string
		Burnt bool
	}
	// DetailsChanged: what the run says of itself is new.
	DetailsChanged struct{ Run Run }
)

type (
	// RecoveryQueued: an older run's recovery of the same component and node goes first.
	RecoveryQueued struct{ Recovery *wire.Recovery }
	// Appointed: Recovery.Appointee must recover, under Recovery.Index.
	Appointed struct{ Recovery *wire.Recovery }
	// FenceRaised: the appointee has acquired; Recovery.Token is the fence's.
	FenceRaised struct{ Recovery *wire.Recovery }
	// RecoveryFailed: an attempt failed and the appointee may try again.
	RecoveryFailed struct{ Recovery *wire.Recovery }
	// AppointmentEnded: the appointment, as it was, is over without a release; what happens to the recovery follows.
	AppointmentEnded struct {
		Recovery *wire.Recovery
		Why      string
	}
	// RecoveryWaiting: there is no candidate.
	RecoveryWaiting struct{ Recovery *wire.Recovery }
	// RecoveryParked: all candidates have tried.
	RecoveryParked struct{ Recovery *wire.Recovery }
	// RecoveryEnded: it was released, or dropped by an operator. The fence is lowered.
	RecoveryEnded struct {
		Recovery *wire.Recovery
		Dropped  bool
	}
	// MaintenanceChanged: a maintenance fence was raised or lowered.
	MaintenanceChanged struct {
		Fence  *wire.MaintenanceFence
		Raised bool
	}
)

type (
	// LockGranted: the run holds the poll lock, at once or after waiting.
	LockGranted struct {
		Name  string
		Run   RunID
		Token uint64
	}
	// LockFreed: the hold under Token has ended: unlocked, expired, or its run closed.
	LockFreed struct {
		Name  string
		Run   RunID
		Token uint64
	}
	// ClaimGranted: Claim.Run may work on the item.
	ClaimGranted struct{ Claim *wire.ClaimState }
	// ClaimAdopted: an orphan became the claim of the fence's holder.
	ClaimAdopted struct{ Claim *wire.ClaimState }
	// ClaimOrphaned: Previous, held or adopted, is an orphan of Claim.Run now.
	ClaimOrphaned struct{ Claim, Previous *wire.ClaimState }
	// ClaimEnded: the item is free, or quarantined when How says so.
	ClaimEnded struct {
		Claim *wire.ClaimState
		How   wire.EndClaim_How
	}
	// CacheChanged: entries were put or deleted, all at Version.
	CacheChanged struct {
		Version uint64
		Events  []CacheEvent
	}
	// AuditMarked: Hash is this replica's at Position; the leader sends its own as an Audit.
	AuditMarked struct {
		Position uint64
		Hash     [32]byte
	}
	// AuditMismatch: this replica differs from the leader and must stop.
	AuditMismatch struct {
		Position   uint64
		Mine, Want [32]byte
	}
)

// CacheEvent is one entry of CacheChanged.
type CacheEvent struct {
	Key     CacheKey
	Value   []byte
	Deleted bool
}

func (GroupFormed) change()         {}
func (Rebased) change()             {}
func (ProtocolRaised) change()      {}
func (SettingsChanged) change()     {}
func (ViewChanged) change()         {}
func (RunOpened) change()           {}
func (RunClosed) change()           {}
func (RunQuiesced) change()         {}
func (SuspectedChanged) change()    {}
func (ReadyChanged) change()        {}
func (ReadyViewChanged) change()    {}
func (LeaderChanged) change()       {}
func (GroupAnnounced) change()      {}
func (ComponentRegistered) change() {}
func (NodeForgotten) change()       {}
func (DetailsChanged) change()      {}
func (RecoveryQueued) change()      {}
func (Appointed) change()           {}
func (FenceRaised) change()         {}
func (RecoveryFailed) change()      {}
func (AppointmentEnded) change()    {}
func (RecoveryWaiting) change()     {}
func (RecoveryParked) change()      {}
func (RecoveryEnded) change()       {}
func (MaintenanceChanged) change()  {}
func (LockGranted) change()         {}
func (LockFreed) change()           {}
func (ClaimGranted) change()        {}
func (ClaimAdopted) change()        {}
func (ClaimOrphaned) change()       {}
func (ClaimEnded) change()          {}
func (CacheChanged) change()        {}
func (AuditMarked) change()         {}
func (AuditMismatch) change()       {}
