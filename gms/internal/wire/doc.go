// Package wire holds the protobuf messages that leave a process: the commands of the Raft log, the snapshot of the
// replicated state, and the calls between members.
//
// The .proto files are the formats; the Go files are generated from them by `make generate` and checked in, so that a
// build needs no protoc. Three rules keep formats readable for older and newer members:
//
//   - Every top-level message carries a protocol version ([Protocol]); a reader refuses a newer one instead of guessing,
//     and a leader never logs a command that a member of an older version would meet.
//   - Field numbers are never reused, and a field never changes its meaning.
//   - What is hashed or snapshotted has a canonical form: lists sorted, deterministic marshalling.
//
// command.proto is what the log says, state.proto what a snapshot holds, cluster.proto what members ask of each other.
//
// Names follow DESIGN.md: a run is 16 random bytes, a position is base + Raft index, a token is a number below 2^53.
package wire

// Protocol is the version of every format in this package that this build writes; it reads this one and all older.
const Protocol = 1

// MaxToken bounds positions and tokens: both stay exactly representable in JSON numbers (2^53).
const MaxToken = 1 << 53
