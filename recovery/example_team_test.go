package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/gmstest"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

// team is some nodes of one group in this process, each with its own home, ports and recovery manager, for the examples. A
// host app has one such node per process.
type team struct {
	ctx   context.Context
	nodes map[string]*teammate
	end   context.CancelFunc
}

type teammate struct {
	Group   *gms.Group
	Manager *recovery.Manager
	kill    func()
}

func newTeam() *team {
	ctx, end := context.WithTimeout(context.Background(), 2*time.Minute)
	return &team{ctx: ctx, end: end, nodes: map[string]*teammate{}}
}

// start starts a node, which joins those that were started before, and waits until it stands in the group. add registers
// its factories; change, if any, changes its configuration.
func (t *team) start(name string, add func(r *signals.Router) error, change ...func(*gms.Config)) *teammate {
	cfg := gms.DefaultConfig()
	cfg.Node = name
	for _, other := range t.nodes {
		if address := other.Group.GossipAddress(); address != "" {
			cfg.Seeds = append(cfg.Seeds, address)
		}
	}
	n := &teammate{kill: gmstest.Killable(&cfg)}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	n.Group, err = gms.New(cfg)
	must(err)
	must(add(n.Group.Router()))
	n.Manager, err = recovery.ForGroup(n.Group, recovery.Options{})
	must(err)
	must(errors.Join(n.Group.Start(t.ctx), n.Manager.Start(t.ctx), n.Group.AwaitStanding(t.ctx)))
	t.nodes[name] = n
	return n
}

// claim claims an item for a node.
func (t *team) claim(node, component, item string) signals.Claim {
	c, err := t.nodes[node].Group.Claim(t.ctx, component, item, 1)
	must(err)
	return c
}

// ended waits until so many recoveries have ended, as a node sees it.
func (t *team) ended(node string, recoveries int) {
	for g := t.nodes[node].Group; len(g.Ended()) < recoveries; {
		changed := g.Cache().Changed()
		if len(g.Ended()) >= recoveries {
			return
		}
		select {
		case <-changed:
		case <-t.ctx.Done():
			must(t.ctx.Err())
		}
	}
}

// stop takes all nodes down at once, without a polite end.
func (t *team) stop() {
	gone, cancel := context.WithCancel(t.ctx)
	cancel()
	var all sync.WaitGroup
	for _, n := range t.nodes {
		all.Go(func() {
			n.Manager.Stop()
			must(n.Group.Stop(gone))
		})
	}
	all.Wait()
	t.end()
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("example: %v", err))
	}
}
