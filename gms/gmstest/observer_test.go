package gmstest

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// judged is an observer with two nodes, whose verdicts are kept instead of failing the test.
func judged(t *testing.T) (o *observer, one, two *Node, verdicts *[]string) {
	t.Helper()
	w := &World{t: t, net: newNetwork(1), tape: newTape(), sites: map[string]*site{}}
	o = newObserver(w)
	verdicts = new([]string)
	o.fail = func(text string) { *verdicts = append(*verdicts, text) }
	var nodes []*Node
	for _, name := range []string{"n1", "n2"} {
		s := &site{name: name, ip: "127.0.0." + name[1:]}
		s.node = &Node{Name: name, world: w, site: s}
		w.sites[name] = s
		nodes = append(nodes, s.node)
	}
	return o, nodes[0], nodes[1], verdicts
}

// formed is a machine that has applied the forming of a group, and then an entry with the commands.
func formed(cmds ...*wire.Command) *state.Machine {
	m := state.New()
	m.Apply(1, &wire.Entry{Version: wire.Protocol, Commands: []*wire.Command{{Op: &wire.Command_FormGroup{FormGroup: &wire.FormGroup{
		ClusterId: make([]byte, 16), Base: 1000, Settings: &wire.Settings{Selector: wire.Selector_SELECTOR_RENDEZVOUS, MaxAttempts: 3},
	}}}}})
	m.Apply(2, &wire.Entry{Version: wire.Protocol, Commands: cmds})
	return m
}

func want(t *testing.T, verdicts *[]string, text string) {
	t.Helper()
	if got := strings.Join(*verdicts, "; "); text == "" && got != "" || !strings.Contains(got, text) {
		t.Errorf("the observer says %q, want %q", got, text)
	}
	*verdicts = nil
}

func TestObserverSeesReplicasThatDiffer(t *testing.T) {
	o, one, two, verdicts := judged(t)
	open := &wire.Command{Op: &wire.Command_OpenRun{OpenRun: &wire.OpenRun{
		Node: "n1", Run: []byte("0123456789abcdef"), Home: make([]byte, 16), NodeKey: make([]byte, 32), Role: wire.Role_ROLE_CORE,
		GossipAddr: "127.0.0.1:1", ClusterAddr: "127.0.0.1:2", Protocol: wire.Protocol,
	}}}
	with, without := formed(open), formed()
	if len(with.View().Members) != 1 {
		t.Fatal("the run was not opened")
	}
	o.applied(one, 2, with, []state.Change{})
	want(t, verdicts, "")
	o.applied(two, 2, with, []state.Change{})
	want(t, verdicts, "")
	o.applied(two, 3, with, []state.Change{})
	o.applied(one, 3, without, []state.Change{})
	want(t, verdicts, "n1 has another state at index 3")
	o.applied(two, 3, with, []state.Change{})
	want(t, verdicts, "invariant 1: n2 went from index 3")
	o.applied(two, 4, without, []state.Change{})
	want(t, verdicts, "to index 4, view")
}

func TestObserverSeesTheLivingClosed(t *testing.T) {
	o, one, two, verdicts := judged(t)
	now := time.Now()
	o.leaders[one] = now
	closing := func(e wire.Evidence) state.Run {
		id := state.RunID{1}
		o.runs[id] = two
		return state.Run{ID: id, Open: &wire.OpenRun{Node: "n2"}, Evidence: e}
	}
	refused, lapsed := wire.Evidence_EVIDENCE_REFUSED, wire.Evidence_EVIDENCE_LAPSED
	for _, c := range []struct {
		life     life
		cut      bool
		ago      time.Duration // since it was proposed
		evidence wire.Evidence
		want     string
	}{
		{running, false, 0, refused, "the living run of n2 was closed as refused"},
		{paused, false, 0, refused, "the living run of n2 was closed as refused"},
		{killed, false, 0, refused, ""},
		{stopping, false, 0, refused, ""},
		{running, false, 0, lapsed, "invariant 14"},
		{killed, false, 0, lapsed, ""},
		{running, true, 0, lapsed, ""},
		{running, true, time.Minute, lapsed, ""},
		{running, false, time.Minute, lapsed, "invariant 14"},
		{running, false, 0, wire.Evidence_EVIDENCE_OPERATOR, ""},
	} {
		two.setLife(c.life)
		clear(o.cut)
		if c.cut {
			o.cut[[2]string{one.site.ip, two.site.ip}] = now.Add(-c.ago)
		}
		o.lease = func(*Node, state.Run) {}
		o.judgeClosing(one, closing(c.evidence), now.Add(-c.ago))
		want(t, verdicts, c.want)
	}
}
