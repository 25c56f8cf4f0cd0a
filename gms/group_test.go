package gms

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// testGroup is some nodes of one group in this process, on loopback ports and real disks.
type testGroup struct {
	t     testing.TB
	ctx   context.Context
	net   *cutNet
	names []string
	ports map[string][2]int
	dirs  map[string]string
	nodes map[string]*testNode
}

type testNode struct {
	*Group
	router *signals.Router

	mu      sync.Mutex
	signals []signals.Facts
}

func newTestGroup(t testing.TB, n int) *testGroup { return newLastingGroup(t, n, 2*time.Minute) }

// newLastingGroup is newTestGroup for what may take longer.
func newLastingGroup(t testing.TB, n int, limit time.Duration) *testGroup {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	tg := &testGroup{t: t, ctx: ctx, net: newCutNet(), ports: map[string][2]int{}, dirs: map[string]string{}, nodes: map[string]*testNode{}}
	for i := range n {
		tg.names = append(tg.names, fmt.Sprintf("n%d", i+1))
		tg.place(tg.names[i])
	}
	return tg
}

// place gives a node ports and a home.
func (tg *testGroup) place(name string) {
	tg.ports[name] = [2]int{freePort(tg.t), freePort(tg.t)}
	tg.dirs[name] = tg.t.TempDir()
}

// lastPort counts ports that tests were given. They lie below the range from which the system takes those of outgoing
// connections: one that was free a moment ago stays so.
var lastPort atomic.Int64

func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10000 + (os.Getpid()*997+int(lastPort.Add(1)))%20000
		address := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		l.Close()
		u, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		u.Close()
		return port
	}
	t.Fatal("no free port")
	return 0
}

func (tg *testGroup) config(name string) Config {
	p := tg.ports[name]
	cfg := Config{
		Group: "test", Node: name, Home: tg.dirs[name], Bootstrap: tg.names, Profile: ProfileLAN, FenceTTL: 20 * time.Second,
		Gossip: Endpoint{Bind: fmt.Sprintf("127.0.0.1:%d", p[0])}, Cluster: Endpoint{Bind: fmt.Sprintf("127.0.0.1:%d", p[1])},
	}
	cfg.Network = tg.net.of(name, cfg.Gossip.Bind, cfg.Cluster.Bind)
	for _, other := range tg.names {
		cfg.Seeds = append(cfg.Seeds, fmt.Sprintf("127.0.0.1:%d", tg.ports[other][0]))
	}
	if os.Getenv("FENCEPOST_TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("self", name)
	}
	return cfg
}

// start starts a node and waits for nothing.
func (tg *testGroup) start(name string, change ...func(*Config)) *testNode {
	tg.t.Helper()
	cfg := tg.config(name)
	for _, c := range change {
		c(&cfg)
	}
	n := &testNode{router: signals.NewRouter(signals.Options{})}
	keep := signals.Handle(func(_ context.Context, s signals.Signal) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.signals = append(n.signals, s.Facts())
		return nil
	})
	if err := errors.Join(n.router.AddActionFactory(keep), n.router.AddRecoveryFactory("work", keep), n.router.AddRecoveryFactory("rest", keep)); err != nil {
		tg.t.Fatal(err)
	}
	cfg.Router = n.router
	g, err := New(cfg)
	if err != nil {
		tg.t.Fatal(err)
	}
	n.Group = g
	if err := errors.Join(n.router.Start(tg.ctx), g.Start(tg.ctx)); err != nil {
		tg.t.Fatal(err)
	}
	tg.nodes[name] = n
	tg.t.Cleanup(func() { tg.stop(name) })
	return n
}

func (tg *testGroup) stop(name string) {
	n := tg.nodes[name]
	if n == nil {
		return
	}
	delete(tg.nodes, name)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := n.Stop(ctx, "work", "rest"); err != nil {
		tg.t.Errorf("stop %s: %v", name, err)
	}
	n.router.Stop()
}

