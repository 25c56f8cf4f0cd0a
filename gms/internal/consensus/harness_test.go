package consensus

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
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

// wires is a network of pipes between named nodes. A hold keeps what one node sends to another from arriving, as long as
// it lasts; nothing is lost.
type wires struct {
	mu    sync.Mutex
	ports map[string]*wirePort
	holds map[[2]string]chan struct{}
}

func newWires() *wires {
	return &wires{ports: map[string]*wirePort{}, holds: map[[2]string]chan struct{}{}}
}

func (w *wires) hold(from, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds[[2]string{from, to}] = make(chan struct{})
}

func (w *wires) release(from, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := [2]string{from, to}
	if c := w.holds[k]; c != nil {
		close(c)
		delete(w.holds, k)
	}
}

func (w *wires) held(from, to string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holds[[2]string{from, to}]
}

func (w *wires) port(name string) *wirePort {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &wirePort{wires: w, name: name, accept: make(chan net.Conn), done: make(chan struct{})}
	w.ports[name] = p
	return p
}

type wirePort struct {
	wires  *wires
	name   string
	accept chan net.Conn
	once   sync.Once
	done   chan struct{}
}

func (p *wirePort) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *wirePort) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *wirePort) Dial(ctx context.Context, to string) (net.Conn, error) {
	p.wires.mu.Lock()
	peer := p.wires.ports[to]
	p.wires.mu.Unlock()
	if peer == nil {
		return nil, fmt.Errorf("no node %s", to)
	}
	a, b := net.Pipe()
	select {
	case peer.accept <- &wireConn{Conn: b, wires: p.wires, from: to, to: p.name, done: make(chan struct{})}:
		return &wireConn{Conn: a, wires: p.wires, from: p.name, to: to, done: make(chan struct{})}, nil
	case <-peer.done:
		return nil, fmt.Errorf("node %s is down", to)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type wireConn struct {
	net.Conn
	wires    *wires
	from, to string
	once     sync.Once
	done     chan struct{}
}

func (c *wireConn) Write(b []byte) (int, error) {
	for {
		h := c.wires.held(c.from, c.to)
		if h == nil {
			return c.Conn.Write(b)
		}
		select {
		case <-h:
		case <-c.done:
			return 0, net.ErrClosed
		}
	}
}

func (c *wireConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}

// tape is an FSM that remembers what it has applied.
type tape struct {
	mu       sync.Mutex
	entries  [][]byte
	restored int
}

func (f *tape) Apply(index uint64, data []byte) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = append(f.entries, bytes.Clone(data))
	return fmt.Sprintf("%s@%d", data, index)
}

func (f *tape) Snapshot() (io.WriterTo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return tapeSnapshot(append([][]byte(nil), f.entries...)), nil
}

func (f *tape) Restore(r io.Reader) error {
	var entries [][]byte
	for {
		var n uint32
		if err := binary.Read(r, binary.BigEndian, &n); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		entries = append(entries, b)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries, f.restored = entries, f.restored+1
	return nil
}

func (f *tape) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(bytes.Join(f.entries, []byte(",")))
}

func (f *tape) restores() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.restored
}

type tapeSnapshot [][]byte

func (s tapeSnapshot) WriteTo(w io.Writer) (int64, error) {
	for _, e := range s {
		if err := binary.Write(w, binary.BigEndian, uint32(len(e))); err != nil {
			return 0, err
		}
		if _, err := w.Write(e); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

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

// settle lets the barrier after the last commit reach every log: a node whose log is shorter would not be elected.
func settle() { advance(50 * time.Millisecond) }

// advance lets time pass in a bubble.
func advance(d time.Duration) { <-time.After(d) }
