package consensus

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const victimEnv = "FENCEPOST_CONSENSUS_VICTIM" // directory of the log of a process that gets killed

const sleeperEnv = "FENCEPOST_CONSENSUS_SLEEPER" // set for a process that is stopped in the middle of a write

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
		return
	}
	if os.Getenv(sleeperEnv) != "" {
		sleeper()
		return
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// limit is generous: it ends a test that hangs, and decides nothing.
const limit = 60 * time.Second

// cluster is a set of nodes on one network.
type cluster struct {
	t     *testing.T
	wires *wires
	nodes map[string]*Node
	tapes map[string]*tape
	mem   map[string]*MemStores
	edit  func(*Config) // last word about a configuration
	dirs  map[string]string
}

func newCluster(t *testing.T) *cluster {
	return &cluster{
		t: t, wires: newWires(), nodes: map[string]*Node{}, tapes: map[string]*tape{},
		mem: map[string]*MemStores{}, dirs: map[string]string{},
	}
}

// onDisk makes the nodes keep their logs in files.
func (c *cluster) onDisk() *cluster { c.mem = nil; return c }

func serverID(name string) string { return name + "/home" }

func servers(names ...string) []Server {
	var all []Server
	for _, n := range names {
		all = append(all, Server{ID: serverID(n), Address: n, Voter: true})
	}
	return all
}

// make builds a node; a second one of that name has the first one's log.
func (c *cluster) make(name string) *Node {
	c.t.Helper()
	c.tapes[name] = &tape{}
	cfg := Config{
		ServerID: serverID(name), Address: name, Streams: c.wires.port(name), FSM: c.tapes[name],
		Timing: Timing{HeartbeatTimeout: 300 * time.Millisecond, LeaderLeaseTimeout: 200 * time.Millisecond, StallLimit: 2 * time.Second},
	}
	if c.mem != nil {
		if c.mem[name] == nil {
			c.mem[name] = NewMemStores()
		}
		cfg.Stores = c.mem[name]
	} else {
		// Real time: nobody loses its leadership, or stands by itself, because the machine is busy.
		cfg.Timing.HeartbeatTimeout, cfg.Timing.LeaderLeaseTimeout = 1500*time.Millisecond, time.Second
		if c.dirs[name] == "" {
			c.dirs[name] = c.t.TempDir()
		}
		cfg.Dir = c.dirs[name]
	}
	if c.edit != nil {
		c.edit(&cfg)
	}
	n, err := New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[name] = n
	return n
}

func (c *cluster) start(name string) *Node {
	c.t.Helper()
	n := c.make(name)
	if err := n.Start(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// form starts and bootstraps the named nodes and returns the leader's name.
func (c *cluster) form(names ...string) string {
	c.t.Helper()
	for _, name := range names {
		n := c.make(name)
		if err := n.Bootstrap(servers(names...)); err != nil {
			c.t.Fatal(err)
		}
		if err := n.Start(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
	}
	return c.leader(names...)
}

func (c *cluster) stop() {
	var all sync.WaitGroup
	for _, n := range c.nodes {
		all.Go(n.Stop)
	}
	all.Wait()
}

// leader waits until one of the named nodes leads and all the others know it.
func (c *cluster) leader(names ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		var leads string
		agreed := 0
		var changes []<-chan struct{}
		for _, name := range names {
			now, change := c.nodes[name].Watch()
			changes = append(changes, change)
			if now.Leads && c.nodes[name].IsLeader() {
				leads = name
			}
		}
		for _, name := range names {
			if _, addr := c.nodes[name].Leader(); leads != "" && addr == leads {
				agreed++
			}
		}
		if agreed == len(names) {
			return leads
		}
		if !waitAny(ctx, changes) {
			c.t.Fatalf("no leader among %v", names)
		}
	}
}

// leads waits until the named node leads.
func (c *cluster) leads(name string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		now, change := c.nodes[name].Watch()
		if now.Leads {
			return
		}
		if !waitAny(ctx, []<-chan struct{}{change}) {
			c.t.Fatalf("%s does not lead", name)
		}
	}
}

func waitAny(ctx context.Context, changes []<-chan struct{}) bool {
	any := make(chan struct{}, len(changes))
	stop := make(chan struct{})
	var all sync.WaitGroup
	defer all.Wait()
	defer close(stop)
	for _, c := range changes {
		all.Go(func() {
			select {
			case <-c:
				any <- struct{}{}
			case <-stop:
			}
		})
	}
	select {
	case <-any:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *cluster) propose(name, data string) uint64 {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	index, answer, err := c.nodes[name].Propose(ctx, []byte(data))
	if err != nil {
		c.t.Fatal(err)
	}
	if want := fmt.Sprintf("%s@%d", data, index); answer != want {
		c.t.Fatalf("the FSM answered %v, not %v", answer, want)
	}
	return index
}

// applied waits until the named nodes have applied index.
func (c *cluster) applied(index uint64, names ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, name := range names {
		if err := c.nodes[name].WaitApplied(ctx, index); err != nil {
			c.t.Fatalf("node %s: %v", name, err)
		}
	}
}

func others(all []string, one string) []string {
	var rest []string
	for _, n := range all {
		if n != one {
			rest = append(rest, n)
		}
	}
	return rest
}

// settle lets the last entry reach every log: a node whose log is shorter would not be elected.
func settle() { advance(50 * time.Millisecond) }

// advance lets time pass in a bubble.
func advance(d time.Duration) { <-time.After(d) }

// victim is the process that gets killed: a single voter that proposes and prints what was answered.
func victim() {
	n, err := New(Config{ServerID: "a/home", Address: "a", Dir: os.Getenv(victimEnv), Streams: newWires().port("a"), FSM: &tape{}})
	if err == nil {
		if has, _ := n.HasState(); !has {
			err = n.Bootstrap(servers("a"))
		}
	}
	if err == nil {
		err = n.Start(context.Background())
	}
	for err == nil {
		now, change := n.Watch()
		if now.Leads {
			break
		}
		<-change
	}
	for i := 0; err == nil; i++ {
		entry := fmt.Sprintf("%d.%d", os.Getpid(), i)
		if _, _, err = n.Propose(context.Background(), []byte(entry)); err == nil {
			fmt.Println(entry)
		}
	}
	fmt.Println("failed:", err)
	os.Exit(1)
}
