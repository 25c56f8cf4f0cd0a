package gms_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/gmstest"
)

// lockState is one lock as a single machine would keep it.
type lockState struct {
	last   uint64 // highest token granted
	holder uint64 // its token; 0: free, or held by one who never learned when that ended
}

// lockOp is what a client learned: that it was granted a lock, or that it has freed it. lost: its process died or its run was
// closed while it held the lock, so the hold ended at some time that it does not know.
type lockOp struct {
	key   string
	free  bool
	token uint64
	lost  bool
}

// lockModel is what the locks of the group must look like: one holder at a time, tokens that grow.
func lockModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			byKey := map[string][]porcupine.Operation{}
			for _, o := range history {
				k := o.Input.(lockOp).key
				byKey[k] = append(byKey[k], o)
			}
			for _, p := range byKey {
				parts = append(parts, p)
			}
			return parts
		},
		Init: func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) {
			s, op := state.(lockState), input.(lockOp)
			switch {
			case op.free:
				return s.holder == op.token, lockState{last: s.last}
			case op.lost:
				return s.holder == 0 && op.token > s.last, lockState{last: op.token}
			}
			return s.holder == 0 && op.token > s.last, lockState{op.token, op.token}
		},
	}
}

// lockHistory notes what clients learn, in the true order: virtual time does not tell it. Requests that were not granted, as
// far as their clients know, are not in it: they change nothing, or free by themselves what they got.
type lockHistory struct {
	clock atomic.Int64

	mu    sync.Mutex
	ops   []porcupine.Operation
	freed map[uint64]bool
	busy  int
	lost  int
}

func (h *lockHistory) note(client int, call int64, op lockOp) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: op, Call: call, Return: h.clock.Add(1)})
	if op.free {
		h.freed[op.token] = true
	}
}

// lockClient takes and frees locks on one process until ctx ends, or its process does.
type lockClient struct {
	h     *lockHistory
	id    int
	node  *gmstest.Node
	rng   *rand.Rand
	alive context.Context // ends when the process is killed
}

func (c *lockClient) work(stop <-chan struct{}) {
	for c.alive.Err() == nil {
		select {
		case <-stop:
			return
		default:
		}
		c.once(fmt.Sprintf("key %d", c.rng.IntN(2)))
		c.rest(40)
	}
}

func (c *lockClient) rest(ms int) {
	select {
	case <-time.After(time.Duration(1+c.rng.IntN(ms)) * time.Millisecond):
	case <-c.alive.Done():
	}
}

func (c *lockClient) once(key string) {
	call := c.h.clock.Add(1)
	take := c.node.Group.WaitLock
	if c.rng.IntN(3) == 0 {
		take = c.node.Group.TryLock
	}
	l, err := take(c.alive, key)
	if err != nil {
		c.h.mu.Lock()
		defer c.h.mu.Unlock()
		if errors.Is(err, gms.ErrBusy) {
			c.h.busy++
		} else {
			c.h.lost++
		}
		return
	}
	c.h.note(c.id, call, lockOp{key: key, token: l.Token})
	c.rest(30)
	call = c.h.clock.Add(1)
	if err := c.node.Group.Unlock(c.alive, l); err == nil {
		c.h.note(c.id, call, lockOp{key: key, free: true, token: l.Token})
	}
}

// Lock histories of eight clients under kills and changes of leaders are linearizable, and tokens grow per key: so no two
// hold a lock at once, and no request that was repeated on the way is granted twice.
func TestLockHistories(t *testing.T) {
	seed, histories := gmstest.Seed(t), uint64(2)
	if os.Getenv("FENCEPOST_LONG") != "" {
		histories = 40
	}
	for i := range histories {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { lockHistoryOf(t, seed+i) })
		})
	}
}