// await waits until ok is true of a node, looking again at every entry of its log.
func (tg *testGroup) await(n *testNode, what string, ok func() bool) {
	tg.t.Helper()
	for {
		changed := n.Cache().Changed()
		moved := n.Changed()
		leader := n.leaderChanged()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-moved:
		case <-leader:
		case <-time.After(50 * time.Millisecond): // what others know is not announced here
		case <-tg.ctx.Done():
			tg.t.Fatalf("%s: waited in vain for %s; view %+v, recoveries %+v, err %v", n.cfg.Node, what, n.View(), recoveriesOf(n), n.Err())
		}
	}
}

// awaitStanding waits until the node's run holds its lease.
func (tg *testGroup) awaitStanding(names ...string) {
	tg.t.Helper()
	for _, name := range names {
		if err := tg.nodes[name].AwaitStanding(tg.ctx); err != nil {
			tg.t.Fatalf("%s: %v", name, err)
		}
	}
}

// leaderAmong waits until one of the nodes is known by all of them to lead, and gives it and the others.
func (tg *testGroup) leaderAmong(names ...string) (leader string, others []string) {
	tg.t.Helper()
	first := tg.nodes[names[0]]
	tg.await(first, "a leader", func() bool {
		leader = first.Leader()
		return slices.Contains(names, leader) && tg.nodes[leader].leadingNow() != nil
	})
	for _, n := range names {
		if n != leader {
			others = append(others, n)
		}
	}
	return leader, others
}

func recoveriesOf(n *testNode) []Recovery {
	list, _ := n.Recoveries()
	return list
}

func viewNames(v signals.View) string {
	var names []string
	for _, m := range v.Members {
		names = append(names, m.Node)
	}
	return strings.Join(names, " ")
}

// formed starts all nodes and waits until each holds its lease and sees all.
func formed(t testing.TB, n int) *testGroup {
	tg := newTestGroup(t, n)
	tg.form()
	return tg
}

func (tg *testGroup) form() {
	tg.t.Helper()
	for _, name := range tg.names {
		tg.start(name)
	}
	tg.awaitStanding(tg.names...)
	for _, name := range tg.names {
		tg.awaitWhole(name)
	}
}

// awaitWhole waits until a node sees all.
func (tg *testGroup) awaitWhole(name string) {
	tg.t.Helper()
	n := tg.nodes[name]
	tg.await(n, "the whole view", func() bool { return len(n.View().Members) == len(tg.names) })
}

func TestThreeNodesFormOneView(t *testing.T) {
	t.Parallel()
	tg := formed(t, 3)
	first := tg.nodes["n1"].View()
	for _, name := range tg.names {
		node := tg.nodes[name]
		tg.await(node, "the newest view", func() bool { return node.View().Version >= first.Version })
		if v := node.View(); v.Version == first.Version && viewNames(v) != viewNames(first) {
			t.Errorf("%s sees %v at version %d, n1 saw %v", name, viewNames(v), v.Version, viewNames(first))
		}
	}
	if a, b := tg.nodes["n1"].cluster(), tg.nodes["n3"].cluster(); string(a) != string(b) || len(a) != 16 {
		t.Errorf("cluster ids %x and %x", a, b)
	}
}

func TestSingleNodeStands(t *testing.T) {
	t.Parallel()
	tg := formed(t, 1)
	n := tg.nodes["n1"]
	c, err := n.Claim(tg.ctx, "work", "item", 1)
	if err != nil {
		t.Fatal(err)
	}
	if c.Token <= uint64(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()) {
		t.Errorf("token %d is not above the wall clock", c.Token)
	}
	if err := n.EndClaim(tg.ctx, c, signals.Complete); err != nil {
		t.Fatal(err)
	}
	if err := n.EndClaim(tg.ctx, c, signals.Complete); !errors.Is(err, ErrNotFound) {
		t.Errorf("second end of a claim: %v", err)
	}
}
