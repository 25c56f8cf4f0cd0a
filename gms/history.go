package gms

import (
	"context"
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// history lists the views that are kept.
func (g *Group) history() (list []signals.View) {
	g.rep.read(func(m *state.Machine) {
		for _, v := range m.Views() {
			list = append(list, viewOf(m, v))
		}
	})
	return list
}

// Views lists the last 1,000 views as this node knows them, oldest first. Members are shown as they are now, closed ones
// as they were at their end.
func (g *Group) Views() []signals.View { return g.history() }

// ViewsSince lists the views after a version that was seen before. gap says that some in between are not kept any more, or
// that the version is none of this group's.
func (g *Group) ViewsSince(version uint64) (views []signals.View, gap bool) {
	list := g.history()
	gap = !slices.ContainsFunc(list, func(v signals.View) bool { return v.Version == version })
	return slices.DeleteFunc(list, func(v signals.View) bool { return v.Version <= version }), gap
}

// ReadyViews lists the last 100 views of the members that had reported themselves ready, oldest first; the last one is the
// present one. A member that joined late has them too.
func (g *Group) ReadyViews() (list []signals.View) {
	g.rep.read(func(m *state.Machine) {
		for _, v := range m.ReadyViews() {
			list = append(list, viewOf(m, v))
		}
	})
	return list
}

var phases = map[wire.AnnounceGroup_Phase]signals.Phase{
	wire.AnnounceGroup_PHASE_INITIATED: signals.PhaseInitiated, wire.AnnounceGroup_PHASE_COMPLETED: signals.PhaseCompleted,
	wire.AnnounceGroup_PHASE_FAILED: signals.PhaseFailed,
}

// AnnounceGroupStartup tells all members how far a start of the whole group is: GroupStartup to everybody, and views say
// that it is under way until it is completed or has failed. It blocks until it is decided.
func (g *Group) AnnounceGroupStartup(ctx context.Context, phase signals.Phase) error {
	return g.announceGroup(ctx, wire.AnnounceGroup_KIND_STARTUP, phase)
}

// AnnounceGroupShutdown tells all members how far a shutdown of the whole group is: GroupShutdown to everybody. From
// signals.PhaseInitiated on, until it has failed, a start is announced, or all who were there have gone, whoever leaves is
// told of as leaving with the group (signals.ShutdownGroup). It stops nobody: each node's host calls Stop.
func (g *Group) AnnounceGroupShutdown(ctx context.Context, phase signals.Phase) error {
	return g.announceGroup(ctx, wire.AnnounceGroup_KIND_SHUTDOWN, phase)
}

func (g *Group) announceGroup(ctx context.Context, kind wire.AnnounceGroup_Kind, phase signals.Phase) error {
	op := &wire.AnnounceGroup{Kind: kind}
	for w, p := range phases {
		if p == phase {
			op.Phase = w
		}
	}
	if op.GetPhase() == wire.AnnounceGroup_PHASE_UNSPECIFIED {
		return fmt.Errorf("announce to the group: %q is no phase", phase)
	}
	_, err := g.ask(ctx, "announce to the group", &wire.Command{Op: &wire.Command_AnnounceGroup{AnnounceGroup: op}})
	return err
}

// IsGroupBeingShutdown tells whether a shutdown of the whole group is under way, as this node knows it.
func (g *Group) IsGroupBeingShutdown() (stopping bool) {
	g.rep.read(func(m *state.Machine) { stopping = m.Stopping() })
	return stopping
}
