package gms

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/fencepost/fencepost/gms/certs"
	"github.com/fencepost/fencepost/gms/internal/seam"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

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
	// process at a time holds it. A home that is lost makes the node another one: it is refused until replaced. TemporaryHome
	// is one for tests.
	Home string
	// Role of the node; default core. A spectator sees all and recovers nothing. A witness only votes, and a watchdog only
	// reports deaths (AnnounceObservedFailure) and sends messages: both register no components and claim nothing. Only core
	// members and witnesses may found a group, and follow the log.
	Role signals.Role
	// Bootstrap names the nodes that form the group the first time, the same list on all of them. Default: the own name
	// when Seeds is empty; otherwise the node only joins. A formed group is never formed again.
	Bootstrap []string
	// Seeds are gossip addresses (host:port) to join through. Unreachable ones are tried again for ever. Default: none.
	Seeds []string
	// Gossip (UDP and TCP) and Cluster (TCP) are the node's ports; defaults 127.0.0.1:7946 and 127.0.0.1:7947. A port that
	// other machines may reach, by what is bound or advertised, takes both GossipKeys and Certificates, else New refuses.
	Gossip, Cluster Endpoint
	// GossipKeys encrypt and authenticate gossip: 16, 24 or 32 random bytes each (AES), at most 8; the first one encrypts, all
	// decrypt. The same on all members; none: gossip is open to whoever reaches the port. Once the group's keys have been
	// changed with KeyringAdd and its like, the home's own list (gossip.keys) counts instead of this one.
	GossipKeys [][]byte
	// Certificates prove to the others who this node is, on every connection to a cluster port (TLS 1.3, both sides). The
	// certificate's name must be Group and Node. They are read again for each connection. nil: the port is plain.
	Certificates *certs.Source
	// Profile chooses Timing; default ProfileLAN. Timing, when its TTL is set, is used instead of the profile. Each run tells
	// the group the leases that it reckons with (TTL, FenceTTL), so that nodes may differ while a setting is rolled out.
	Profile Profile
	Timing  Timing
	// Voters is how many members vote, odd, 1 to 7, default 3. Followers is how many other
	// core members and witnesses follow the log, default 16, at least 1: the voters' successors. Members beyond those,
	// spectators and watchdogs are fed by one of these, and need no other setting.
	Voters, Followers int
	// ReapAfter is how long a node that does not vote may be gone before the leader forgets it, default 72 h, at least 1 min:
	// if it comes back later, it is a newcomer. Voters are never forgotten by themselves.
	ReapAfter time.Duration
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
	// NoRefused switches evidence "refused" off while this node leads: only silence, or its warden's word, closes a run that
	// dies. Set it alike on all nodes.
	NoRefused bool
	// Floor gives the highest position or token that any ledger, storage or home is known to have seen, asked when a group is
	// formed and by Rebase; the group's numbers then go on above it and above the present time in microseconds. Nil: only the time.
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
	// Router takes the group's signals and says what this node can recover. The host starts and stops it. Nil: the group makes
	// one with Logger, which Start starts and Stop stops; see Group.Router.
	Router *signals.Router
	// Details are published with each run and stay readable until its last recovery has ended; at most 8 KiB in all. Default: none.
	Details map[string][]byte
	// Logger gets the log; nil: nobody does. Nothing is ever logged anywhere else.
	Logger *slog.Logger
	// Network and Clock are seams for tests; default: the system's.
	Network Network
	Clock   Clock
	// Seam is for package gmstest, which alone can fill it; nil for everybody else.
	Seam *seam.Hooks
}

// TemporaryHome as Config.Home is a new directory below the system's one for temporary files, made by Start and removed by
// Stop (a killed process leaves it): for tests and for trying things. Its node begins as a newcomer at every start, so in a
// group that outlives it, it needs another name each time, or ReplaceHome.
const TemporaryHome = "temporary:"

