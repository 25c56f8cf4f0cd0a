package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// MaxMeta is the largest meta, in bytes: what the library carries.
const MaxMeta = 512

// Network is the seam through which tests replace sockets.
type Network interface {
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error)
}

// Timing holds the durations of the protocol. The zero value of a field means the default, which fits a local network:
// a silent death is noticed within 3 s.
type Timing struct {
	// ProbeInterval is how often one member is probed; default 400 ms.
	ProbeInterval time.Duration
	// ProbeTimeout is how long an answer may take before others are asked to probe too; default 200 ms, below
	// ProbeInterval.
	ProbeTimeout time.Duration
	// SuspicionMult scales how long a member that does not answer may still refute; default 3. The time is
	// SuspicionMult x max(1, log10(members)) x ProbeInterval.
	SuspicionMult int
	// SuspicionMaxMult bounds how much longer a lone accuser waits; default 1: no longer than the others.
	SuspicionMaxMult int
	// GossipInterval is how often news is sent on; default 100 ms.
	GossipInterval time.Duration
	// PushPullInterval is how often two members exchange all they know; default 15 s.
	PushPullInterval time.Duration
	// GossipToTheDeadTime is how long a dead member is still sent news, so that it may refute; default 30 s.
	GossipToTheDeadTime time.Duration
	// StreamTimeout bounds one exchange over a stream, joining included; default 2 s.
	StreamTimeout time.Duration
	// LeaveLinger is how long probes are still answered after Leave has told the others; default 1 s.
	LeaveLinger time.Duration
}

func (t Timing) withDefaults() Timing {
	or := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	or(&t.ProbeInterval, 400*time.Millisecond)
	or(&t.ProbeTimeout, 200*time.Millisecond)
	or(&t.GossipInterval, 100*time.Millisecond)
	or(&t.PushPullInterval, 15*time.Second)
	or(&t.GossipToTheDeadTime, 30*time.Second)
	or(&t.StreamTimeout, 2*time.Second)
	or(&t.LeaveLinger, time.Second)
	if t.SuspicionMult == 0 {
		t.SuspicionMult = 3
	}
	if t.SuspicionMaxMult == 0 {
		t.SuspicionMaxMult = 1
	}
	return t
}

// Config says what a [Gossip] is. Name, BindAddr and Network are required.
type Config struct {
	// Name is "node/run" with the run in hexadecimal. It is never used twice: whoever stands anew has a new run.
	Name string
	// Label is the group's name, at most 255 bytes; members with another label do not hear each other.
	Label string
	// BindAddr is the IP:port to listen on, for datagrams and streams alike; port 0 takes a free one.
	BindAddr string
	// AdvertiseAddr is the IP:port that the others use; empty means the bound one, which must then be a definite
	// address. Port 0 means the bound port.
	AdvertiseAddr string
	Network       Network
	// Resolve turns a host name into IP addresses, for Join; nil asks the system.
	Resolve func(ctx context.Context, host string) ([]string, error)
	Timing  Timing
	// Meta is what this member says of itself, at most [MaxMeta] bytes; see [Gossip.SetMeta].
	Meta []byte
	// Admit decides about each piece of news that says that another member is alive: an error keeps the news out, so
	// that a foreign or a closed run never becomes (again) a member here. It is called under the library's lock, from
	// several goroutines: it must not block nor call the Gossip. Nil admits all.
	Admit func(Member) error
	// Keys encrypt the gossip: each 16, 24 or 32 bytes; the first one encrypts, all decrypt. None: not encrypted.
	Keys [][]byte
	// Logger takes the library's messages as debug messages and warnings; nil discards them.
	Logger *slog.Logger
}

// Errors that callers branch on.
var (
	// ErrStopped means that the Gossip has been stopped; no events are left.
	ErrStopped = errors.New("gossip is stopped")
	// ErrNotStarted means that the call needs a started Gossip.
	ErrNotStarted = errors.New("gossip is not started")
	// ErrMetaTooLarge means that a meta is above MaxMeta.
	ErrMetaTooLarge = errors.New("meta too large")
	// ErrStranger means that the other side is of another group, or has other keys.
	ErrStranger = errors.New("no gossip with a stranger")
	// ErrNotEncrypted means that a Gossip that was started without keys cannot be given some.
	ErrNotEncrypted = errors.New("gossip was started without keys")
	// ErrLeft means that this member has left; a new one must be made to join again.
	ErrLeft = errors.New("gossip was left")
)

func (c Config) withDefaults() Config {
	c.Timing = c.Timing.withDefaults()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Resolve == nil {
		c.Resolve = net.DefaultResolver.LookupHost
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Name == "":
		return errors.New("gossip: Name is empty")
	case len(c.Label) > 255:
		return fmt.Errorf("gossip: Label has %d bytes, at most 255 fit", len(c.Label))
	case c.BindAddr == "":
		return errors.New("gossip: BindAddr is empty")
	case c.Network == nil:
		return errors.New("gossip: Network is nil")
	}
	return checkMeta(c.Meta)
}

func checkMeta(meta []byte) error {
	if string(meta) == leaveMark {
		return errors.New("gossip: this meta is reserved for members that leave")
	}
	if len(meta) > MaxMeta {
		return fmt.Errorf("gossip: %w: %d bytes, at most %d fit", ErrMetaTooLarge, len(meta), MaxMeta)
	}
	return nil
}
