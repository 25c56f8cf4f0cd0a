// Package configs is the operator's file: its sections, their defaults, and the rules
// that a configuration must keep before a node starts with it.
//
//	c, err := configs.Load("/etc/fencepost/node.yaml")
//	if err != nil {
//		// One line per problem: raft.voters: is 4, want an odd number from 1 to 7: write 3 or 5
//	}
//
// A Config comes into being in one way: Default, then what the file says, then what the
// environment says (FENCEPOST_RAFT_VOTERS=5 is raft.voters: 5), then Validate. What it
// promises:
//
//   - Strict. A key that is not known is an error with its dotted path and, when one is
//     near, the key that was probably meant. So is an unknown FENCEPOST_ variable, unless
//     it is one of the program's own (FENCEPOST_CONFIG, FENCEPOST_SOCKET, FENCEPOST_LONG, and
//     those by which the command finds another machine) or a dsn or a key refers to it. A variable that is set to nothing counts as not set.
//   - Complete. All problems are reported at once, one line each: dotted path, what is
//     there, the bound, the remedy.
//   - Quiet. A database password never appears in an error, a log line, a String or a
//     JSON document: a DSN prints without it whatever the verb, and only DSN.Resolve
//     hands it out. A dsn may also be a reference, env:NAME or file:PATH; the secret key of
//     a storage must be one.
//
// Things with names (databases, storages) are lists, because the reader lower-cases map
// keys and splits them at dots. load.go alone sees the reader; everything else here is
// plain Go. The commented example node.example.yaml is equal to Default, and a test holds
// it so.
//
// An address that other machines can reach needs the gossip key and the certificates of the
// section security, and is refused without them. Whether the files are there, private and
// valid is not for Validate: Security.GossipKeys reads the one, package gms the others.
package configs
