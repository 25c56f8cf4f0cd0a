package gms

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// probe asks the kernel of the run's host whether the run's ports are gone.
func (g *Group) probe(ctx context.Context, run state.Run) rpc.Verdict {
	target := rpc.ProbeTarget{Node: run.Node(), ClusterAddr: run.Open.GetClusterAddr(), GossipAddr: run.Open.GetGossipAddr(), Run: run.ID.Bytes()}
	return rpc.Prober{Identity: g.identity(), Network: g.cfg.Network, Certificates: g.keeper}.Refused(ctx, target)
}

// ping asks a run directly whether it is there.
func (g *Group) ping(ctx context.Context, run state.Run) bool {
	ctx, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
	defer cancel()
	hello, err := g.dialer.Hello(ctx, run.Node(), run.Open.GetClusterAddr())
	return err == nil && string(hello.GetRun()) == string(run.ID.Bytes())
}

// askVoters counts who of the voters is refused by a run's host, too; a majority of all must be, and nobody may have an
// answer of the run.
func (g *Group) askVoters(ctx context.Context, run state.Run) bool {
	voters := g.voterNodes()
	answers := make(chan *wire.ProbeReply, len(voters))
	ctx, cancel := context.WithTimeout(ctx, 750*time.Millisecond) // each may have to probe, which takes up to 250 ms
	defer cancel()
	for _, node := range voters {
		if node == g.cfg.Node {
			g.wg.Go(func() { answers <- g.witness(ctx, run.ID) })
			continue
		}
		g.wg.Go(func() { answers <- g.askVoter(ctx, node, run.ID) })
	}
	refused := 0
	for range voters {
		a := <-answers
		if a.GetAlive() {
			return false
		}
		if a.GetRefused() {
			refused++
		}
	}
	return refused > len(voters)/2
}

func (g *Group) askVoter(ctx context.Context, node string, run state.RunID) *wire.ProbeReply {
	c, err := g.client(node)
	if err != nil {
		return &wire.ProbeReply{}
	}
	reply, err := c.Probe(ctx, &wire.ProbeRequest{Run: run.Bytes()})
	if err != nil {
		g.log.Debug("gms: voter could not be asked", "voter", node, "error", fmt.Sprint(err))
		return &wire.ProbeReply{}
	}
	return reply
}