func lockHistoryOf(t *testing.T, seed uint64) {
	const clients, steps = 8, 12
	w := gmstest.Cluster(t, 5, gmstest.WithSeed(seed), gmstest.WithConfig(func(_ string, c *gms.Config) { c.Profile = gms.ProfileLocal }))
	h := &lockHistory{freed: map[uint64]bool{}}
	rng := rand.New(rand.NewPCG(seed, 1))
	stop := make(chan struct{})
	var working sync.WaitGroup
	kills := map[string]context.CancelFunc{}
	employ := func(name string, ids ...int) {
		ctx, kill := context.WithCancel(t.Context())
		kills[name] = kill
		for _, id := range ids {
			c := &lockClient{h: h, id: id, node: w.Node(name), rng: rand.New(rand.NewPCG(seed, uint64(100+id))), alive: ctx}
			working.Go(func() { c.work(stop) })
		}
	}
	jobs := map[string][]int{}
	for id := range clients {
		name := w.Names()[id%5]
		jobs[name] = append(jobs[name], id)
	}
	for name, ids := range jobs {
		employ(name, ids...)
	}
	for range steps {
		gmstest.Advance(time.Duration(rng.IntN(1500)) * time.Millisecond)
		name := w.Names()[rng.IntN(5)]
		if l := w.Leader(); l != "" && rng.IntN(2) == 0 {
			name = l
		}
		switch rng.IntN(3) {
		case 0, 1:
			w.Kill(name)
			kills[name]()
			gmstest.Advance(time.Duration(rng.IntN(800)) * time.Millisecond)
			w.Start(name)
			employ(name, jobs[name]...)
		default:
			w.Isolate(name)
			gmstest.Advance(time.Duration(rng.IntN(4000)) * time.Millisecond)
			w.Heal()
		}
	}
	w.AwaitView(w.Names()...)
	close(stop)
	gmstest.Advance(5 * time.Second)
	idle := make(chan struct{})
	go func() { working.Wait(); close(idle) }()
	w.Await("the end of the clients", func() bool {
		select {
		case <-idle:
			return true
		default:
			return false
		}
	})
	for k := range 2 { // all clients idle: all locks free
		n := w.Node(w.Names()[k])
		unlock(t, n, try(t, n, fmt.Sprintf("key %d", k)))
	}
	h.judge(t)
}

func (h *lockHistory) judge(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	held := 0
	for i, o := range h.ops {
		if op := o.Input.(lockOp); !op.free {
			op.lost = !h.freed[op.token]
			h.ops[i].Input = op
			held++
		}
	}
	t.Logf("%d locks, %d freed, %d busy, %d requests lost", held, len(h.freed), h.busy, h.lost)
	if held < 100 || h.busy == 0 || h.lost == 0 {
		t.Error("the history shows too little")
	}
	if r := porcupine.CheckOperationsTimeout(lockModel(), h.ops, time.Minute); r != porcupine.Ok {
		t.Errorf("the history is not linearizable: %v", r)
	}
}

// The model itself sees what must not be.
func TestTheLockModelSeesFaults(t *testing.T) {
	lock := func(call int64, token uint64, lost bool) porcupine.Operation {
		return porcupine.Operation{Input: lockOp{key: "k", token: token, lost: lost}, Call: call, Return: call + 1}
	}
	free := func(call int64, token uint64) porcupine.Operation {
		return porcupine.Operation{Input: lockOp{key: "k", free: true, token: token}, Call: call, Return: call + 1}
	}
	for name, c := range map[string]struct {
		ops  []porcupine.Operation
		want bool
	}{
		"one after the other":    {[]porcupine.Operation{lock(1, 5, false), free(3, 5), lock(5, 7, false), free(7, 7)}, true},
		"two at once":            {[]porcupine.Operation{lock(1, 5, false), lock(3, 7, false), free(5, 5), free(7, 7)}, false},
		"a smaller token":        {[]porcupine.Operation{lock(1, 5, false), free(3, 5), lock(5, 4, false), free(7, 4)}, false},
		"a token twice":          {[]porcupine.Operation{lock(1, 5, false), free(3, 5), lock(5, 5, true)}, false},
		"after its holder died":  {[]porcupine.Operation{lock(1, 5, true), lock(3, 7, false), free(5, 7)}, true},
		"while another holds it": {[]porcupine.Operation{lock(1, 5, false), lock(3, 7, true), free(5, 5)}, false},
	} {
		if got := porcupine.CheckOperations(lockModel(), c.ops); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
