package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/signals"
)

// trio runs three nodes of one group that differ in nothing but their names, and waits until all are ready.
func trio(t *testing.T, base configs.Config) []*App {
	t.Helper()
	var nodes []*App
	var seeds []string
	for i := range 3 {
		c := base
		c.Node, c.Home = fmt.Sprintf("n%d", i+1), filepath.Join(base.Home, fmt.Sprint(i))
		c.Bootstrap, c.Seeds = []string{"n1", "n2", "n3"}, slices.Clone(seeds)
		c.Gossip.Bind, c.Cluster.Bind = freeAddr(t), freeAddr(t)
		c.Admin.Socket = fmt.Sprintf("%s%d", base.Admin.Socket, i)
		seeds = append(seeds, c.Gossip.Bind)
		a, _ := start(t, c)
		nodes = append(nodes, a)
	}
	for _, a := range nodes {
		ready(t, a)
	}
	return nodes
}

// A component's program, which says when it begins and when it ends, and needs a moment to end when it is told to.
const slowProgram = `#!/bin/sh
trap 'sleep 0.3; echo "end $WORK_TOKEN" >> LOG; exit 1' TERM
echo "begin $WORK_TOKEN" >> LOG
while [ ! -e GO ]; do sleep 0.05; done
echo "end $WORK_TOKEN" >> LOG
`

// An operator has claims of another node's given back and set aside: the item is free only when the work has ended there,
// so that it never has two workers.
func TestClaimOfAnotherLivingNode(t *testing.T) {
	c := config(t)
	dir := t.TempDir()
	program, log, go1 := filepath.Join(dir, "slow"), filepath.Join(dir, "log"), filepath.Join(dir, "go")
	if err := os.WriteFile(program, []byte(strings.NewReplacer("LOG", log, "GO", go1).Replace(slowProgram)), 0o700); err != nil {
		t.Fatal(err)
	}
	c.Components = []configs.Component{{
		Name: "slow", Exec: program, Types: []string{"thing"}, Future: []string{"slow"}, Procedure: 2, Simultaneous: 1,
		Every: time.Second, Limit: time.Hour, Grace: 30 * time.Second, BackOff: time.Second, QuarantineAfter: 5,
	}}
	nodes := trio(t, c)
	ctx := t.Context()
	clients := map[string]*api.Client{}
	for _, a := range nodes {
		clients[a.cfg.Node] = api.NewClient(a.cfg.Admin.Socket)
		defer clients[a.cfg.Node].Close()
	}
	if _, err := clients["n1"].PutItem(ctx, api.PutItem{Type: "thing", ID: "x"}); err != nil {
		t.Fatal(err)
	}
	lines := func() []string {
		text, err := os.ReadFile(log)
		if err != nil {
			return nil
		}
		return strings.Fields(strings.ReplaceAll(string(text), " ", ":"))
	}
	working := func(n int) (held gms.ClaimState) {
		until(t, nodes[0], fmt.Sprintf("worker %d has begun", n), func() bool {
			var ok bool
			held, ok = nodes[0].group.ClaimOn("slow", "x")
			return ok && !held.Quarantined && slices.Contains(lines(), fmt.Sprintf("begin:%d", held.Token))
		})
		return held
	}
	else1 := func(held gms.ClaimState) *api.Client {
		if held.Node == "n1" {
			return clients["n2"]
		}
		return clients["n1"]
	}
	first := working(1)
	name := api.ClaimName{Component: "slow", Item: "x", Token: first.Token}
	if got, err := else1(first).FreeClaim(ctx, name); err != nil || got.State != "free" {
		t.Fatalf("free: %+v, %v", got, err)
	}
	if !slices.Contains(lines(), fmt.Sprintf("end:%d", first.Token)) {
		t.Errorf("freed before the work had ended: %v", lines())
	}
	second := working(2)
	name.Token = second.Token
	if got, err := else1(second).QuarantineClaim(ctx, name); err != nil || got.State != "quarantined" {
		t.Fatalf("quarantine: %+v, %v", got, err)
	}
	if !slices.Contains(lines(), fmt.Sprintf("end:%d", second.Token)) {
		t.Errorf("set aside before the work had ended: %v", lines())
	}
	if _, err := nodes[0].group.Claim(ctx, "slow", "x", 1); err == nil {
		t.Error("a quarantined item was claimed")
	}
	shown, err := api.Get[api.Item](ctx, clients["n1"], api.ItemPath(api.ItemQuery{Component: "slow"}, "x"))
	if err != nil || shown.Wanted || len(shown.Why) != 1 || !strings.Contains(shown.Why[0], "set aside") {
		t.Errorf("a quarantined item is shown as %+v, %v", shown, err)
	}
	if got, err := clients["n3"].FreeClaim(ctx, name); err != nil || got.State != "free" {
		t.Fatalf("free a quarantined item: %+v, %v", got, err)
	}
	working(3)
	if err := os.WriteFile(go1, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, nodes[0], "the work is done", func() bool {
		it, err := nodes[0].work.items.Get(ctx, "slow", "x")
		e, ok := it.Newest("slow")
		return err == nil && ok && e.Success && len(it.Events) == 1
	})
	for i, line := range lines() {
		if begins := strings.HasPrefix(line, "begin"); begins != (i%2 == 0) {
			t.Errorf("two workers at once: %v", lines())
			break
		}
	}
}

