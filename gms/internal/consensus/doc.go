// Package consensus keeps one log of opaque entries on several nodes; it is the only package that knows the Raft library.
//
// A [Node] is one replica. The host gives it an [FSM], which consumes the entries in the same order everywhere, and
// [Streams], which carry its connections. Then:
//
//	n, err := consensus.New(consensus.Config{ServerID: "n1/ab12", Address: "n1", Dir: dir, Streams: s, FSM: fsm})
//	if has, err := n.HasState(); !has {
//		err = n.Bootstrap(servers) // only on the nodes of the list, with the same list on all
//	}
//	err = n.Start(ctx)
//	index, answer, err := n.Propose(ctx, data) // on the leader
//	n.Stop()
//
// What it promises:
//
//   - An entry that Propose has answered without an error survives any minority of crashes, power cuts included: the log
//     is written through to the disk before a vote for an entry counts.
//   - An error of Propose says which of two it is. Not proposed: ErrNotLeader and its like. Or ErrUnknown: the entry may
//     take effect later; repeat it with the same request id and let the FSM tell.
//   - Verify proves a leadership that lasted beyond the beginning of the call; ReadIndex and WaitApplied make from it a
//     read that no earlier answer can contradict. IsLeader and Watch are hints.
//   - A vote is one write. Heartbeats pass through Raft's one loop. There is one call in flight per peer. A disk that
//     does not answer makes the node silent, both ways and for good, so that the others elect a leader.
//   - Bootstrap never runs over a log.
//
// What it does not do: it does not know what entries mean, does not decide who should be a voter, never moves the
// leadership by itself, and resolves no addresses: an address is a node's name and Streams.Dial knows where that is.
//
// Decisions. The address of a server is its node name, so that a node that moves changes no configuration. The library's
// heartbeat short cut, its pipelining and its reloadable time-outs are not used; each has cost others a cluster.
// What is committed reaches followers at once: by the next entry when there is one, else by a call of Raft's own kind without
// entries, as soon as the follower is known to hold it. It costs no entry and no write to a disk.
package consensus