// DefaultConfig is a configuration that works as it is: node n1 with a temporary home, on free ports of the loopback, which
// forms a group of its own. Others in the same process, or on the same machine, join it with a name of their own and its
// GossipAddress among their Seeds. A real node has a name, a home and ports that last, and knows the others:
//
//	cfg := gms.DefaultConfig()
//	cfg.Node, cfg.Home = "n1", "/var/lib/app"
//	cfg.Gossip.Bind, cfg.Cluster.Bind = "10.0.0.1:7946", "10.0.0.1:7947"
//	cfg.Bootstrap, cfg.Seeds = []string{"n1", "n2", "n3"}, []string{"10.0.0.1:7946", "10.0.0.2:7946", "10.0.0.3:7946"}
//
// and, since others reach these ports, GossipKeys and Certificates. Fields left out have the defaults that Config tells.
func DefaultConfig() Config {
	const free = "127.0.0.1:0"
	return Config{Node: "n1", Home: TemporaryHome, Gossip: Endpoint{Bind: free}, Cluster: Endpoint{Bind: free}}
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
	if c.ReapAfter == 0 {
		c.ReapAfter = 72 * time.Hour
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
	if c.Router == nil {
		c.Router = signals.NewRouter(signals.Options{Logger: c.Logger})
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
	if c.Followers < 1 || c.Followers > 1000 {
		bad("Followers: %d must be 1 to 1000", c.Followers)
	}
	if c.ReapAfter < time.Minute {
		bad("ReapAfter: %v is below 1m", c.ReapAfter)
	}
	if c.FenceTTL < time.Second || c.FenceTTL > maxLease {
		bad("FenceTTL: %v must be 1s to %v", c.FenceTTL, maxLease)
	}
	if c.Timing.TTL < 0 || c.Timing.TTL > maxLease {
		bad("Timing: a TTL of %v must be above 0 and at most %v", c.Timing.TTL, maxLease)
	}
	if c.MaxAttempts < 1 || c.MaxAttempts > 1000 {
		bad("MaxAttempts: %d must be 1 to 1000", c.MaxAttempts)
	}
	if roleOf(c.Role) == wire.Role_ROLE_UNSPECIFIED {
		bad("Role: %q is unknown: core, spectator, witness or watchdog", c.Role)
	} else if c.Role != signals.Core && c.Role != signals.Witness && slices.Contains(c.Bootstrap, c.Node) {
		bad("Bootstrap: a %s cannot found a group: name core members and witnesses, and give this node Seeds", c.Role)
	}
	size := 0
	for k, v := range c.Details {
		size += len(k) + len(v)
		if k == "" || len(k) > state.MaxName || !utf8.ValidString(k) {
			bad("Details: %q is not a key: 1 to %d bytes of text", k, state.MaxName)
		}
	}
	if size > state.MaxDetails {
		bad("Details: %d bytes in all are more than %d", size, state.MaxDetails)
	}
	if len(c.WardenKey) != 0 && len(c.WardenKey) != ed25519.PublicKeySize {
		bad("WardenKey: has %d bytes instead of %d", len(c.WardenKey), ed25519.PublicKeySize)
	}
	for _, n := range c.Bootstrap {
		if !nodeName.MatchString(n) {
			bad("Bootstrap: %q is not a node name", n)
		}
	}
	if err := checkKeys(c.GossipKeys); err != nil {
		bad("GossipKeys: %w", err)
	}
	if c.Certificates != nil && !nodeName.MatchString(c.Group) {
		bad("Group: %q cannot be in a certificate: 1 to 63 of a-z, 0-9 and -, not at the ends", c.Group)
	}
	secured := len(c.GossipKeys) > 0 && c.Certificates != nil
	errs = append(errs, c.Gossip.validate("Gossip", secured), c.Cluster.validate("Cluster", secured))
	return errors.Join(errs...)
}

// maxKeys bounds a key ring: the key in use, the next one, and former ones that somebody who is away may still have.
const maxKeys = 8

// checkKeys refuses a ring of no use. Its errors do not show a key.
func checkKeys(keys [][]byte) error {
	if len(keys) > maxKeys {
		return fmt.Errorf("%d keys are too many, at most %d", len(keys), maxKeys)
	}
	for i, k := range keys {
		if n := len(k); n != 16 && n != 24 && n != 32 {
			return fmt.Errorf("key %d has %d bytes: want 16, 24 or 32", i+1, n)
		}
		if slices.ContainsFunc(keys[:i], func(other []byte) bool { return string(other) == string(k) }) {
			return fmt.Errorf("key %d is there twice", i+1)
		}
	}
	return nil
}
