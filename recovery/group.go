package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// GroupLog is the Log of a group: what a Manager works on. The group may be stopped or between two runs; calls are then
// ErrUnavailable.
func GroupLog(g *gms.Group) Log { return groupLog{g} }

type groupLog struct{ g *gms.Group }

func (l groupLog) Recoveries() ([]Appointed, <-chan struct{}) {
	// Without a run there is nothing to do whatever the log says; the log may open the run, and appoint it, before Self
	// knows, so it is Self's change that has to be waited for.
	standing := l.g.Changed()
	_, self := l.g.Self()
	if self == "" {
		return nil, standing
	}
	all, changed := l.g.RecoveriesOf(self)
	var view signals.View
	var mine []Appointed
	for _, r := range all {
		if r.State != "appointed" && r.State != "raised" {
			continue
		}
		if mine == nil {
			view = l.g.View()
		}
		mine = append(mine, l.appointed(r, view))
	}
	return mine, changed
}

func (l groupLog) appointed(r gms.Recovery, view signals.View) Appointed {
	return Appointed{Ref: Ref(r.Appointment), Failures: r.Failures, Pause: r.Pause, Facts: signals.Facts{
		Group: l.g.Name(), Member: r.Member, Position: r.Since, View: view, PreviousView: view, Evidence: r.Evidence, Why: r.Why,
	}}
}

func (l groupLog) Acquire(ctx context.Context, ref Ref) (Grant, error) {
	f, err := l.g.AcquireFence(ctx, gms.Appointment(ref))
	if err != nil {
		return Grant{}, translate(err)
	}
	return Grant{Held: Held{Ref: ref, Token: f.Token}, Sent: f.Sent}, nil
}

func (l groupLog) Former(ref Ref) (time.Duration, <-chan struct{}) {
	return l.g.LeaseWait(gms.Appointment(ref))
}

func (l groupLog) Release(ctx context.Context, held Held) error {
	return translate(l.g.ReleaseFence(ctx, gms.Appointment(held.Ref), held.Token))
}

func (l groupLog) FailRecovery(ctx context.Context, ref Ref, failure Failure) error {
	return translate(l.g.FailRecovery(ctx, gms.Appointment(ref), failure.Unavailable, failure.Why))
}

func (l groupLog) Renew(grant Grant, due func() bool) (context.Context, func()) {
	f := gms.Fence{Appointment: gms.Appointment(grant.Ref), Token: grant.Token, Sent: grant.Sent}
	return l.g.RenewFence(f, due)
}

func (l groupLog) Orphans(_ context.Context, held Held) ([]signals.Orphan, error) {
	list, err := l.g.Orphans(held.Component, held.Run)
	if err != nil {
		return nil, err
	}
	orphans := make([]signals.Orphan, len(list))
	for i, c := range list {
		orphans[i] = signals.Orphan{Claim: c.Claim, Orphanings: c.Orphanings}
	}
	return orphans, nil
}

func (l groupLog) Adopt(ctx context.Context, held Held, o signals.Orphan) (signals.Claim, error) {
	c, err := l.g.Adopt(ctx, gms.Appointment(held.Ref), held.Token, o.Item)
	if errors.Is(err, gms.ErrQuarantined) {
		return c, fmt.Errorf("%w: %w", signals.ErrPoison, err)
	}
	return c, translate(err)
}

func (l groupLog) EndClaim(ctx context.Context, held Held, c signals.Claim, how signals.How) error {
	err := l.g.EndFencedClaim(ctx, gms.Appointment(held.Ref), held.Token, c, how)
	if errors.Is(err, gms.ErrQuarantined) {
		return fmt.Errorf("%w: %w", signals.ErrPoison, err)
	}
	return translate(err)
}

// Fenced waits for this node's run: before it is open, the log may not know yet of what the run has to wait for.
func (l groupLog) Fenced(ctx context.Context, component, node string) (bool, <-chan struct{}, error) {
	if _, self := l.g.Self(); self == "" {
		if err := l.g.AwaitStanding(ctx); err != nil {
			return false, nil, translate(err)
		}
	}
	fenced, changed, err := l.g.IsFenced(ctx, component, node)
	return fenced, changed, translate(err)
}

// translate says in the words of package signals what the group answered.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, gms.ErrUnknown), errors.Is(err, gms.ErrNoQuorum):
		return fmt.Errorf("%w: %w", signals.ErrUnavailable, err)
	case errors.Is(err, gms.ErrFenced), errors.Is(err, gms.ErrNotHolder):
		return fmt.Errorf("%w: %w", signals.ErrFenceLost, err)
	case errors.Is(err, gms.ErrRunClosed):
		return fmt.Errorf("%w: %w", signals.ErrNotAppointed, err)
	}
	return err
}
