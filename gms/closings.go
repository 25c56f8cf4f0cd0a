package gms

import (
	"context"
	"errors"
	"sync"

	"github.com/fencepost/fencepost/gms/internal/consensus"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// closings counts, per run, the entries with a closing of it that this node has proposed and whose outcome is open, whoever
// asked for the closing: the leader's own evidence, an operator, a newer run of the same home, the run itself. Meanwhile no
// renewal of the run is acknowledged (PROTOCOL.md 4).
type closings struct {
	mu   sync.Mutex
	open map[state.RunID]int
}

func (c *closings) begin(runs []state.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[state.RunID]int)
	}
	for _, id := range runs {
		c.open[id]++
	}
}

func (c *closings) end(runs []state.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range runs {
		if c.open[id]--; c.open[id] <= 0 {
			delete(c.open, id)
		}
	}
}

// of tells whether a closing of the run is proposed with the outcome open.
func (c *closings) of(id state.RunID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[id] > 0
}

// closedBy lists the runs that commands would close: those that they name, and those that a newer run of the node replaces.
func closedBy(m *state.Machine, cmds []*wire.Command) []state.RunID {
	var runs []state.RunID
	for _, cmd := range cmds {
		if c := cmd.GetCloseRun(); c != nil {
			if id, ok := state.RunIDOf(c.GetRun()); ok {
				runs = append(runs, id)
			}
		}
		if o := cmd.GetOpenRun(); o != nil {
			if last, ok := openRunOf(m, o.GetNode()); ok && string(last.ID[:]) != string(o.GetRun()) {
				runs = append(runs, last.ID)
			}
		}
	}
	return runs
}

// proposing is told of each entry before it is proposed; landed of its outcome, and may block until ctx ends. One of unknown
// outcome is open until a barrier has found Raft's loop behind it: then it is decided, or this node leads no more and can
// prove nothing.
func (g *Group) proposing(cmds []*wire.Command) (landed func(ctx context.Context, err error)) {
	var runs []state.RunID
	g.rep.read(func(m *state.Machine) { runs = closedBy(m, cmds) })
	if len(runs) == 0 {
		return func(context.Context, error) {}
	}
	g.closings.begin(runs)
	return func(ctx context.Context, err error) {
		if errors.Is(err, consensus.ErrUnknown) {
			if err := g.cons.Barrier(ctx); err != nil {
				g.log.Debug("gms: a closing is of unknown outcome, and this node leads no more", "error", err)
			}
		}
		g.closings.end(runs)
	}
}
