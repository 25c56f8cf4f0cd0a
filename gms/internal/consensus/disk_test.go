package consensus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// Bootstrap, votes, the log and snapshots on real files.
func TestDiskKeepsLogOverRestarts(t *testing.T) {
	c := newCluster(t).onDisk()
	defer func() { c.stop() }()
	c.edit = func(cfg *Config) {
		cfg.SnapshotThreshold, cfg.TrailingLogs = 20, 5
		cfg.Timing.SnapshotInterval = 50 * time.Millisecond
	}
	leader := c.form(abc...)
	var last uint64
	var want []string
	for round := range 3 {
		for i := range 30 {
			entry := fmt.Sprintf("%d.%d", round, i)
			want = append(want, entry)
			last = c.propose(leader, entry)
		}
		c.applied(last, abc...)
		c.stop()
		for _, name := range abc {
			n := c.make(name)
			if has, err := n.HasState(); err != nil || !has {
				t.Fatalf("node %s has state: %v, %v", name, has, err)
			}
			if got, err := n.LastIndex(); err != nil || got < last {
				t.Fatalf("node %s has the last index %d (%v), not %d", name, got, err, last)
			}
			if err := n.Bootstrap(servers(abc...)); !errors.Is(err, ErrHasState) {
				t.Fatalf("bootstrap over a log: %v", err)
			}
			if err := n.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := n.Bootstrap(servers(abc...)); !errors.Is(err, ErrHasState) {
				t.Fatalf("bootstrap of a running log: %v", err)
			}
		}
		leader = c.leader(abc...)
		c.applied(last, abc...)
		if got := c.nodes[leader].Configuration(); got.Index == 0 || len(got.Servers) != 3 {
			t.Errorf("after restart %d the configuration is %+v", round, got)
		}
	}
	for _, name := range abc {
		if got := c.tapes[name].String(); got != strings.Join(want, ",") {
			t.Errorf("node %s has %q", name, got)
		}
	}
}

