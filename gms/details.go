package gms

import (
	"context"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// DetailVoteless is the detail of a run that wants no vote, whatever its value: its node is about to leave for good. A voter
// loses its vote as soon as another one has caught up, or the rest is a healthy majority without it; it goes on as a follower.
const DetailVoteless = "voteless"

// SetDetail says something of this node's run to all members, beside Config.Details: key → value, at most 8 KiB in all
// (ErrTooLarge). Members see it in views and signals from then on, and it stays readable, for whoever recovers the run's
// work, until the run's last recovery has ended. It ends with the run: the node's next one begins with Config.Details.
// It blocks until it is decided, or ctx ends.
func (g *Group) SetDetail(ctx context.Context, key string, value []byte) error {
	r, err := g.ask(ctx, "set detail "+key, &wire.Command{Op: &wire.Command_SetDetail{SetDetail: &wire.SetDetail{Key: key, Value: value}}})
	if err != nil {
		return err
	}
	return g.caughtUp(ctx, r.GetPosition())
}

// RemoveDetail takes a detail back; one that is not there is no error.
func (g *Group) RemoveDetail(ctx context.Context, key string) error {
	r, err := g.ask(ctx, "remove detail "+key, &wire.Command{Op: &wire.Command_SetDetail{SetDetail: &wire.SetDetail{Key: key, Remove: true}}})
	if err != nil {
		return err
	}
	return g.caughtUp(ctx, r.GetPosition())
}
