package gmstest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/fencepost/fencepost/gms"
)

// Option changes how Cluster and New make nodes.
type Option func(*options)

type options struct {
	seed     uint64
	trailing uint64
	secure   bool
	config   []func(node string, c *gms.Config)
	app      []func(n *Node) (stop func(), err error)
	facts    []func(Fact)
	hashes   uint64
}

// WithConfig changes the configuration of every node that is started, restarts included. The default is a core member with
// profile "lan" that knows the first three nodes as seeds; its name, home, addresses, network, clock and disk are set by
// this package and are not to be changed.
func WithConfig(change func(node string, c *gms.Config)) Option {
	return func(o *options) { o.config = append(o.config, change) }
}

// WithApp starts the host's part of every node that is started, restarts included, on the test's goroutine: after
// gms.New and before Group.Start, with the router running. This is the place to add factories and to start a
// recovery.Manager. stop is called when the node is stopped or killed, before its group is stopped, and may be nil; it
// must return soon, so actions must end when their contexts do.
func WithApp(start func(n *Node) (stop func(), err error)) Option {
	return func(o *options) { o.app = append(o.app, start) }
}

// WithSparseHashes has the replicas' states compared at each n-th entry only, for worlds whose state is large: to hash it
// takes the more time the more there is in it. Default: at each entry.
func WithSparseHashes(n uint64) Option {
	return func(o *options) { o.hashes = n }
}

// WithSecurity gives every node a certificate of one authority and a gossip key.
func WithSecurity() Option {
	return func(o *options) { o.secure = true }
}

// WithSeed makes the network draw the same numbers in every run. Default: Seed(t).
func WithSeed(seed uint64) Option {
	return func(o *options) { o.seed = seed }
}

// SeedEnv names the environment variable that holds the seed of a test that is to be repeated.
const SeedEnv = "FENCEPOST_SEED"

// Seed gives the seed of SeedEnv, else a random one, and prints it. The same seed gives the same numbers to the test and to
// the network; the order in which goroutines run at one moment stays the scheduler's.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64N(1 << 32)
	if text := os.Getenv(SeedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", SeedEnv, err)
		}
	}
	t.Logf("repeat with %s=%d", SeedEnv, seed)
	return seed
}
