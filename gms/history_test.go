package gms_test

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/gmstest"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

// Histories of clients under faults, to be judged by models: the true order of calls and answers, when which node had a
// fault, and who worked where. Virtual time does not tell the order, so a counter does.

// moment is a place in the true order.
type moment struct {
	order int64
	at    time.Time
}

// forever is the return of an operation that may take effect at any later time.
const forever = math.MaxInt64

// settleIn is how long after the end of a fault everything that was under way in it has been decided.
const settleIn = 4 * time.Second

type fault struct{ from, to moment }

// record is what happened, apart from what the clients learned.
type record struct {
	mu     sync.Mutex
	order  int64
	ticks  []moment // one in each second or so, to turn times into places in the order
	faults map[string][]fault
}

func newRecord() *record { return &record{faults: map[string][]fault{}} }

// now takes the next place in the order.
func (r *record) now() moment {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order++
	m := moment{r.order, time.Now()}
	if n := len(r.ticks); n == 0 || m.at.Sub(r.ticks[n-1].at) > time.Second {
		r.ticks = append(r.ticks, m)
	}
	return m
}

// trouble notes a fault of some nodes that begins now; the returned function notes its end.
func (r *record) trouble(nodes ...string) (over func()) {
	from := r.now()
	index := map[string]int{}
	r.mu.Lock()
	for _, n := range nodes {
		index[n] = len(r.faults[n])
		r.faults[n] = append(r.faults[n], fault{from, moment{forever, from.at.Add(time.Hour)}})
	}
	r.mu.Unlock()
	return func() {
		to := r.now()
		r.mu.Lock()
		defer r.mu.Unlock()
		for n, i := range index {
			r.faults[n][i].to = to
		}
	}
}

// mayEnd is the first place in the order, from a moment on, at which a fault may have ended what a node held; false when it
// had none.
func (r *record) mayEnd(node string, from moment) (order int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	order = forever
	for _, f := range r.faults[node] {
		if f.to.at.Add(settleIn).After(from.at) {
			order, ok = min(order, max(f.from.order, from.order)), true
		}
	}
	return order, ok
}

// settled is the place in the order by which a request of a node that came to no answer has been decided. A fault of any
// node counts: the leader may be among them.
func (r *record) settled(m moment) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := m.at
	for again := true; again; {
		again = false
		for _, list := range r.faults {
			for _, f := range list {
				if !f.from.at.After(end.Add(settleIn)) && f.to.at.After(end) {
					end, again = f.to.at, true
				}
			}
		}
	}
	for _, t := range r.ticks {
		if t.at.After(end.Add(settleIn)) {
			return t.order
		}
	}
	return forever
}

// crew are the clients of all nodes; the death of a process is the death of its clients, and who comes back has new ones.
type crew struct {
	t       *testing.T
	w       *gmstest.World
	r       *record
	seed    uint64
	jobs    map[string][]int // clients by node
	work    func(ctx context.Context, node *gmstest.Node, id int, rng *rand.Rand)
	working sync.WaitGroup
	stop    chan struct{}
	kills   map[string]context.CancelFunc
}

// hire gives each node its share of clients, and has them work again and again until stop is closed.
func hire(t *testing.T, w *gmstest.World, r *record, seed uint64, clients int, work func(context.Context, *gmstest.Node, int, *rand.Rand)) *crew {
	c := &crew{t: t, w: w, r: r, seed: seed, jobs: map[string][]int{}, work: work, stop: make(chan struct{}), kills: map[string]context.CancelFunc{}}
	for id := range clients {
		name := w.Names()[id%len(w.Names())]
		c.jobs[name] = append(c.jobs[name], id)
	}
	for _, name := range w.Names() {
		c.employ(name)
	}
	return c
}

func (c *crew) employ(name string) {
	ctx, kill := context.WithCancel(c.t.Context())
	c.kills[name] = kill
	node := c.w.Node(name)
	for _, id := range c.jobs[name] {
		rng := rand.New(rand.NewPCG(c.seed, uint64(100+id)))
		c.working.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-c.stop:
					return
				default:
					c.work(ctx, node, id, rng)
				}
			}
		})
	}
}

// kill ends a process, and starts it again after a while.
func (c *crew) kill(down time.Duration, names ...string) {
	over := c.r.trouble(names...)
	for _, name := range names {
		c.w.Kill(name)
		c.kills[name]()
	}
	gmstest.Advance(down)
	for _, name := range names {
		c.w.Start(name)
		c.employ(name)
	}
	over()
}

// faults does so many bad things, one after the other: deaths, pauses, cuts both ways and one way, of leaders more than of
// others, up to two nodes of five at once. It waits for what is under way to be settled after one of rest of them.
func (c *crew) faults(n, rest int, rng *rand.Rand) {
	ms := func(n int) time.Duration { return time.Duration(rng.IntN(n)) * time.Millisecond }
	for range n {
		gmstest.Advance(ms(1500))
		if rng.IntN(rest) == 0 {
			gmstest.Advance(2 * settleIn)
		}
		names := c.w.Names()
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		if l := c.w.Leader(); l != "" && rng.IntN(2) == 0 {
			names[0], names[1] = l, c.w.Others(l)[rng.IntN(len(names)-1)]
		}
		few := names[:1+rng.IntN(2)]
		switch rng.IntN(6) {
		case 0, 1:
			c.kill(ms(800), few...)
			continue
		case 2:
			over := c.r.trouble(few...)
			c.w.Partition(few)
			gmstest.Advance(ms(5000))
			c.w.Heal()
			over()
		case 3:
			over := c.r.trouble(few[0])
			c.w.CutOneWay(few[0])
			gmstest.Advance(ms(4000))
			c.w.Heal()
			over()
		default:
			over := c.r.trouble(few...)
			c.w.Pause(few...)
			gmstest.Advance(ms(5000))
			c.w.Resume(few...)
			over()
		}
	}
}

// rest ends the work, once all stand again, and waits for the clients.
func (c *crew) rest() {
	c.w.AwaitView(c.w.Names()...)
	close(c.stop)
	idle := make(chan struct{})
	go func() { c.working.Wait(); close(idle) }()
	c.w.Await("the end of the clients", func() bool {
		select {
		case <-idle:
			return true
		default:
			return false
		}
	})
	gmstest.Advance(2 * settleIn)
	c.r.now()
}

// doze lets a client do nothing for a moment.
func doze(ctx context.Context, rng *rand.Rand, ms int) {
	select {
	case <-time.After(time.Duration(1+rng.IntN(ms)) * time.Millisecond):
	case <-ctx.Done():
	}
}

// freesOrphans has every node recover a component by freeing what the dead claimed.
func freesOrphans(component string) gmstest.Option {
	return gmstest.WithApp(func(n *gmstest.Node) (func(), error) {
		err := n.Router.AddRecoveryFactory(component, signals.HandleRecovery(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			f, err := s.Acquire(ctx)
			if err != nil {
				return err
			}
			orphans, err := f.Orphans(ctx)
			for _, o := range orphans {
				if err == nil {
					err = f.Free(ctx, o)
				}
			}
			return err
		}))
		if err != nil {
			return nil, err
		}
		m, err := recovery.New(recovery.Options{Log: recovery.GroupLog(n.Group), Router: n.Router, Node: n.Name, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		return m.Stop, m.Start(context.Background())
	})
}

func localProfile() gmstest.Option {
	return gmstest.WithConfig(func(_ string, c *gms.Config) {
		c.Profile, c.MaxAttempts, c.FenceTTL = gms.ProfileLocal, 1000, 5*time.Second
	})
}
