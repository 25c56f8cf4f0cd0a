package gms

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms/internal/seam"
	"github.com/fencepost/fencepost/signals"
)

// Endpoint is one port of a node.
type Endpoint struct {
	// Bind is the host:port to listen on. Port 0 takes a free one.
	Bind string
	// Advertise is the host:port that others dial; empty: the address bound. When it is not an address of one of the
	// node's own interfaces (a proxy, a balancer, address translation), evidence "refused" is not used for the node.
	Advertise string
}

// Timing is what a profile sets. All are durations of real time, counting suspend.
type Timing struct {
	// TTL is how long a run may act without hearing from the group. Renewals go out at a third of it. A silent death is
	// noticed after it; a proven one in milliseconds whatever it is.
	TTL time.Duration
	// ProbeInterval and ProbeTimeout are gossip's.
	ProbeInterval, ProbeTimeout time.Duration
	// SuspicionMult and MaxSuspicionMult bound how long gossip waits for a suspect's answer.
	SuspicionMult, MaxSuspicionMult int
	// Heartbeat and LeaderLease are Raft's: a follower without word for Heartbeat starts an election, a leader without
	// its majority for LeaderLease steps down. Heartbeat must exceed the worst stall of a disk's fsync.
	Heartbeat, LeaderLease time.Duration
}

// Profile is a named Timing.
type Profile string

// Profiles, as differences: ProfileLocal for one machine, ProfileLAN (the library's default), ProfileWAN, and
// ProfilePatient (the daemon's default), which is ProfileLAN with a TTL of a minute, because a hiccup of seconds must
// not throw away a dump of hours.
const (
	ProfileLocal   Profile = "local"
	ProfileLAN     Profile = "lan"
	ProfileWAN     Profile = "wan"
	ProfilePatient Profile = "patient"
)

// Timing returns what the profile stands for; ok is false for an unknown one.
func (p Profile) Timing() (t Timing, ok bool) {
	lan := Timing{
		TTL: 3 * time.Second, ProbeInterval: 400 * time.Millisecond, ProbeTimeout: 200 * time.Millisecond,
		SuspicionMult: 3, MaxSuspicionMult: 1, Heartbeat: 600 * time.Millisecond, LeaderLease: 400 * time.Millisecond,
	}
	switch p {
	case ProfileLAN, "":
		return lan, true
	case ProfileLocal:
		lan.TTL = time.Second
		lan.ProbeInterval, lan.ProbeTimeout = 150*time.Millisecond, 75*time.Millisecond
		lan.Heartbeat, lan.LeaderLease = 200*time.Millisecond, 100*time.Millisecond
		return lan, true
	case ProfileWAN:
		lan.TTL = 15 * time.Second
		lan.ProbeInterval, lan.ProbeTimeout = 2*time.Second, time.Second
		lan.Heartbeat, lan.LeaderLease = 3*time.Second, 2*time.Second
		return lan, true
	case ProfilePatient:
		lan.TTL = time.Minute
		return lan, true
	}
	return Timing{}, false
}

// Config says how a node takes part in a group. The zero value of a field takes its default.
type Config struct {
	// Group names the group: the gossip label, and part of every connection's greeting. Default "fencepost".
	Group string
	// Node is the node's stable name, 1 to 63 of [a-z0-9-]. Required. No two nodes of a group share one.
	Node string
	// Home is the node's local directory: its node key, its Raft log and snapshots. Required; made when missing (0700). One
	// process at a time holds it. A home that is lost makes the node another one: it is refused until replaced.
	Home string
	// Role of the node; default core.
	Role signals.Role
	// Bootstrap names the nodes that form the group the first time, the same list on all of them. Default: the own name
	// when Seeds is empty; otherwise the node only joins. A formed group is never formed again.
	Bootstrap []string
	// Seeds are gossip addresses (host:port) to join through. Unreachable ones are tried again for ever.
	Seeds []string
	// Gossip (UDP and TCP) and Cluster (TCP) are the node's ports; defaults 127.0.0.1:7946 and 127.0.0.1:7947.
	Gossip, Cluster Endpoint
	// Profile chooses Timing; default ProfileLAN. Timing, when its TTL is set, is used instead of the profile.
	Profile Profile
	Timing  Timing
	// Voters is how many members vote, odd, 1 to 7, default 3. Followers is how many others follow the log, default 16.
	Voters, Followers int
	// SnapshotThreshold is the number of log entries between snapshots; default 8192.
	SnapshotThreshold uint64
	// FenceTTL is how long an appointment may stay without being acquired, or a fence without being renewed, before the
	// next candidate's turn; default 30 s, at least 1 s.
	FenceTTL time.Duration
	// Selector and MaxAttempts form the group's first settings: default order of candidates (rendezvous), and how often
	// one appointee's action may fail, and one item be orphaned (3).
	Selector    signals.Selector
	MaxAttempts int
	// Order, when set, is the host's own selector; the same on all nodes. Nil: Selector alone decides.
	Order Order
	// NoRefused switches evidence "refused" off: only silence closes a run that dies.
	NoRefused bool
	// Floor gives the highest position or token that any ledger, storage or home is known to have seen, asked once, when a
	// group is formed; the group's numbers begin above it and above the present time in microseconds. Nil: only the time.
	Floor func(ctx context.Context) (uint64, error)
	// ResumeFrom is the version of the last view that this host has handled the signals of, before its process was started
	// again; 0: none. The first run is then told of what happened since (joins, failures, departures) instead of the members
	// that are there; a gap mark says so when that version is not kept any more.
	ResumeFrom uint64
	// Run, when set, is the id of the node's first run (random otherwise), and WardenKey the ed25519 public key that may
	// sign its obituary: both come from the node's warden. TellWarden is told the id of each later run of this process before
	// it is opened, and may block; a run of which the warden could not be told, or nil, is opened without a warden: it can be
	// closed, but not by an obituary.
	Run        [16]byte
	WardenKey  []byte
	TellWarden func(run [16]byte) error
	// Details are published with each run and stay readable until its last recovery has ended; at most 8 KiB in all.
	Details map[string][]byte
	// Logger gets the log; default: none.
	Logger *slog.Logger
	// Network and Clock are seams for tests; default: the system's.
	Network Network
	Clock   Clock
	// Seam is for package gmstest, which alone can fill it; nil for everybody else.
	Seam *seam.Hooks
}

var nodeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (c Config) withDefaults() Config {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&c.Group, "fencepost")
	def(&c.Gossip.Bind, "127.0.0.1:7946")
	def(&c.Cluster.Bind, "127.0.0.1:7947")
	if c.Role == "" {
		c.Role = signals.Core
	}
	if c.Selector == "" {
		c.Selector = signals.Rendezvous
	}
	if len(c.Bootstrap) == 0 && len(c.Seeds) == 0 {
		c.Bootstrap = []string{c.Node}
	}
	if c.Timing.TTL == 0 {
		c.Timing, _ = c.Profile.Timing()
	}
	if c.Voters == 0 {
		c.Voters = 3
	}
	if c.Followers == 0 {
		c.Followers = 16
	}
	if c.SnapshotThreshold == 0 {
		c.SnapshotThreshold = 8192
	}
	if c.FenceTTL == 0 {
		c.FenceTTL = 30 * time.Second
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 3
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Network == nil {
		c.Network = SystemNetwork{}
	}
	if c.Clock == nil {
		c.Clock = SystemClock{}
	}
	if c.Seam == nil {
		c.Seam = &seam.Hooks{}
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !nodeName.MatchString(c.Node) {
		bad("Node: %q is not a node name: 1 to 63 of a-z, 0-9 and -, not at the ends", c.Node)
	}
	if c.Home == "" {
		bad("Home: a directory is required")
	}
	if _, ok := c.Profile.Timing(); !ok {
		bad("Profile: %q is unknown: local, lan, wan or patient", c.Profile)
	}
	if c.Voters < 1 || c.Voters > 7 || c.Voters%2 == 0 {
		bad("Voters: %d must be 1, 3, 5 or 7", c.Voters)
	}
	if c.FenceTTL < time.Second {
		bad("FenceTTL: %v is below 1s", c.FenceTTL)
	}
	if c.MaxAttempts < 1 || c.MaxAttempts > 1000 {
		bad("MaxAttempts: %d must be 1 to 1000", c.MaxAttempts)
	}
	if !slices.Contains([]signals.Role{signals.Core, signals.Spectator, signals.Witness}, c.Role) {
		bad("Role: %q must be core, spectator or witness", c.Role)
	}
	if len(c.WardenKey) != 0 && len(c.WardenKey) != ed25519.PublicKeySize {
		bad("WardenKey: has %d bytes instead of %d", len(c.WardenKey), ed25519.PublicKeySize)
	}
	for _, n := range c.Bootstrap {
		if !nodeName.MatchString(n) {
			bad("Bootstrap: %q is not a node name", n)
		}
	}
	errs = append(errs, c.Gossip.validate("Gossip"), c.Cluster.validate("Cluster"))
	return errors.Join(errs...)
}

func (e Endpoint) validate(field string) error {
	var errs []error
	if err := loopback(e.Bind); err != nil {
		errs = append(errs, fmt.Errorf("%s.Bind: %w", field, err))
	}
	if e.Advertise != "" {
		if err := loopback(e.Advertise); err != nil {
			errs = append(errs, fmt.Errorf("%s.Advertise: %w", field, err))
		}
	}
	return errors.Join(errs...)
}

// loopback refuses addresses that others could reach: gossip is not encrypted and the cluster port has no certificates.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not host:port: %w", address, err)
	}
	if host == "localhost" {
		return nil
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%q is not a loopback address, and the ports have no keys and certificates yet: use 127.0.0.1", address)
	}
	return nil
}
