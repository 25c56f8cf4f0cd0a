package gmstest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms/internal/consensus"
)

// World is some nodes of one group, the network between them and their disks. Its methods are called from the test's own
// goroutine; what they are told to do happens at once, in no time.
type World struct {
	t        *testing.T
	opts     options
	net      *network
	tape     *tape
	observer *observer
	began    time.Time
	safe     *safe // nil: ports are plain

	founders, seeds []string
	names           []string // of all sites, in the order of their making
	sites           map[string]*site
	graves          sync.WaitGroup
	moves           int
}

// Cluster makes a world of n nodes, named n1 to n<n>, and returns when every one holds its lease and sees all. The first
// three found the group. It must be called in a synctest bubble; the world ends with the test.
func Cluster(t *testing.T, n int, opts ...Option) *World {
	t.Helper()
	w := New(t, opts...)
	for i := range n {
		w.site(fmt.Sprintf("n%d", i+1))
	}
	w.founders = slices.Clone(w.names[:min(n, 3)])
	for _, name := range w.founders {
		w.seeds = append(w.seeds, w.sites[name].gossip())
	}
	for _, name := range w.names {
		w.Start(name)
	}
	w.AwaitView(w.names...)
	return w
}

// New makes a world without nodes: see Found and Start.
func New(t *testing.T, opts ...Option) *World {
	t.Helper()
	w := &World{t: t, sites: map[string]*site{}, began: time.Now(), tape: newTape()}
	for _, o := range opts {
		o(&w.opts)
	}
	if w.opts.seed == 0 {
		w.opts.seed = Seed(t)
	}
	w.net = newNetwork(w.opts.seed)
	w.observer = newObserver(w)
	if w.opts.secure {
		w.safe = newSafe(t)
	}
	t.Cleanup(w.close)
	return w
}

// Found names the nodes that form the group, before any is started.
func (w *World) Found(names ...string) {
	w.founders = slices.Clone(names)
	for _, name := range names {
		w.seeds = append(w.seeds, w.site(name).gossip())
	}
}

// close ends all, at the end of the test. A probe of gossip that is under way ends by its time-out only, and time stops
// with the bubble's first goroutine, so a minute more passes.
func (w *World) close() {
	w.observer.rest()
	w.Kill(w.alive()...)
	w.graves.Wait()
	Advance(time.Minute)
	if w.t.Failed() {
		w.t.Logf("%s=%d; the nodes' log:\n%s", SeedEnv, w.opts.seed, w.tape)
	}
}

// site gives the host and the disk of a name, made when it is new.
func (w *World) site(name string) *site {
	w.t.Helper()
	if s := w.sites[name]; s != nil {
		return s
	}
	s := &site{name: name, ip: fmt.Sprintf("127.0.0.%d", len(w.names)+1), disk: consensus.NewMemStores(), home: tempHome(w.t)}
	w.sites[name] = s
	w.names = append(w.names, name)
	return s
}

