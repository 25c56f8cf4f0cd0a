// Package wire holds the protobuf messages that leave a process: the commands of the Raft log, the snapshot of the
// replicated state, and the calls between members.
//
// The .proto files are the formats; the Go files are generated from them by `make generate` and checked in, so that a
// build needs no protoc. Three rules keep formats readable for older and newer members:
//
//   - A group writes one version of all formats, which its log says ("agreed"), and each process reads two: [Oldest] and
//     [Protocol]. So builds of two neighbouring versions work together, and write what the older one reads, until a person
//     has the group agree on the next one (RaiseProtocol). What came with a later version than the agreed one, be it a
//     command, a field or a value of an enumeration, is found by [Needs] and refused by all in the same way: by the leader
//     before it is logged, and by the state if it ever is. A process that meets a version it does not read stops.
//   - Field numbers are never reused, and a field never changes its meaning.
//   - What is hashed or snapshotted has a canonical form: lists sorted, deterministic marshalling.
//
// command.proto is what the log says, state.proto what a snapshot holds, cluster.proto what members ask of each other.
//
// Names follow DESIGN.md: a run is 16 random bytes, a position is base + Raft index, a token is a number below 2^53.
package wire

// Oldest is the lowest version of the formats that this build reads and can write: one before the newest.
const Oldest = max(1, Protocol-1)

// MaxToken bounds positions and tokens: both stay exactly representable in JSON numbers (2^53).
const MaxToken = 1 << 53
