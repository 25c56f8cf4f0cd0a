package gms

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// checkHome asks the members that can be reached what the group has on record about this home (DESIGN.md, "Homes"). A
// home that holds less than it once held would vote without memory: it does not start. It asks for a short while only: a
// full restart of all nodes has nobody to ask.
func (g *Group) checkHome(ctx context.Context) error {
	last, err := g.cons.LastIndex()
	if err != nil {
		return fmt.Errorf("read the log of the home: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for {
		list, changed := g.peers.alive()
		answered := false
		for _, p := range list {
			if p.meta.GetNode() == g.cfg.Node || len(p.meta.GetClusterId()) == 0 {
				continue
			}
			r, err := g.homePosition(ctx, p.meta.GetNode())
			if err != nil {
				g.log.Debug("gms: home's record not read", "from", p.meta.GetNode(), "error", err)
				continue
			}
			if err := g.judgeHome(r, last); err != nil {
				return err
			}
			answered = answered || len(r.GetClusterId()) > 0
		}
		if answered || len(g.joinTargets("")) == 0 && len(list) < 2 || !pause(ctx, changed, 100*time.Millisecond) {
			return nil
		}
	}
}

// judgeHome compares what a member has on record with what the home holds.
func (g *Group) judgeHome(r *wire.HomePositionReply, last uint64) error {
	switch {
	case r.GetForgotten():
		return g.refused(fmt.Errorf("start %s: %w", g.cfg.Node, ErrForgotten), forgottenHome)
	case r.GetOtherHome() && r.GetStanding():
		return g.refused(fmt.Errorf("start %s: %w", g.cfg.Node, ErrNameTaken), takenName)
	case r.GetOtherHome():
		return g.refused(fmt.Errorf("start %s: %w", g.cfg.Node, ErrOtherHome), otherHome(g.cfg.Node))
	case r.GetKnown() && r.GetIndex() > last:
		return g.refused(fmt.Errorf("start %s: %w: the group knows it to have held index %d, it holds %d", g.cfg.Node, ErrOlderHome, r.GetIndex(), last), emptyHome(g.cfg.Node))
	}
	return nil
}

// Remedies for people.
const takenName = "give this node another name, or stop the other one"

const forgottenHome = "the group was told to forget this node for good: to let it in again, as a newcomer, empty its home"

func otherHome(node string) string {
	return "bring its old home back, or run `fencepost node replace " + node + "` on a member"
}

func emptyHome(node string) string {
	return "empty the home and run `fencepost node replace " + node + "` on a member"
}

func (g *Group) homePosition(ctx context.Context, node string) (*wire.HomePositionReply, error) {
	c, err := g.client(node)
	if err != nil {
		return nil, err
	}
	return c.HomePosition(ctx, &wire.HomePositionRequest{Node: g.cfg.Node, Home: g.home.id[:]})
}