// tempHome makes a directory in memory if there is such a file system: homes are written through to the disk, which takes
// real time.
func tempHome(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "gmstest-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Start starts a node: a new one, which joins, or one that was stopped or killed, which comes back with the disk it had.
func (w *World) Start(name string) *Node {
	w.t.Helper()
	s := w.site(name)
	if s.node != nil {
		if s.node.Alive() {
			w.t.Fatalf("start %s: it is running", name)
		}
		<-s.node.down
	}
	n, err := w.start(s)
	if err != nil {
		w.t.Fatalf("start %s: %v", name, err)
	}
	return n
}

// Restart kills a node if it runs and starts it again with the disk it had, at once.
func (w *World) Restart(name string) *Node {
	w.t.Helper()
	if w.Node(name).Alive() {
		w.Kill(name)
	}
	return w.Start(name)
}

// Replace gives a node that does not run an empty home and an empty disk.
func (w *World) Replace(name string) {
	w.t.Helper()
	s := w.sites[name]
	if s.node != nil {
		if s.node.Alive() {
			w.t.Fatalf("replace the home of %s: it is running", name)
		}
		<-s.node.down
	}
	s.disk, s.home = consensus.NewMemStores(), tempHome(w.t)
}

// Move gives a node that does not run another address: its host was set up anew, with its disk. The nodes that are started
// from now on have it among their seeds if it was one.
func (w *World) Move(name string) {
	w.t.Helper()
	s := w.sites[name]
	if s.node != nil {
		if s.node.Alive() {
			w.t.Fatalf("move %s: it is running", name)
		}
		<-s.node.down
	}
	w.moves++
	was := s.gossip()
	s.ip = fmt.Sprintf("127.0.1.%d", w.moves)
	w.seeds = slices.Clone(w.seeds)
	for i, seed := range w.seeds {
		if seed == was {
			w.seeds[i] = s.gossip()
		}
	}
}

// Node is the last process of that name.
func (w *World) Node(name string) *Node {
	w.t.Helper()
	s := w.sites[name]
	if s == nil || s.node == nil {
		w.t.Fatalf("there is no node %q", name)
	}
	return s.node
}

// Names lists all nodes, in the order in which they were first named.
func (w *World) Names() []string { return slices.Clone(w.names) }

// Living lists the nodes that run and are not paused.
func (w *World) Living() []*Node {
	var list []*Node
	for _, name := range w.names {
		if n := w.sites[name].node; n != nil && n.lifeNow() == running {
			list = append(list, n)
		}
	}
	return list
}

func (w *World) alive() []string {
	var list []string
	for _, name := range w.names {
		if n := w.sites[name].node; n != nil && n.Alive() {
			list = append(list, name)
		}
	}
	return list
}

// Leader is the node that leads the majority of the living, as they see it; empty while they do not agree.
func (w *World) Leader() string {
	votes := map[string]int{}
	living := w.Living()
	for _, n := range living {
		votes[n.Group.Leader()]++
	}
	for name, v := range votes {
		if s := w.sites[name]; s != nil && 2*v > len(living) && s.node.lifeNow() == running {
			return name
		}
	}
	return ""
}

// Others lists the living nodes but for the named ones.
func (w *World) Others(but ...string) []string {
	var list []string
	for _, n := range w.Living() {
		if !slices.Contains(but, n.Name) {
			list = append(list, n.Name)
		}
	}
	return list
}

// String shows what each node sees, for people.
func (w *World) String() string {
	text := fmt.Sprintf("after %v:\n", time.Since(w.began))
	for _, name := range w.names {
		n := w.sites[name].node
		if n == nil {
			continue
		}
		st, _ := n.Group.Standing()
		text += fmt.Sprintf("  %s: alive %v, %v, leader %q, view", name, n.Alive(), st, n.Group.Leader())
		v := n.Group.View()
		for _, m := range v.Members {
			text += " " + m.Node
		}
		text += fmt.Sprintf(" at %d", v.Version)
		open, _ := n.Group.Recoveries()
		for _, r := range open {
			text += fmt.Sprintf("; %s of %s: %s, %s", r.Component, r.Node, r.State, r.AppointeeNode)
		}
		if err := n.Group.Err(); err != nil {
			text += fmt.Sprintf("; %v", err)
		}
		text += "\n"
	}
	return text
}

// Kill ends processes at once and together, as kill -9 does: their streams break, their hosts refuse their ports, and what
// they had not written is lost.
func (w *World) Kill(names ...string) {
	w.t.Helper()
	var dead []*Node
	for _, name := range names {
		n := w.Node(name)
		if !n.Alive() {
			w.t.Fatalf("kill %s: %v", name, errDead)
		}
		dead = append(dead, n)
	}
	for _, n := range dead {
		n.crash()
	}
	for _, n := range dead {
		w.graves.Go(n.bury)
	}
}

// PowerCycle ends processes as a loss of power does, after which their hosts are up again without them: nobody is told, and
// what was open to them seems to go on until somebody sends or asks.
func (w *World) PowerCycle(names ...string) {
	w.t.Helper()
	for _, name := range names {
		n := w.Node(name)
		if !n.Alive() {
			w.t.Fatalf("power-cycle %s: %v", name, errDead)
		}
		w.net.vanish(n.proc)
		n.crash()
		w.graves.Go(n.bury)
	}
}

// Stop stops a node as planned and waits for it. settled names components of which it has no work left; see Group.Stop.
func (w *World) Stop(name string, settled ...string) {
	w.t.Helper()
	w.stop([]string{name}, settled)
}

// StopTogether stops nodes as planned, all at one moment, and waits for them.
func (w *World) StopTogether(names ...string) {
	w.t.Helper()
	w.stop(names, nil)
}

func (w *World) stop(names, settled []string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	for _, name := range names {
		n := w.Node(name)
		if !n.Alive() {
			w.t.Fatalf("stop %s: %v", name, errDead)
		}
		n.setLife(stopping)
		all.Go(func() {
			if err := n.end(ctx, settled...); err != nil {
				w.t.Errorf("stop %s: %v", name, err)
			}
		})
	}
}
