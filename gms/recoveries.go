package gms

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// Appointment names one appointment to a recovery, as signals.Appointment does; each hand-over makes a new index.
type Appointment struct {
	Component string // what is to be recovered
	Node      string // node of the dead run
	Run       string // the dead run
	Index     uint64 // position at which the appointment was made
}

// Recovery is a recovery that has not ended.
type Recovery struct {
	Appointment
	Member        signals.Member    // the dead run
	State         string            // waiting, queued, appointed, raised, parked
	Appointee     string            // run appointed or holding; empty while nobody is
	AppointeeNode string            // its node
	Token         uint64            // of the fence; the last one given
	Failures      uint32            // of the present appointee
	Rounds        uint32            // how often all candidates have found what the work needs unavailable
	Pause         time.Duration     // for which the appointee waits before it begins, because of Rounds
	Tried         []string          // runs that had their turn, as far as they are open
	TriedNodes    []string          // the same, by name
	Exclusion     signals.Exclusion // as the component was registered
	Evidence      signals.Evidence  // why the run was closed
	Since         uint64            // position of the closing
	Why           string            // last failure
	Steps         []Step            // what happened so far
}

// Recoveries lists the recoveries that have not ended as this node knows them, and a channel that is closed at the next
// entry of the log. It does not block.
func (g *Group) Recoveries() ([]Recovery, <-chan struct{}) {
	var list []Recovery
	changed := g.rep.watch(func(m *state.Machine) {
		for _, r := range m.Recoveries() {
			list = append(list, recoveryOf(m, r))
		}
	})
	return list, changed
}

// RecoveriesOf lists those of them that are appointed to a run or held by it, as [Group.Recoveries] does: what a recoverer looks at
// after each entry.
func (g *Group) RecoveriesOf(appointee string) ([]Recovery, <-chan struct{}) {
	id, err := parseRun(appointee)
	var list []Recovery
	changed := g.rep.watch(func(m *state.Machine) {
		if err != nil {
			return // nobody's
		}
		for _, r := range m.Recoveries() {
			if bytes.Equal(r.GetAppointee(), id.Bytes()) {
				list = append(list, recoveryOf(m, r))
			}
		}
	})
	return list, changed
}

// EndedRecovery is a recovery as it was when it ended.
type EndedRecovery struct {
	Recovery
	Ended   uint64 // position
	Dropped bool   // by an operator, instead of released
}

// MaintenanceFence is a fence that somebody raised on a living node.
type MaintenanceFence struct {
	Component, Node    string // what it guards, and on which node
	Raiser, RaiserNode string // run and its node
	Token              uint64 // what LowerFence takes
}

// MaintenanceFences lists the maintenance fences as this node knows them.
func (g *Group) MaintenanceFences() []MaintenanceFence {
	var list []MaintenanceFence
	g.rep.read(func(m *state.Machine) {
		for _, f := range m.Maintenance() {
			out := MaintenanceFence{Component: f.GetComponent(), Node: f.GetNode(), Raiser: hexID(f.GetRun()), Token: f.GetToken()}
			if id, ok := state.RunIDOf(f.GetRun()); ok {
				if run, ok := m.Run(id); ok {
					out.RaiserNode = run.Node()
				}
			}
			list = append(list, out)
		}
	})
	return list
}

func recoveryOf(m *state.Machine, r *wire.Recovery) Recovery {
	out := Recovery{
		Appointment: Appointment{Component: r.GetComponent(), Node: r.GetNode(), Run: hexID(r.GetRun()), Index: r.GetIndex()},
		State:       recoveryStates[r.GetState()], Token: r.GetToken(), Failures: r.GetAttempts(),
		Rounds: r.GetRounds(), Pause: roundPause(r.GetRounds()),
		Evidence: evidences[r.GetEvidence()], Since: r.GetSince(), Why: r.GetWhy(), Steps: stepsOf(r), Exclusion: signals.ExclusionToken,
	}
	if id, ok := state.RunIDOf(r.GetRun()); ok {
		if run, ok := m.Run(id); ok {
			out.Member = memberOf(run)
			if run.Component(r.GetComponent()).GetExclusion() == wire.Exclusion_EXCLUSION_LEASE {
				out.Exclusion = signals.ExclusionLease
			}
		}
	}
	if id, ok := state.RunIDOf(r.GetAppointee()); ok && len(r.GetAppointee()) > 0 {
		out.Appointee = hexID(r.GetAppointee())
		if run, ok := m.Run(id); ok {
			out.AppointeeNode = run.Node()
		}
	}
	for _, t := range r.GetTried() {
		out.Tried = append(out.Tried, hexID(t))
		id, _ := state.RunIDOf(t)
		run, _ := m.Run(id)
		out.TriedNodes = append(out.TriedNodes, run.Node())
	}
	return out
}

// The pause before an attempt, after a first and after many rounds of candidates that found something unavailable.
const (
	firstRoundPause = 200 * time.Millisecond
	lastRoundPause  = 10 * time.Second
)

