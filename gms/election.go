package gms

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/gms/internal/consensus"
)

// StandForElection has this node stand for election at once, and the voters leave the leader that they believe in for it: a
// leader that is about to stop asks another voter for it, and works on, as a follower, when that one has won. Nothing is
// asked of the leader's own part in the log, so a call that comes to nothing leaves nothing behind; a node that lacks what
// was decided lately does not win, and may be asked again. It returns when the election has begun, not when it is won.
// ErrRole on a node that has no vote, ErrStopped before Start and after Stop.
func (g *Group) StandForElection(ctx context.Context) error {
	if g.lifeNow() != lifeStarted {
		return fmt.Errorf("stand for election: %w", ErrStopped)
	}
	err := g.cons.ElectNow(ctx)
	if errors.Is(err, consensus.ErrNotVoter) {
		return fmt.Errorf("stand for election: %w: node %s has no vote", ErrRole, g.cfg.Node)
	}
	return err
}