// What a dead run claimed is settled by its recovery, and by nothing else, whatever an operator asks.
func TestNextStepOfAClaim(t *testing.T) {
	held := gms.ClaimState{Claim: signals.Claim{Token: 7}, Run: "aa"}
	moved, orphan, adopted, aside := held, held, held, held
	moved.Token, orphan.Orphan, adopted.Adopted, aside.Quarantined = 8, true, true, true
	adopted.Token = 8
	for name, c := range map[string]struct {
		c                gms.ClaimState
		held             bool
		free, quarantine claimStep
	}{
		"held by a living run":        {held, true, claimAsk, claimAsk},
		"orphan":                      {orphan, true, claimSettles, claimSettles},
		"adopted, fence still raised": {adopted, true, claimEnded, claimSettles},
		"quarantined":                 {aside, true, claimFree, claimAside},
		"moved":                       {moved, true, claimEnded, claimAsk},
		"no more":                     {gms.ClaimState{}, false, claimEnded, claimTake},
	} {
		if got := nextStep(7, false, c.c, c.held); got != c.free {
			t.Errorf("%s, to be freed: step %d, want %d", name, got, c.free)
		}
		if got := nextStep(7, true, c.c, c.held); got != c.quarantine {
			t.Errorf("%s, to be set aside: step %d, want %d", name, got, c.quarantine)
		}
	}
}

// A tick goes on without whoever asked for it, who can ask for its report; a second one is busy meanwhile.
func TestReportOfATickIsRelayed(t *testing.T) {
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	goOn := make(chan struct{})
	r, err := component.New(component.Config{
		Component: "hand", Node: c.Node, Trigger: component.Trigger{Types: []string{"thing"}, Future: []string{"hand"}},
		Worker: component.Func(func(context.Context, component.Job) (report component.Report, err error) {
			<-goOn
			for i := range component.MaxFailures + 3 {
				report.Fail(component.Failure{Text: fmt.Sprint("no luck ", i)})
			}
			return report, nil
		}),
		Locks: a.work.bridge, Claims: a.work.bridge, Gate: a.work.bridge, Index: a.work.items, Store: a.work.items, Now: a.clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	addRunner(a, "hand", r) // without a timer: only the ticks of this test
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	ctx := t.Context()
	if _, err := client.PutItem(ctx, api.PutItem{Type: "thing", ID: "x"}); err != nil {
		t.Fatal(err)
	}
	long, err := client.RunComponent(ctx, "hand")
	if err != nil || long.Ended != nil {
		t.Fatalf("work that lasts: %+v, %v", long, err)
	}
	until(t, a, "the item is worked on", func() bool { _, held := a.group.ClaimOn("hand", "x"); return held })
	impatient, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := client.AwaitTick(impatient, long); err == nil {
		t.Error("who does not wait is told of an end")
	}
	busy, err := client.RunComponent(ctx, "hand")
	if err == nil {
		busy, err = client.AwaitTick(ctx, busy)
	}
	if err != nil || busy.Code != 3 {
		t.Errorf("while another tick goes on: %+v, %v", busy, err)
	}
	close(goOn)
	got, err := client.AwaitTick(ctx, long)
	if err != nil || got.Code != 1 || got.Claimed != 1 || got.Failed != 1 || got.Outcome != "failed" {
		t.Errorf("relayed: %+v, %v", got, err)
	}
	if n := len(got.Failures); n != component.MaxFailures+1 || got.Failures[n-1].Text != "and 3 more failures" {
		t.Errorf("%d failures, the last %+v", n, got.Failures[n-1])
	}
	if _, err := api.Get[api.Tick](ctx, client, api.TickPath("hand", "nope")); api.ExitCode(err) != api.ExitFailed {
		t.Errorf("a tick that never was: %v", err)
	}
	if err := r.Stop(ctx); err != nil {
		t.Fatal(err)
	}
}