// roundPause is how long an appointee waits before it begins, when all candidates have found what the work needs unavailable
// so many times (PROTOCOL.md 15). The leader gives it that much longer to acquire the fence.
func roundPause(rounds uint32) time.Duration {
	if rounds == 0 {
		return 0
	}
	return min(firstRoundPause<<min(rounds-1, 16), lastRoundPause)
}

var recoveryStates = map[wire.RecoveryState]string{
	wire.RecoveryState_RECOVERY_WAITING: "waiting", wire.RecoveryState_RECOVERY_APPOINTED: "appointed",
	wire.RecoveryState_RECOVERY_RAISED: "raised", wire.RecoveryState_RECOVERY_PARKED: "parked", wire.RecoveryState_RECOVERY_QUEUED: "queued",
}

var evidences = map[wire.Evidence]signals.Evidence{
	wire.Evidence_EVIDENCE_OBITUARY: signals.Obituary, wire.Evidence_EVIDENCE_REFUSED: signals.Refused,
	wire.Evidence_EVIDENCE_NEWER_RUN: signals.NewerRun, wire.Evidence_EVIDENCE_LAPSED: signals.Lapsed,
	wire.Evidence_EVIDENCE_LEFT: signals.Left, wire.Evidence_EVIDENCE_OPERATOR: signals.Operator,
}

// Name is the group's name.
func (g *Group) Name() string { return g.cfg.Group }

// ref finds the log's name of an appointment.
func (a Appointment) ref() (*wire.RecoveryRef, fenceRef, error) {
	id, err := parseRun(a.Run)
	return &wire.RecoveryRef{Component: a.Component, Run: id.Bytes(), Index: a.Index}, fenceRef{a.Component, id, a.Index}, err
}

// Fence is a raised fence.
type Fence struct {
	Appointment
	Token uint64 // goes with every write of the recovery; larger than that of every earlier holder
	// Sent is the time on the group's clock before the command was sent: what the fence's own deadline counts from.
	Sent time.Duration
}

// AcquireFence raises the fence of an appointment of this run: signals.ErrNotAppointed when it has moved. Repeated for the
// same appointment it answers the same token. The replica here has applied it when it returns.
func (g *Group) AcquireFence(ctx context.Context, a Appointment) (Fence, error) {
	what := "acquire fence on " + a.Component + " of " + a.Node
	if err := FenceAllowed(ctx); err != nil {
		return Fence{}, fmt.Errorf("%s: %w", what, err)
	}
	ref, _, err := a.ref()
	if err != nil {
		return Fence{}, err
	}
	sent := g.cfg.Clock.Now()
	r, err := g.ask(ctx, what, &wire.Command{Op: &wire.Command_Acquire{Acquire: &wire.Acquire{Recovery: ref}}})
	if err != nil {
		return Fence{}, err
	}
	if err := g.caughtUp(ctx, r.GetPosition()); err != nil {
		return Fence{}, fmt.Errorf("%s: %w", what, err)
	}
	return Fence{Appointment: a, Token: r.GetToken(), Sent: sent}, nil
}

// LeaseWait is how long it takes from now until every former holder of the fence, the dead run first, can act no more: its
// lease has run out by this node's clock, counted from when it applied the entry that ended the holder, or nothing of the
// holder is left (exclusion by lease, PROTOCOL.md 22). changed is closed when it may have become less. It does not block.
func (g *Group) LeaseWait(a Appointment) (left time.Duration, changed <-chan struct{}) {
	l := g.leases()
	id, err := parseRun(a.Run)
	if err != nil {
		return l.longest(), nil
	}
	return g.rep.leaseWait(a.Component, id, l)
}

// RenewFence has this run's renewals name the fence whenever due answers true, until stop is called. The context it
// returns ends with a cause of signals.ErrFenceLost at the fence's local deadline or with the run.
func (g *Group) RenewFence(f Fence, due func() bool) (lease context.Context, stop func()) {
	_, ref, err := f.ref()
	s := g.standingNow()
	if err != nil || s == nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(fmt.Errorf("%w: the run is closed", signals.ErrFenceLost))
		return ctx, func() {}
	}
	return s.session.renewFence(ref, f.Sent, due)
}

// ReleaseFence lowers the fence and ends the recovery: signals.ErrWorkLeft while orphans are not settled.
func (g *Group) ReleaseFence(ctx context.Context, a Appointment, token uint64) error {
	ref, _, err := a.ref()
	if err != nil {
		return err
	}
	r, err := g.ask(ctx, "release fence on "+a.Component+" of "+a.Node, &wire.Command{Op: &wire.Command_Release{Release: &wire.Release{Recovery: ref, Token: token}}})
	if err != nil {
		return err
	}
	return g.caughtUp(ctx, r.GetPosition())
}

