package gms

import (
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// Order is a host's own selector: it puts the candidates for the recovery of a component of a dead run into order, by
// listing their runs; whoever it leaves out comes after those, in the order of the group's selector, and the dead run's own
// node is last whatever it says. It runs on the leader, each time that a run is about to be closed, and what it says
// travels in that command, so it need not give the same answer everywhere. It must not block: closings wait for it. One
// that panics has said nothing.
type Order func(component string, dead signals.Member, candidates []signals.Member) (runs []string)

// putInOrder has the host's selector say, on the leader, who recovers what these commands close. Nobody else has a say.
func (g *Group) putInOrder(cmds []*wire.Command) {
	for _, c := range cmds {
		switch op := c.GetOp().(type) {
		case *wire.Command_CloseRun:
			id, _ := state.RunIDOf(op.CloseRun.GetRun())
			op.CloseRun.Orders = g.ordersFor(id)
		case *wire.Command_OpenRun:
			op.OpenRun.Orders = nil
			if run, ok := g.rep.open(op.OpenRun.GetNode()); ok && g.cfg.Order != nil {
				op.OpenRun.Orders = g.ordersFor(run.ID)
			}
		}
	}
}

func (g *Group) ordersFor(dead state.RunID) []*wire.CandidateOrder {
	if g.cfg.Order == nil {
		return nil
	}
	var of signals.Member
	candidates := make(map[string][]signals.Member)
	g.rep.read(func(m *state.Machine) {
		run, ok := m.Run(dead)
		if !ok || !run.IsOpen() {
			return
		}
		of = memberOf(run)
		for _, c := range m.Components(dead) {
			candidates[c] = candidatesOf(m, c, dead)
		}
	})
	var list []*wire.CandidateOrder
	for component, members := range candidates {
		if runs := g.order(component, of, members); len(runs) > 0 {
			list = append(list, &wire.CandidateOrder{Component: component, Runs: runs})
		}
	}
	return list
}

func candidatesOf(m *state.Machine, component string, dead state.RunID) (list []signals.Member) {
	for _, r := range m.Runs() {
		if r.IsOpen() && r.ID != dead && r.Open.GetRole() == wire.Role_ROLE_CORE && r.Registered(component) {
			list = append(list, memberOf(r))
		}
	}
	return list
}

// order asks the host and believes nothing: what is no candidate, or is named twice, is left out.
func (g *Group) order(component string, dead signals.Member, candidates []signals.Member) (runs [][]byte) {
	defer func() {
		if r := recover(); r != nil {
			g.log.Error("gms: the host's selector panicked, the group's is used", "recovers", component, "panic", fmt.Sprint(r))
			runs = nil
		}
	}()
	for _, s := range g.cfg.Order(component, dead.Clone(), slices.Clone(candidates)) {
		id, err := parseRun(s)
		known := slices.ContainsFunc(candidates, func(c signals.Member) bool { return c.Run == s })
		if err != nil || !known || slices.ContainsFunc(runs, func(b []byte) bool { return string(b) == string(id[:]) }) {
			continue
		}
		runs = append(runs, id.Bytes())
	}
	return runs
}