func TestDiskIsEmptyAtFirst(t *testing.T) {
	c := newCluster(t).onDisk()
	n := c.make("a")
	defer n.Stop()
	if has, err := n.HasState(); err != nil || has {
		t.Errorf("a new node has state: %v, %v", has, err)
	}
	if last, err := n.LastIndex(); err != nil || last != 0 {
		t.Errorf("a new node has the last index %d, %v", last, err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Bootstrap(servers("a")); err != nil { // after Start it works as well
		t.Fatal(err)
	}
	c.leader("a")
	if err := n.Verify(t.Context()); err != nil {
		t.Errorf("a single voter is proven by itself: %v", err)
	}
	c.applied(c.propose("a", "x"), "a")
}

// Two that want the same log: the second is told so, and can have it later.
func TestDiskIsOpenedByOne(t *testing.T) {
	c := newCluster(t).onDisk()
	first := c.make("a")
	if _, err := first.HasState(); err != nil {
		t.Fatal(err)
	}
	c.edit = func(cfg *Config) { cfg.Stores = diskStores{limit: 10 * time.Millisecond} }
	second := c.make("a")
	if _, err := second.HasState(); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	first.Stop()
	second.Stop()
	c.edit = nil
	third := c.make("a")
	defer third.Stop()
	if _, err := third.HasState(); err != nil {
		t.Errorf("after both have ended: %v", err)
	}
}

// The leader dies; one that is told so leads in milliseconds although disks are real.
func TestDiskElectNowAndThroughput(t *testing.T) {
	c := newCluster(t).onDisk()
	defer c.stop()
	leader := c.form(abc...)
	var all sync.WaitGroup
	start := time.Now()
	const writers, each = 16, 25
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if _, _, err := c.nodes[leader].Propose(context.Background(), []byte(fmt.Sprint(w, ".", i))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d entries by %d writers in %v", writers*each, writers, time.Since(start))

	rest := others(abc, leader)
	c.applied(c.nodes[leader].Applied(), rest...)
	c.nodes[leader].Stop()
	start = time.Now()
	if err := c.nodes[rest[1]].ElectNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.leads(rest[1])
	t.Logf("a new leader after %v", time.Since(start))
	c.applied(c.propose(rest[1], "end"), rest...)
	if a, b := c.tapes[rest[0]].String(), c.tapes[rest[1]].String(); a != b {
		t.Error("the replicas differ")
	}
}

// That followers are told of each commit costs nothing in the log.
func TestDiskLogHoldsWhatWasProposed(t *testing.T) {
	c := newCluster(t).onDisk()
	defer c.stop()
	leader := c.form(abc...)
	const entries = 200
	first := c.propose(leader, "0")
	var last uint64
	for range entries {
		last = c.propose(leader, "x")
	}
	c.applied(last, abc...)
	if extra := last - first - entries; extra != 0 {
		t.Errorf("%d entries brought %d of Raft's own", entries, extra)
	}
}

func TestProposalLimits(t *testing.T) {
	c := newCluster(t)
	defer c.stop()
	n := c.make("a")
	if _, _, err := n.Propose(t.Context(), nil); !errors.Is(err, ErrNotStarted) {
		t.Errorf("before Start: %v", err)
	}
	c.form("b")
	if _, _, err := c.nodes["b"].Propose(t.Context(), make([]byte, MaxEntry+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := c.nodes["b"].Propose(ended, nil); errors.Is(err, ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("a context that had ended before: %v", err)
	}
	c.nodes["b"].Stop()
	if _, _, err := c.nodes["b"].Propose(t.Context(), nil); !errors.Is(err, ErrStopped) {
		t.Errorf("after Stop: %v", err)
	}
	if err := c.nodes["b"].Verify(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("verify after Stop: %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{ServerID: "a/1", Address: "a", Dir: t.TempDir(), Streams: newWires().port("a"), FSM: &tape{}}
	for what, edit := range map[string]func(*Config){
		"ServerID": func(c *Config) { c.ServerID = "" },
		"Address":  func(c *Config) { c.Address = "" },
		"Streams":  func(c *Config) { c.Streams = nil },
		"FSM":      func(c *Config) { c.FSM = nil },
		"Dir":      func(c *Config) { c.Dir = "" },
	} {
		cfg := good
		edit(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("without %s: %v", what, err)
		}
	}
	cfg := good
	cfg.Timing.LeaderLeaseTimeout = time.Hour // the library's own check comes at Start, and leaves nothing behind
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err == nil {
		t.Error("a lease above the heartbeat's time-out is taken")
	}
	n.Stop()
}

func TestClassifyTellsRefusedFromUnknown(t *testing.T) {
	for err, want := range map[error]error{
		raft.ErrNotLeader:                    ErrNotLeader,
		raft.ErrLeadershipTransferInProgress: ErrNotLeader,
		raft.ErrLeadershipLost:               ErrUnknown,
		raft.ErrAbortedByRestore:             ErrUnknown,
		raft.ErrEnqueueTimeout:               ErrNotLeader,
		raft.ErrRaftShutdown:                 ErrUnknown,
		errors.New("write failed"):           ErrUnknown,
	} {
		other := ErrUnknown
		if want == ErrUnknown {
			other = ErrNotLeader
		}
		if got := classify(err); !errors.Is(got, want) || errors.Is(got, other) {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestStartStopStress(t *testing.T) {
	for range 20 {
		c := newCluster(t)
		n := c.make("a")
		if err := n.Bootstrap(servers("a")); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if i%2 == 0 {
					_ = n.Start(context.Background()) // may come second, or too late
				}
				_, _, _ = n.Propose(context.Background(), []byte("x"))
				_ = n.Verify(context.Background())
				_, _ = n.HasState()
				n.Stop()
				n.Stop()
			})
		}
		all.Wait()
		if err := n.Start(context.Background()); !errors.Is(err, ErrStopped) {
			t.Fatalf("Start after Stop: %v", err)
		}
	}
}

func TestStopMayComeFirst(t *testing.T) {
	c := newCluster(t)
	n := c.make("a")
	n.Stop()
	if err := n.Start(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("Start after Stop: %v", err)
	}
	if err := n.Bootstrap(servers("a")); !errors.Is(err, ErrStopped) {
		t.Errorf("Bootstrap after Stop: %v", err)
	}
	n.Stop()
}

// Stop under load leaves no goroutine behind (see TestMain) and no answer open.
func TestStopUnderLoad(t *testing.T) {
	for range 10 {
		c := newCluster(t)
		leader := c.form(abc...)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for {
					_, _, err := c.nodes[leader].Propose(context.Background(), []byte("x"))
					if err != nil {
						if !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrStopped) && !errors.Is(err, ErrNotLeader) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		c.stop()
		all.Wait()
	}
}
