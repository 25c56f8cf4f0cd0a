package gms_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	holder string // empty: free
}

// lockOp is what a client asked for, and learned.
type lockOp struct {
	key string
	// lock, busy, unlock; ended: it held a lock and does not know when that ended; maybe and gone: it asked for a lock, and does
	// not know whether it got it, nor when that ended
	kind string
	id   uint64 // token, or number of the unknown grant
}

// lockModel is what the locks of the group must look like: one holder at a time, tokens that grow. What a client does not
// know may happen at any time after it asked, or never.
func lockModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
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
		Init: func() []any { return []any{lockState{}} },
		Step: func(state, input, _ any) []any { return lockStep(state.(lockState), input.(lockOp)) },
	}
	return m.ToModel()
}

func lockStep(s lockState, op lockOp) []any {
	token, unknown := fmt.Sprint("token ", op.id), fmt.Sprint("unknown ", op.id)
	free := func(holder string) []any {
		if s.holder == holder {
			s.holder = ""
		}
		return []any{s}
	}
	switch op.kind {
	case "lock":
		if s.holder == "" && op.id > s.last {
			return []any{lockState{op.id, token}}
		}
	case "busy":
		if s.holder != "" {
			return []any{s}
		}
	case "unlock":
		if s.holder == token {
			return free(token)
		}
	case "ended":
		return free(token)
	case "maybe":
		if s.holder == "" {
			return []any{s, lockState{s.last, unknown}}
		}
		return []any{s}
	case "gone":
		return free(unknown)
	}
	return nil
}

// lockHistory notes what clients do, in the true order: virtual time does not tell it.
type lockHistory struct {
	clock   atomic.Int64
	unknown atomic.Uint64

	mu    sync.Mutex
	ops   []porcupine.Operation
	kinds map[string]int
}

func (h *lockHistory) note(client int, call int64, op lockOp, known bool) {
	o := porcupine.Operation{ClientId: client, Input: op, Call: call, Return: math.MaxInt64}
	if known {
		o.Return = h.clock.Add(1)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
	h.kinds[op.kind]++
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
		c.failed(key, call, err)
		return
	}
	c.h.note(c.id, call, lockOp{key, "lock", l.Token}, true)
	held := c.h.clock.Load()
	c.rest(30)
	call = c.h.clock.Add(1)
	if err := c.node.Group.Unlock(c.alive, l); err != nil {
		c.h.note(c.id, held, lockOp{key, "ended", l.Token}, false)
		return
	}
	c.h.note(c.id, call, lockOp{key, "unlock", l.Token}, true)
}

func (c *lockClient) failed(key string, call int64, err error) {
	holder, busy := errors.AsType[*gms.HolderError](err)
	switch {
	case busy && holder.Run == c.node.Run(): // another thread of this process is at it, which says nothing of the lock
	case busy:
		c.h.note(c.id, call, lockOp{key, "busy", 0}, true)
	case errors.Is(err, gms.ErrLeaseExpired): // nothing was asked
	default:
		n := c.h.unknown.Add(1)
		c.h.note(c.id, call, lockOp{key, "maybe", n}, false)
		c.h.note(c.id, call, lockOp{key, "gone", n}, false)
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
	h := &lockHistory{kinds: map[string]int{}}
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
	t.Logf("%d operations: %v", len(h.ops), h.kinds)
	if h.kinds["lock"] < 100 || h.kinds["busy"] == 0 || h.kinds["ended"]+h.kinds["maybe"] == 0 {
		t.Errorf("the history shows too little: %v", h.kinds)
	}
	if r := porcupine.CheckOperationsTimeout(lockModel(), h.ops, 0); r != porcupine.Ok {
		t.Errorf("the history is not linearizable: %v", r)
	}
}

// The model itself sees what must not be.
func TestTheLockModelSeesFaults(t *testing.T) {
	op := func(call, ret int64, kind string, id uint64) porcupine.Operation {
		return porcupine.Operation{Input: lockOp{"k", kind, id}, Call: call, Return: ret}
	}
	for name, c := range map[string]struct {
		ops  []porcupine.Operation
		want bool
	}{
		"one after the other":    {[]porcupine.Operation{op(1, 2, "lock", 5), op(3, 4, "unlock", 5), op(5, 6, "lock", 7)}, true},
		"two at once":            {[]porcupine.Operation{op(1, 2, "lock", 5), op(3, 4, "lock", 7)}, false},
		"a smaller token":        {[]porcupine.Operation{op(1, 2, "lock", 5), op(3, 4, "unlock", 5), op(5, 6, "lock", 4)}, false},
		"a token twice":          {[]porcupine.Operation{op(1, 2, "lock", 5), op(3, 4, "unlock", 5), op(5, 6, "lock", 5)}, false},
		"busy while it is free":  {[]porcupine.Operation{op(1, 2, "lock", 5), op(3, 4, "unlock", 5), op(5, 6, "busy", 0)}, false},
		"after its holder ended": {[]porcupine.Operation{op(1, 2, "lock", 5), op(2, 99, "ended", 5), op(3, 4, "lock", 7)}, true},
		"under an unknown grant": {[]porcupine.Operation{op(1, 99, "maybe", 1), op(1, 99, "gone", 1), op(3, 4, "busy", 0), op(5, 6, "lock", 7)}, true},
	} {
		if got := porcupine.CheckOperations(lockModel(), c.ops); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
