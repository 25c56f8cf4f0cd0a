package gms

import (
	"slices"
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// The host's own selector runs on the leader, when a run is about to be closed; only candidates count, and only what the
// leader says.
func TestTheHostsOwnSelectorRunsOnTheLeader(t *testing.T) {
	g := newLooseGroup(t)
	g.must(formCommand())
	for n := range byte(4) {
		g.must(openCommand(n+1, []string{"n1", "n2", "n3", "n4"}[n], 0, "c", "d"))
	}
	var asked []string
	g.cfg.Order = func(component string, dead signals.Member, candidates []signals.Member) []string {
		asked = append(asked, component)
		if dead.Run != runOf(2).String() || len(candidates) != 3 || slices.ContainsFunc(candidates, func(m signals.Member) bool { return m.Run == dead.Run }) {
			t.Errorf("asked for %v among %v", dead, candidates)
		}
		if component == "d" {
			panic("a mistake of the host")
		}
		return []string{runOf(4).String(), "nonsense", runOf(2).String(), runOf(9).String(), runOf(4).String(), runOf(3).String()}
	}
	want := [][]byte{runOf(4).Bytes(), runOf(3).Bytes()}
	told := []*wire.CandidateOrder{{Component: "c", Runs: [][]byte{runOf(1).Bytes()}}}
	closing := closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED)
	closing.GetCloseRun().Orders = told // by the one who sent it
	newer := openCommand(7, "n2", 0, "c")
	newer.GetOpenRun().Orders = told
	g.putInOrder([]*wire.Command{closing, newer})
	for _, got := range [][]*wire.CandidateOrder{closing.GetCloseRun().GetOrders(), newer.GetOpenRun().GetOrders()} {
		if len(got) != 1 || got[0].GetComponent() != "c" || !slices.EqualFunc(got[0].GetRuns(), want, slices.Equal) {
			t.Errorf("order %v", got)
		}
	}
	if slices.Sort(asked); !slices.Equal(asked, []string{"c", "c", "d", "d"}) {
		t.Errorf("asked for %v", asked)
	}
	g.must(closing)
	if r := recoveriesIn(g)["c"]; r.Appointee != runOf(4).String() {
		t.Errorf("appointed %s", r.Appointee)
	}
	g.cfg.Order = nil
	g.putInOrder([]*wire.Command{closing})
	if closing.GetCloseRun().GetOrders() != nil {
		t.Error("an order without a selector")
	}
}

func recoveriesIn(g *looseGroup) map[string]Recovery {
	out := make(map[string]Recovery)
	list, _ := g.Recoveries()
	for _, r := range list {
		out[r.Component] = r
	}
	return out
}
