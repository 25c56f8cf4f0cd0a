package consensus

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/hashicorp/raft"
)

// Remains is the log of a home whose node does not run, opened to make a new group of one out of it when the quorum is lost
// for good. What it holds counts as decided, whether a majority had it or not: there is no other memory left.
type Remains struct {
	node    *Node
	last    uint64 // index of the last entry
	term    uint64 // of the last entry
	servers []Server
}

// OpenRemains opens what is in dir, and has the FSM take in the newest snapshot and every entry behind it. Nothing is
// written. The caller calls Close.
func OpenRemains(dir string, fsm FSM) (*Remains, error) {
	n, err := New(Config{ServerID: "remains", Address: "remains", Dir: dir, Streams: noStreams{}, FSM: fsm})
	if err != nil {
		return nil, err
	}
	r := &Remains{node: n}
	if err := r.read(); err != nil {
		n.Stop()
		return nil, err
	}
	return r, nil
}

func (r *Remains) read() error {
	n := r.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.openStore(nil); err != nil {
		return err
	}
	if err := r.readSnapshot(); err != nil {
		return err
	}
	first, err := n.logs.FirstIndex()
	if err != nil {
		return fmt.Errorf("read the start of the log: %w", err)
	}
	end, err := n.logs.LastIndex()
	if err != nil {
		return fmt.Errorf("read the end of the log: %w", err)
	}
	for index := max(r.last+1, first); index <= end; index++ {
		var l raft.Log
		if err := n.logs.GetLog(index, &l); err != nil {
			return fmt.Errorf("read entry %d of the log: %w", index, err)
		}
		switch l.Type {
		case raft.LogCommand:
			n.machine.Apply(&l)
		case raft.LogConfiguration:
			r.servers = serversOf(raft.DecodeConfiguration(l.Data))
		}
		r.last, r.term = l.Index, l.Term
	}
	if r.last == 0 {
		return errors.New("there is no log: the node was never part of a group, or it was fed by others")
	}
	return nil
}

// readSnapshot takes the newest one that can be read.
func (r *Remains) readSnapshot() error {
	list, err := r.node.snaps.List()
	if err != nil {
		return fmt.Errorf("list the snapshots: %w", err)
	}
	var errs []error
	for _, s := range list {
		meta, data, err := r.node.snaps.Open(s.ID)
		if err == nil {
			err = r.node.machine.Restore(data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read snapshot %s: %w", s.ID, err))
			continue
		}
		r.last, r.term, r.servers = meta.Index, meta.Term, serversOf(meta.Configuration)
		return nil
	}
	return errors.Join(errs...)
}

func serversOf(c raft.Configuration) (list []Server) {
	for _, s := range c.Servers {
		list = append(list, Server{ID: string(s.ID), Address: string(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	return list
}

// Last is the index of the last entry.
func (r *Remains) Last() uint64 { return r.last }

// Servers are those of the last configuration.
func (r *Remains) Servers() []Server { return r.servers }

// Rewrite has the FSM apply one more entry and makes the result, with servers as the configuration, all that there is: a
// snapshot without a log before it. Until the snapshot is written whole nothing has changed; it counts from then on, also
// when the log before it could not be removed, which another call does.
func (r *Remains) Rewrite(entry []byte, servers []Server) error {
	n := r.node
	n.mu.Lock()
	defer n.mu.Unlock()
	index := r.last + 1
	n.machine.Apply(&raft.Log{Index: index, Term: r.term, Type: raft.LogCommand, Data: entry})
	var c raft.Configuration
	for _, s := range servers {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Address)})
	}
	state, err := n.machine.Snapshot()
	if err != nil {
		return err
	}
	defer state.Release()
	sink, err := n.snaps.Create(raft.SnapshotVersionMax, index, r.term, c, index, newTransportForBootstrap(n.cfg.Address))
	if err != nil {
		return fmt.Errorf("begin the snapshot: %w", err)
	}
	if err := state.Persist(sink); err != nil {
		return err
	}
	r.last, r.servers = index, servers
	first, err := n.logs.FirstIndex()
	if err != nil {
		return fmt.Errorf("read the start of the log: %w", err)
	}
	end, err := n.logs.LastIndex()
	if err != nil || end == 0 {
		return err
	}
	if err := n.logs.DeleteRange(first, end); err != nil {
		return fmt.Errorf("remove the log before the snapshot: %w", err)
	}
	return nil
}

// Close closes the files.
func (r *Remains) Close() { r.node.Stop() }

// noStreams is the network of a node that never starts.
type noStreams struct{}

func (noStreams) Accept() (net.Conn, string, error) { return nil, "", ErrStopped }
func (noStreams) Close() error                      { return nil }
func (noStreams) Dial(context.Context, string) (net.Conn, error) {
	return nil, ErrStopped
}
