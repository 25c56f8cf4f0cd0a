// Package rpc is the cluster port: the one TCP port on which members of a group talk to each other, for Raft and for
// calls; it is the only package, beside the generated code, that knows gRPC.
//
// Every connection is TLS 1.3 with a certificate on both sides, where there are certificates, and within it opens with a
// hello in each direction, which says who speaks: group, cluster id, node, run, home. Then it belongs to Raft or to gRPC, or,
// for a probe, ends. The hello lies within TLS so that nobody else can give it, an answer to a probe included. A node runs one [Server] and one [Dialer]:
//
//	srv, err := rpc.NewServer(rpc.ServerConfig{Network: network, BindAddr: "10.0.0.1:7947", Identity: identity, Handler: handler})
//	dialer, err := rpc.NewDialer(rpc.DialerConfig{Network: network, Identity: identity, Resolve: resolve})
//	err = srv.Start(ctx)
//	streams := srv.Streams(dialer) // for Raft
//	client, err := dialer.Client("n2")
//	reply, err := client.Ping(ctx, &wire.PingRequest{Run: run})
//	...
//	dialer.Stop()
//	srv.Stop()
//
// What it promises:
//
//   - No byte of Raft or gRPC passes between two groups, or two clusters of one name, or, from the dialling side, to
//     another node than the one that was meant: a recycled address leads nowhere.
//   - A cluster id may be missing on both sides, while the group is not formed yet, or on neither. Only a probe, by which
//     a newcomer learns the id, does without agreement.
//   - A refused connection comes back as one of the errors ErrOtherGroup, ErrOtherCluster, ErrWrongNode, ErrProtocol,
//     ErrUntrusted, ErrRefused. Client's calls lose that (gRPC keeps only the text); LastError has it.
//   - Below TLS, the node of a hello is the certificate's, or there is no connection: no member speaks for another. Why a
//     handshake failed is one line for people, on both sides, once a minute.
//   - A handler's context ends as soon as the caller's connection breaks. PeerFrom tells the handler who calls.
//   - Whatever comes in is bounded: handshake and hello together in time (2 s) and number, hellos and messages in size,
//     calls per connection.
//   - Drop ends the connections of one run, Stop all; nothing stays behind.
//
// [Refused] is the proof of a process's death by its host's refusal of its ports.
//
// What it does not do: it does not know what the calls mean, who leads, or where a node is; Resolve tells. Without
// certificates, what a hello says is believed: that is for loopback.
package rpc
