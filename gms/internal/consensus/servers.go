package consensus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

// Server is one entry of the configuration.
type Server struct {
	ID      string // "node/home"
	Address string // node name; no two servers have the same
	Voter   bool
}

// Configuration is who takes part in the log.
type Configuration struct {
	// Index is the log index of the entry that made it; changes name it, so that they change what their author saw.
	Index   uint64
	Servers []Server
}

// HasState says whether there is a log or a snapshot. It may be called before Start and opens the stores.
func (n *Node) HasState() (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.openStore(n.onFull); err != nil {
		return false, err
	}
	has, err := raft.HasExistingState(n.logs, n.stable, n.snaps)
	if err != nil {
		return false, fmt.Errorf("look for a log: %w", err)
	}
	return has, nil
}

// LastIndex is the last index on this node's disk, in the log or in a snapshot; 0 when there is none. It may be called
// before Start and opens the stores.
func (n *Node) LastIndex() (uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.openStore(n.onFull); err != nil {
		return 0, err
	}
	last, err := n.logs.LastIndex()
	if err != nil {
		return 0, fmt.Errorf("read the end of the log: %w", err)
	}
	snaps, err := n.snaps.List()
	if err != nil {
		return 0, fmt.Errorf("list the snapshots: %w", err)
	}
	if len(snaps) > 0 {
		last = max(last, snaps[0].Index)
	}
	return last, nil
}

// Bootstrap makes the first configuration, with all servers as voters; every one of them must do so with the same list.
// It may be called before or after Start; [ErrHasState] means that there is a log already.
func (n *Node) Bootstrap(servers []Server) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.openStore(n.onFull); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	var c raft.Configuration
	for _, s := range servers {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Address)})
	}
	err := n.bootstrap(c)
	if errors.Is(err, raft.ErrCantBootstrap) {
		return fmt.Errorf("bootstrap: %w", ErrHasState)
	}
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}

func (n *Node) bootstrap(c raft.Configuration) error {
	if n.raft != nil {
		return n.raft.BootstrapCluster(c).Error()
	}
	trans := newTransportForBootstrap(n.cfg.Address)
	return raft.BootstrapCluster(n.raftConfig(nil), n.logs, n.stable, n.snaps, trans, c)
}

// newTransportForBootstrap is asked for nothing but the encoding of addresses, which needs no network.
func newTransportForBootstrap(address string) raft.Transport {
	_, t := raft.NewInmemTransport(raft.ServerAddress(address))
	return t
}

// Configuration gives the latest configuration, which need not be committed yet; empty before Start.
func (n *Node) Configuration() Configuration {
	r := n.peek()
	if r == nil {
		return Configuration{}
	}
	c := Configuration{Index: n.configs.latest()} // first: a change in between then refuses, not misleads
	for _, s := range r.GetConfiguration().Configuration().Servers {
		c.Servers = append(c.Servers, Server{ID: string(s.ID), Address: string(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	return c
}

// Listed says whether the latest configuration known here has this node's own server. One that was removed while it was
// away has not heard of it.
func (n *Node) Listed() bool { return n.Lists(n.cfg.ServerID) }

// Lists says whether the latest configuration known here has a server.
func (n *Node) Lists(id string) bool {
	r := n.peek()
	return r != nil && slices.ContainsFunc(r.GetConfiguration().Configuration().Servers, func(s raft.Server) bool {
		return s.ID == raft.ServerID(id)
	})
}

// Bare says whether this node has never had a part in the log: no configuration is known here.
func (n *Node) Bare() bool {
	r := n.peek()
	return r != nil && len(r.GetConfiguration().Configuration().Servers) == 0
}

// AddNonvoter adds a server that gets the log and has no vote, or moves one to another address. prev is the Index of the
// configuration that the caller decided on, 0 for any; when it has changed the error is [ErrStale]. Only the leader can;
// errors otherwise as in Propose. It returns the index of the new configuration.
func (n *Node) AddNonvoter(ctx context.Context, id, address string, prev uint64) (uint64, error) {
	return n.change(ctx, "add "+id, prev, func(r *raft.Raft) raft.IndexFuture {
		return r.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), prev, enqueueTime(ctx))
	})
}

// Promote gives a server a vote. Whether it has caught up is the caller's to see, in [Node.Stats]: a voter with an empty
// log costs the quorum. Otherwise as AddNonvoter.
func (n *Node) Promote(ctx context.Context, id, address string, prev uint64) (uint64, error) {
	return n.change(ctx, "promote "+id, prev, func(r *raft.Raft) raft.IndexFuture {
		return r.AddVoter(raft.ServerID(id), raft.ServerAddress(address), prev, enqueueTime(ctx))
	})
}

// Demote takes a server's vote away. Otherwise as AddNonvoter.
func (n *Node) Demote(ctx context.Context, id string, prev uint64) (uint64, error) {
	return n.change(ctx, "demote "+id, prev, func(r *raft.Raft) raft.IndexFuture {
		return r.DemoteVoter(raft.ServerID(id), prev, enqueueTime(ctx))
	})
}

// Remove forgets a server; its own node, if it still runs, stays up without part in the log. Otherwise as AddNonvoter.
func (n *Node) Remove(ctx context.Context, id string, prev uint64) (uint64, error) {
	return n.change(ctx, "remove "+id, prev, func(r *raft.Raft) raft.IndexFuture {
		return r.RemoveServer(raft.ServerID(id), prev, enqueueTime(ctx))
	})
}

func (n *Node) change(ctx context.Context, what string, prev uint64, f func(*raft.Raft) raft.IndexFuture) (uint64, error) {
	// Raft compares prev again, but its refusal has no name of its own.
	if c := n.Configuration(); prev != 0 && c.Index != prev {
		return 0, fmt.Errorf("%s: %w: index %d, not %d", what, ErrStale, c.Index, prev)
	}
	index, err := wait(ctx, n, func(r *raft.Raft) (uint64, error) {
		change := f(r)
		if err := change.Error(); err != nil {
			return 0, err
		}
		return change.Index(), nil
	}, nil)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return index, nil
}

// ElectNow makes this node stand for election at once, without asking first whether it would win, and with the word that
// lets voters leave a leader they believe in. It is for the voter that comes first when the leader's death is proven.
// It returns when the election has begun; [ErrNotVoter] when this node can not be elected.
func (n *Node) ElectNow(ctx context.Context) error {
	r, done, err := n.running()
	if err != nil {
		return fmt.Errorf("elect now: %w", err)
	}
	defer done()
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.ID == raft.ServerID(n.cfg.ServerID) && s.Suffrage == raft.Voter {
			if r.State() == raft.Leader {
				return nil
			}
			if err := n.trans.electNow(ctx); err != nil {
				return fmt.Errorf("elect now: %w", err)
			}
			return nil
		}
	}
	return fmt.Errorf("elect now: %w", ErrNotVoter)
}

// TransferLeadership hands the leadership to the voter that is furthest, for a node that is about to stop; it must be
// stopped afterwards, whatever came of it: after a failed transfer Raft may refuse proposals for ever.
func (n *Node) TransferLeadership(ctx context.Context) error {
	_, err := wait(ctx, n, func(r *raft.Raft) (struct{}, error) {
		return struct{}{}, r.LeadershipTransfer().Error()
	}, nil)
	if err != nil {
		return fmt.Errorf("transfer the leadership: %w", err)
	}
	return nil
}
