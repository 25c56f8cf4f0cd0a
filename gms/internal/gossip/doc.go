// Package gossip tells a node who else is around; it is the only package that knows the memberlist library.
//
// A [Gossip] stands for one run of a node. The host makes one, starts it, joins any members that it knows of, and takes
// events one after the other:
//
//	g, err := gossip.New(gossip.Config{Name: "n1/" + run, Label: "prod", BindAddr: "10.0.0.1:7946", Network: network, Meta: meta})
//	err = g.Start(ctx)
//	n, err := g.Join(ctx, []string{"10.0.0.2:7946"})
//	for {
//		event, err := g.Next(ctx)
//		...
//	}
//	err = g.Leave(ctx) // only when the run ends on purpose
//	g.Stop()
//
// What it promises:
//
//   - Gossip never waits for the host. Its callbacks copy and enqueue; the queue is bounded by the number of members.
//   - What it hands out is a copy. Members is built from events, never from the library's live state.
//   - News that Admit refuses changes nothing here: not a foreign cluster's members, not a run that the log has closed.
//   - With Keys, every packet and stream is encrypted with the first of them and is heard only if one of them opens it. What is
//     not heard is said in one line a minute for each host and reason.
//   - A meta that is too large is an error, not a panic. Leave after Stop is an error, not a panic.
//   - Join asks all addresses at once and resolves names itself, so that dead ones cost one time-out together.
//
// What it does not do: it proves nothing. Dead is a suspicion that the host must check; Left is what somebody said. It
// carries no messages, keeps nothing on disk, and does not find members again by itself after a long partition: the host
// calls Join with every address it knows, again and again.
//
// Decisions. The library does not tell a leave from a death, so a leaving member first replaces its meta by a mark. A name
// holds the run, so that a restarted node is a new member and an accusation against the old one can not
// stick to it. Compression is off, since a small message could unpack to a very large one. The transport is this
// package's own, over the host's Network, so that tests run in memory and Stop can close every stream. A probe that is
// under way when Stop is called ends by its time-out, a few ProbeIntervals later, and touches nothing any more.
package gossip