// FailRecovery reports that the action of an appointment failed, or found something unavailable.
func (g *Group) FailRecovery(ctx context.Context, a Appointment, unavailable bool, why string) error {
	ref, _, err := a.ref()
	if err != nil {
		return err
	}
	if len(why) > 255 {
		why = why[:252] + "..."
	}
	_, err = g.ask(ctx, "report failed recovery", &wire.Command{Op: &wire.Command_FailRecovery{
		FailRecovery: &wire.FailRecovery{Recovery: ref, Unavailable: unavailable, Why: why},
	}})
	return err
}

// Orphans lists the claims of a dead run in a component that are not settled, as this node knows them. The error is that of
// an id that is none.
func (g *Group) Orphans(component, deadRun string) ([]ClaimState, error) {
	id, err := parseRun(deadRun)
	if err != nil {
		return nil, err
	}
	var list []ClaimState
	g.rep.read(func(m *state.Machine) {
		for _, c := range m.Claims(state.ClaimFilter{Component: component, Run: id}) {
			if c.GetOrphan() && c.GetAdopted() == nil && !c.GetQuarantined() {
				list = append(list, claimOf(m, c))
			}
		}
	})
	return list, nil
}

func fenceHeld(a Appointment, token uint64) (*wire.FenceHeld, error) {
	id, err := parseRun(a.Run)
	return &wire.FenceHeld{Component: a.Component, Node: a.Node, Run: id.Bytes(), Token: token}, err
}

// Adopt turns an orphan into a claim of this run, one round trip on and with a new token. It belongs to the fence until
// ReleaseFence. Errors: ErrQuarantined when it was orphaned too often, ErrFenced or ErrNotHolder when the fence has moved,
// ErrNotFound, ErrRunClosed; ErrUnknown or ErrNoQuorum when ctx ends first.
func (g *Group) Adopt(ctx context.Context, a Appointment, token uint64, item string) (signals.Claim, error) {
	fence, err := fenceHeld(a, token)
	if err != nil {
		return signals.Claim{}, err
	}
	what := "adopt " + item + " of " + a.Component
	r, err := g.ask(ctx, what, &wire.Command{Op: &wire.Command_Adopt{Adopt: &wire.Adopt{Component: a.Component, Item: item, Fence: fence}}})
	if err != nil {
		return signals.Claim{}, err
	}
	return signals.Claim{Component: a.Component, Item: item, RoundTrip: r.GetRoundTrip(), Token: r.GetToken()}, g.caughtUp(ctx, r.GetPosition())
}

// EndFencedClaim ends an orphan (signals.Free, Quarantine) or an adopted claim under the fence's token. Errors: ErrFenced or
// ErrNotHolder when the fence or the claim has moved, ErrNotFound, ErrRunClosed; ErrUnknown or ErrNoQuorum when ctx ends
// first.
func (g *Group) EndFencedClaim(ctx context.Context, a Appointment, token uint64, c signals.Claim, how signals.How) error {
	fence, err := fenceHeld(a, token)
	if err != nil {
		return err
	}
	r, err := g.ask(ctx, "settle "+c.Item+" of "+c.Component, endClaim(c.Component, c.Item, c.Token, howOf(how), fence))
	if err != nil {
		return err
	}
	return g.caughtUp(ctx, r.GetPosition())
}

// IsFenced tells whether a recovery of an earlier run of node, or a maintenance fence, keeps new work of the component
// away (PROTOCOL.md 10), at a position not below this run's epoch; changed is closed when the answer may have changed. It
// blocks until this node's replica is that far, or ctx ends.
func (g *Group) IsFenced(ctx context.Context, component, node string) (fenced bool, changed <-chan struct{}, err error) {
	epoch := g.epoch()
	if err := g.caughtUp(ctx, epoch); err != nil {
		return false, nil, fmt.Errorf("look for a fence on %s of %s: %w", component, node, err)
	}
	changed = g.rep.watch(func(m *state.Machine) { fenced = m.IsFenced(component, node) })
	return fenced, changed, nil
}

// RaiseFence raises a maintenance fence on a component of a living node; it ends with LowerFence or with this run. ErrBusy
// when one is raised.
func (g *Group) RaiseFence(ctx context.Context, component, node string) (token uint64, err error) {
	if err := FenceAllowed(ctx); err != nil {
		return 0, fmt.Errorf("raise fence on %s of %s: %w", component, node, err)
	}
	r, err := g.ask(ctx, "raise fence on "+component+" of "+node, &wire.Command{Op: &wire.Command_RaiseFence{RaiseFence: &wire.RaiseFence{Component: component, Node: node}}})
	return r.GetToken(), err
}

// LowerFence lowers a maintenance fence; ErrNotHolder when it is not this run's under that token.
func (g *Group) LowerFence(ctx context.Context, component, node string, token uint64) error {
	_, err := g.ask(ctx, "lower fence on "+component+" of "+node, &wire.Command{Op: &wire.Command_LowerFence{LowerFence: &wire.LowerFence{Component: component, Node: node, Token: token}}})
	return err
}
