package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"
)

// FSM is the state that the log drives. Apply, Snapshot and Restore are called from one goroutine, one after the other;
// they must not call back into the [Node]. Apply must be deterministic: no clock, no random numbers, no side effects,
// because entries are applied again after a restart.
type FSM interface {
	// Apply consumes one committed entry. The FSM may keep data. What it returns reaches the proposer, on the node
	// that proposed the entry only.
	Apply(index uint64, data []byte) any
	// Snapshot captures the state at once (Apply waits for it); the WriterTo runs beside later calls of Apply.
	Snapshot() (io.WriterTo, error)
	// Restore replaces the whole state by a snapshot.
	Restore(r io.Reader) error
}

// Streams is the network as Raft sees it: connections that others opened to this node for Raft, and a way to open one to
// a node by the address it has in the configuration (its node name). Dial may block until ctx ends.
//
// Accept says which node is at the other end, as the network knows it; no call that comes over the connection speaks for
// another one.
type Streams interface {
	Accept() (conn net.Conn, node string, err error)
	Close() error
	Dial(ctx context.Context, address string) (net.Conn, error)
}

// Timing holds the durations of the protocol. The zero value of a field means the default.
type Timing struct {
	// HeartbeatTimeout is how long a follower waits without hearing from the leader before it asks for votes; default
	// 600 ms. It must exceed the worst fsync of a healthy disk: heartbeats wait behind it.
	HeartbeatTimeout time.Duration
	// ElectionTimeout is how long a candidate waits for votes; default HeartbeatTimeout, and not below it.
	ElectionTimeout time.Duration
	// LeaderLeaseTimeout is how long a leader stays one without hearing from a majority; default two thirds of
	// HeartbeatTimeout, and not above it.
	LeaderLeaseTimeout time.Duration
	// CommitTimeout is how late an idle follower learns of the last commit at worst (twice this); default 1 s. It is told
	// at once, so that this counts when the word was lost.
	CommitTimeout time.Duration
	// RPCTimeout bounds one call between two nodes; default four times HeartbeatTimeout, at least 1 s.
	RPCTimeout time.Duration
	// StallLimit is how long one write to the log may take before the disk counts as stalled; default 5 s.
	StallLimit time.Duration
	// SnapshotInterval is how often (up to twice this) a node looks whether it should make a snapshot; default 30 s.
	SnapshotInterval time.Duration
}

// Config says what a [Node] is. ServerID, Address, Streams and FSM are required, and Dir unless Stores is given.
type Config struct {
	// ServerID is this home's name in the configuration, "node/home". It is never used for another home.
	ServerID string
	// Address is the node name; Streams.Dial of the others resolves it.
	Address string
	// Dir holds the log and the snapshots; it is made if absent. One process at a time may open it.
	Dir string
	// Stores replaces the disk; nil means the files in Dir.
	Stores Stores
	// Streams carries Raft's connections. The Node closes it in Stop.
	Streams Streams
	Timing  Timing
	// SnapshotThreshold is how many entries are logged between two snapshots; default 8192.
	SnapshotThreshold uint64
	// TrailingLogs is how many entries stay in the log behind a snapshot, so that a follower that is behind by fewer
	// needs no snapshot; default 10240.
	TrailingLogs uint64
	FSM          FSM
	// Logger takes Raft's messages, one level more sober than Raft's own; nil discards them.
	Logger *slog.Logger
	// OnStall is called once, from a goroutine of the Node, when the disk has stalled ([ErrDiskStalled]); by then the
	// node is silent towards the others, for good. It must not call Stop and wait for it. May be nil.
	OnStall func(error)
	// OnFull is called once, from a goroutine of its own, when the disk of the log is full ([ErrDiskFull]). The log goes on
	// in the room that was kept for that: enough for the node to end in order, and for no more. May be nil.
	OnFull func(error)
}

// Errors that callers branch on.
var (
	// ErrNotLeader means that this node does not lead (any more) and nothing was proposed: ask the leader.
	ErrNotLeader = errors.New("not the leader")
	// ErrUnknown means that the entry may or may not take effect, now or later: repeat it with the same request id.
	ErrUnknown = errors.New("the outcome is unknown")
	// ErrStopped means that the Node has been stopped.
	ErrStopped = errors.New("consensus is stopped")
	// ErrNotStarted means that the call needs a started Node.
	ErrNotStarted = errors.New("consensus is not started")
	// ErrHasState means that a log exists: it can not be bootstrapped again.
	ErrHasState = errors.New("there is a log already")
	// ErrStale means that the configuration has changed since the index that the caller knows.
	ErrStale = errors.New("the configuration has changed meanwhile")
	// ErrNotVoter means that the node has no vote and so can not be elected.
	ErrNotVoter = errors.New("not a voter")
	// ErrDiskStalled means that a write to the log has not returned within StallLimit; the process should end.
	ErrDiskStalled = errors.New("the disk has stalled")
	// ErrDiskFull means that something of the log did not fit on its disk, or that there is no room to begin.
	ErrDiskFull = errors.New("the disk is full")
	// ErrTooLarge means that an entry is above MaxEntry.
	ErrTooLarge = errors.New("entry too large")
)

// MaxEntry is the largest entry that Propose takes, in bytes; larger ones would hold up heartbeats.
const MaxEntry = 512 << 10

const (
	defaultHeartbeat   = 600 * time.Millisecond
	defaultCommit      = time.Second
	defaultStall       = 5 * time.Second
	defaultSnapEvery   = 30 * time.Second
	defaultSnapEntries = 8192
	defaultTrailing    = 10240
)

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

func (t Timing) withDefaults() Timing {
	t.HeartbeatTimeout = or(t.HeartbeatTimeout, defaultHeartbeat)
	t.ElectionTimeout = or(t.ElectionTimeout, t.HeartbeatTimeout)
	t.LeaderLeaseTimeout = or(t.LeaderLeaseTimeout, t.HeartbeatTimeout*2/3)
	t.CommitTimeout = or(t.CommitTimeout, defaultCommit)
	t.RPCTimeout = or(t.RPCTimeout, max(4*t.HeartbeatTimeout, time.Second))
	t.StallLimit = or(t.StallLimit, defaultStall)
	t.SnapshotInterval = or(t.SnapshotInterval, defaultSnapEvery)
	return t
}

func (c Config) withDefaults() Config {
	c.Timing = c.Timing.withDefaults()
	c.SnapshotThreshold = or(c.SnapshotThreshold, defaultSnapEntries)
	c.TrailingLogs = or(c.TrailingLogs, defaultTrailing)
	if c.Stores == nil {
		c.Stores = diskStores{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.ServerID == "":
		return errors.New("consensus: ServerID is empty")
	case c.Address == "":
		return errors.New("consensus: Address is empty")
	case c.Streams == nil:
		return errors.New("consensus: Streams is nil")
	case c.FSM == nil:
		return errors.New("consensus: FSM is nil")
	case c.Stores == nil && c.Dir == "":
		return errors.New("consensus: Dir is empty")
	case c.Timing.StallLimit < 0:
		return fmt.Errorf("consensus: Timing.StallLimit is %v, must be positive", c.Timing.StallLimit)
	}
	return nil
}
