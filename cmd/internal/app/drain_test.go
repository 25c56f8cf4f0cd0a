package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// drainReaches waits until the node's drain is in a state.
func drainReaches(t *testing.T, by *App, node, state string) api.Drain {
	t.Helper()
	var last api.Drain
	client := api.NewClient(by.cfg.Admin.Socket)
	defer client.Close()
	err := api.Watch(t.Context(), client, api.DrainPath(node), func(d api.Drain) bool {
		last = d
		return d.State != state
	})
	if err != nil {
		t.Fatalf("%+v, %v", last, err)
	}
	return last
}

// TestDrainOfALeader: a drained leader hands over to another voter and stays here as a follower, begins nothing, and nobody
// else may be restarted meanwhile; a restart does not end the drain, undrain does, from any node.
func TestDrainOfALeader(t *testing.T) {
	one := config(t)
	first, stopFirst := start(t, one)
	ready(t, first)
	join := func(node string) *App {
		c := config(t)
		c.Node, c.Seeds, c.Databases, c.Storages, c.Role = node, []string{one.Gossip.Bind}, one.Databases, nil, configs.RoleWitness
		a, _ := start(t, c)
		ready(t, a)
		return a
	}
	second, third := join("n2"), join("n3")
	ctx, p := t.Context(), people{first}
	eventually := func(what string, ok func() bool) {
		t.Helper()
		for !ok() {
			select {
			case <-first.group.Cache().Changed():
			case <-second.group.Cache().Changed():
			case <-second.group.Changed():
			case <-ctx.Done():
				t.Fatal(what)
			}
		}
	}
	may := func(by *App, node string) string {
		t.Helper()
		m, err := people{by}.MayRestart(ctx, node)
		if err != nil || m.May == (len(m.Why) > 0) {
			t.Fatalf("%+v, %v", m, err)
		}
		return strings.Join(m.Why, "; ")
	}
	client := api.NewClient(one.Admin.Socket)
	defer client.Close()
	if err := api.Watch(ctx, client, api.MayRestartPath("n1"), func(m api.MayRestart) bool { return !m.May }); err != nil {
		t.Fatal(err)
	}
	eventually("n1 does not lead", func() bool { // it did, unless the machine was too slow for its lease
		if leader := second.group.Leader(); leader != "" && leader != "n1" {
			if err := first.group.StandForElection(ctx); err != nil {
				t.Fatal(err)
			}
		}
		return first.group.Leader() == "n1"
	})
	if d, err := p.Drain(ctx, "n1"); err != nil || d.State != api.DrainNone || !d.Leads {
		t.Fatalf("before: %+v, %v; %s leads for n1, %s for n2", d, err, first.group.Leader(), second.group.Leader())
	}
	_, err := p.DrainNode(ctx, api.NodeName{Node: "n9"})
	wantCode(t, "an unknown node is drained", err, api.CodeNotFound)

	if d, err := (people{second}).DrainNode(ctx, api.NodeName{Node: "n1"}); err != nil || d.State == api.DrainNone || !strings.HasSuffix(d.By, "n2") || d.Since == nil {
		t.Fatalf("%+v, %v", d, err)
	}
	if d := drainReaches(t, first, "n1", api.DrainIdle); d.Leads || !d.Here {
		t.Errorf("drained: %+v", d)
	}
	if why := may(first, "n2"); !strings.Contains(why, "n1 is drained") {
		t.Errorf("may n2 restart: %q", why)
	}
	if _, err := (people{second}).DrainNode(ctx, api.NodeName{Node: "n2"}); err != nil { // by somebody who had asked before
		t.Fatal(err)
	}
	if of1, of2 := may(first, "n1"), may(second, "n2"); strings.Contains(of1, "is drained") || !strings.Contains(of2, "n1 is drained") {
		t.Errorf("both are drained: may n1 restart: %q, may n2: %q", of1, of2)
	}
	if _, err := (people{first}).UndrainNode(ctx, api.NodeName{Node: "n2"}); err != nil {
		t.Fatal(err)
	}
	if err := api.Watch(ctx, client, api.MayRestartPath("n1"), func(m api.MayRestart) bool { return !m.May }); err != nil {
		t.Fatal(err)
	}
	shown := func(m api.Member) bool { return m.Node == "n1" && m.State == api.DrainIdle }
	if err := api.Watch(ctx, client, api.PathMembers, func(list []api.Member) bool { return !slices.ContainsFunc(list, shown) }); err != nil {
		t.Fatal(err)
	}
	task, err := client.CreateBackup(ctx, api.CreateBackup{Database: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if task, err = client.Task(ctx, task.ID); err != nil || strings.Join(task.Waits, "; ") != "n1 is drained" {
		t.Errorf("waits for %q, %v", task.Waits, err)
	}

	stopFirst()
	eventually("n1 is still here", func() bool { _, here := second.member("n1"); return !here })
	if d, err := (people{second}).Drain(ctx, "n1"); err != nil || d.State != api.DrainIdle || d.Here {
		t.Errorf("stopped: %+v, %v", d, err)
	}
	if why := may(second, "n3"); !strings.Contains(why, "voter n1 is not here") {
		t.Errorf("may n3 restart: %q", why)
	}
	again, _ := start(t, one)
	ready(t, again)
	drainReaches(t, again, "n1", api.DrainIdle)
	if d, err := (people{third}).UndrainNode(ctx, api.NodeName{Node: "n1"}); err != nil || d.State != api.DrainNone {
		t.Errorf("%+v, %v", d, err)
	}
	other := api.NewClient(one.Admin.Socket)
	defer other.Close()
	if err := api.Watch(ctx, other, api.TaskPath(task.ID), func(x api.Task) bool { return x.Attempt == 0 }); err != nil {
		t.Errorf("the task is not begun after the drain: %v", err)
	}
}

// TestUndrainOfOneThatHasLeft: a removal is taken back, or the node is forgotten, whichever comes first; never both.
func TestUndrainOfOneThatHasLeft(t *testing.T) {
	a, _ := start(t, config(t))
	ready(t, a)
	ctx, p := t.Context(), people{a}
	wish := func() uint64 {
		t.Helper()
		if err := a.wishDrain(ctx, "n1", drainRecord{Leaves: true}); err != nil {
			t.Fatal(err)
		}
		if err := a.group.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		_, version, wanted := a.drainOf("n1")
		if !wanted {
			t.Fatal("the wish is not there")
		}
		return version
	}
	version := wish()
	if d, err := p.UndrainNode(ctx, api.NodeName{Node: "n1"}); err != nil || d.State != api.DrainNone {
		t.Fatalf("taken back: %+v, %v", d, err)
	}
	if err := a.noWayBack(ctx, "n1", drainRecord{Leaves: true}, version); !isConflict(err) {
		t.Errorf("forgotten all the same: %v", err)
	}
	version = wish()
	if err := a.noWayBack(ctx, "n1", drainRecord{Leaves: true}, version); err != nil {
		t.Fatal(err)
	}
	_, err := p.UndrainNode(ctx, api.NodeName{Node: "n1"})
	wantCode(t, "taken back too late", err, api.CodeConflict)
	if r, _, wanted := a.drainOf("n1"); !wanted || !r.Going {
		t.Errorf("the wish is %+v, %v", r, wanted)
	}
}

// TestWhatStandsAgainstARestart is the table of the decision.
func TestWhatStandsAgainstARestart(t *testing.T) {
	member := func(node string, change func(*gms.MemberDetail)) gms.MemberDetail {
		m := gms.MemberDetail{Member: signals.Member{Node: node, Role: signals.Core, Ready: true}}
		if change != nil {
			change(&m)
		}
		return m
	}
	servers := []gms.Server{{Node: "n1", Voter: true}, {Node: "n2", Voter: true}, {Node: "n3", Voter: true}}
	well := func() crossing {
		return crossing{node: "n1", confirmed: true, servers: servers, voters: 3,
			members: []gms.MemberDetail{member("n1", nil), member("n2", nil), member("n3", nil)}}
	}
	for name, c := range map[string]struct {
		change func(*crossing)
		want   string
	}{
		"well":                        {func(*crossing) {}, ""},
		"its own drain":               {func(c *crossing) { c.drained = []drainedNode{{"n1", 7}} }, ""},
		"no majority":                 {func(c *crossing) { c.confirmed = false }, "no majority confirms what this node knows"},
		"another's drain":             {func(c *crossing) { c.drained = []drainedNode{{"n2", 7}} }, "n2 is drained: fencepost node undrain n2"},
		"two drains, its own first":   {func(c *crossing) { c.drained = []drainedNode{{"n1", 7}, {"n2", 8}} }, ""},
		"two drains, another's first": {func(c *crossing) { c.drained = []drainedNode{{"n1", 8}, {"n2", 7}} }, "n2 is drained: fencepost node undrain n2"},
		"a later drain, and it is gone": {func(c *crossing) {
			c.drained, c.members = []drainedNode{{"n1", 7}, {"n2", 8}}, []gms.MemberDetail{c.members[0], c.members[2]}
		}, "voter n2 is not here"},
		"an open fence":            {func(c *crossing) { c.fences = []api.Fence{{Component: "backup", Node: "n3"}} }, "the fence on backup of n3 is open: fencepost fences"},
		"a voter is gone":          {func(c *crossing) { c.members = c.members[:2] }, "voter n3 is not here"},
		"a voter is not one again": {func(c *crossing) { c.servers = slices.Concat(servers[:2], []gms.Server{{Node: "n3"}}) }, "2 members vote, and there shall be 3: one has to catch up first"},
		"one is suspected":         {func(c *crossing) { c.members[1] = member("n2", func(m *gms.MemberDetail) { m.Suspected = true }) }, "n2 is suspected: it answers late or not at all"},
		"one is not ready":         {func(c *crossing) { c.members[1] = member("n2", func(m *gms.MemberDetail) { m.Ready = false }) }, "n2 is not ready yet"},
		"a spectator is not ready": {func(c *crossing) {
			c.members = append(c.members, member("n4", func(m *gms.MemberDetail) { m.Ready, m.Role = false, signals.Spectator }))
		}, ""},
		"another stops": {func(c *crossing) {
			c.members[2] = member("n3", func(m *gms.MemberDetail) { m.Details = map[string][]byte{stoppingDetail: []byte("yes")} })
		}, "n3 stops just now"},
		"two members, two voters":     {func(c *crossing) { c.members, c.servers = c.members[:2], servers[:2] }, ""},
		"a fourth that need not vote": {func(c *crossing) { c.members = append(c.members, member("n4", nil)) }, ""},
	} {
		got := well()
		c.change(&got)
		if why := strings.Join(got.against(), "; "); why != c.want {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
	}
}
