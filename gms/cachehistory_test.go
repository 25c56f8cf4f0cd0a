package gms_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/gmstest"
)

// cacheKeys are so few that clients meet.
const cacheKeys = 2

// cell is one entry of the cache. Of a write whose outcome its client does not know the version is not known either, until
// somebody reads it.
type cell struct {
	value   string
	version uint64 // 0: there is none
	vague   bool
}

// cacheState is the cache as a single machine would keep it.
type cacheState struct {
	last  uint64            // highest version known: transactions of one log entry have the same
	puts  [cacheKeys]uint64 // the highest of each key: of two writes of a key no version is the same
	cells [cacheKeys]cell
}

type cacheOp struct {
	read    bool
	key     int    // read
	value   string // read: what was there; else: what is put
	version uint64 // read: its version, 0 for nothing; else: the transaction's
	// Of a transaction: what it puts and deletes, and on which version each key must be (-1: on any).
	puts    [cacheKeys]bool
	deletes [cacheKeys]bool
	on      [cacheKeys]int64
	failed  bool // a condition did not hold
	unknown bool // it happened or not, or will
}

func (s cacheState) holds(op cacheOp) bool {
	for k, on := range op.on {
		if on >= 0 && (s.cells[k].vague || s.cells[k].version != uint64(on)) {
			return false
		}
	}
	return true
}

func (s cacheState) grows(op cacheOp) bool {
	for k := range cacheKeys {
		if op.puts[k] && op.version <= s.puts[k] {
			return false
		}
	}
	return op.version >= s.last
}

func (s cacheState) written(op cacheOp) cacheState {
	for k := range cacheKeys {
		switch {
		case op.deletes[k]:
			s.cells[k] = cell{}
		case op.puts[k]:
			s.cells[k] = cell{op.value, op.version, op.unknown}
			s.puts[k] = max(s.puts[k], op.version)
		}
	}
	s.last = max(s.last, op.version)
	return s
}

// cacheModel is what the cache must look like: transactions take effect as a whole at one time and only where their
// conditions hold, versions grow, and reads see the last one.
func cacheModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return cacheState{} },
		Step: func(state, input, _ any) (bool, any) {
			s, op := state.(cacheState), input.(cacheOp)
			switch {
			case op.read:
				c := s.cells[op.key]
				if c.vague && op.value == c.value && op.version >= s.last {
					return true, s.learn(c.value, op.version)
				}
				return c == cell{op.value, op.version, false}, s
			case op.failed:
				return !s.holds(op), s
			case op.unknown:
				if !s.holds(op) {
					return true, s
				}
				return true, s.written(op)
			}
			return s.holds(op) && s.grows(op), s.written(op)
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
	}
}

// learn gives what one transaction of unknown version has put its version.
func (s cacheState) learn(value string, version uint64) cacheState {
	for k := range s.cells {
		if s.cells[k].vague && s.cells[k].value == value {
			s.cells[k], s.puts[k] = cell{value, version, false}, version
		}
	}
	s.last = max(s.last, version)
	return s
}

// cacheHistory is what clients of the cache learned.
type cacheHistory struct {
	r *record
	t *testing.T

	mu     sync.Mutex
	ops    []porcupine.Operation
	vague  []int // those of unknown outcome
	when   map[int]moment
	local  map[*gmstest.Node][cacheKeys]uint64 // the highest version that a process has shown in a local read
	next   int
	counts map[string]int
}

func cacheKey(k int) gms.Key { return gms.Key{Component: "app", Key: fmt.Sprint("key ", k)} }

func (h *cacheHistory) note(client int, from moment, op cacheOp, what string) {
	to := h.r.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what]++
	if op.unknown {
		h.vague = append(h.vague, len(h.ops))
		h.when[len(h.ops)] = to
		to.order = forever
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: op, Call: from.order, Return: to.order})
}

func (h *cacheHistory) once(ctx context.Context, n *gmstest.Node, client int, rng *rand.Rand) {
	limited, cancel := context.WithTimeout(ctx, time.Duration(300+rng.IntN(3000))*time.Millisecond)
	defer cancel()
	seen := [cacheKeys]int64{-1, -1}
	for k := range cacheKeys {
		h.readLocal(n, k)
		if rng.IntN(2) == 0 {
			seen[k] = h.read(limited, n, client, k)
		}
	}
	doze(ctx, rng, 100)
	h.write(limited, n, client, rng, seen)
	doze(ctx, rng, 200)
}

// readLocal reads the process's own copy, which may be behind, but never goes back.
func (h *cacheHistory) readLocal(n *gmstest.Node, k int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, err := n.Group.Cache().GetLocal(cacheKey(k))
	if err != nil {
		return // deleted, or not there yet
	}
	shown := h.local[n]
	if e.Version < shown[k] {
		h.t.Errorf("%s shows version %d of %s after %d", n.Name, e.Version, cacheKey(k).Key, shown[k])
	}
	shown[k] = e.Version
	h.local[n] = shown
}

func (h *cacheHistory) read(ctx context.Context, n *gmstest.Node, client, k int) (version int64) {
	from := h.r.now()
	e, err := n.Group.Cache().Get(ctx, cacheKey(k))
	switch {
	case err == nil:
		h.note(client, from, cacheOp{read: true, key: k, value: string(e.Value), version: e.Version}, "read")
		return int64(e.Version)
	case errors.Is(err, gms.ErrNotFound):
		h.note(client, from, cacheOp{read: true, key: k}, "read nothing")
		return 0
	}
	return -1
}

func (h *cacheHistory) write(ctx context.Context, n *gmstest.Node, client int, rng *rand.Rand, seen [cacheKeys]int64) {
	h.mu.Lock()
	h.next++
	op := cacheOp{value: fmt.Sprint("value ", h.next), on: seen}
	h.mu.Unlock()
	var t gms.Txn
	var conditions []int
	for k := range cacheKeys {
		if seen[k] >= 0 {
			t.Conditions = append(t.Conditions, gms.VersionIs(cacheKey(k), uint64(seen[k])))
			conditions = append(conditions, k)
		}
		switch rng.IntN(4) {
		case 0:
			op.deletes[k] = true
			t.Deletes = append(t.Deletes, cacheKey(k))
		case 1, 2:
			op.puts[k] = true
			t.Puts = append(t.Puts, gms.Put{Key: cacheKey(k), Value: []byte(op.value)})
		}
	}
	if len(t.Puts)+len(t.Deletes) == 0 {
		return
	}
	t.Puts = append(t.Puts, gms.Put{Key: gms.Key{Component: "app", Key: fmt.Sprint("mark ", client)}, Value: []byte(op.value)})
	from := h.r.now()
	version, err := n.Group.Cache().Commit(ctx, t)
	var failed *gms.ConditionError
	switch {
	case err == nil:
		op.version = version
		h.note(client, from, op, "written")
	case errors.As(err, &failed):
		k := conditions[failed.Index] // of this key it is known
		op.failed, op.on = true, [cacheKeys]int64{-1, -1}
		op.on[k] = seen[k]
		h.note(client, from, op, "conflict")
	case errors.Is(err, gms.ErrNoQuorum), errors.Is(err, gms.ErrRunClosed) && !errors.Is(err, gms.ErrUnknown):
		h.counted("not written")
	default:
		op.unknown = true
		h.note(client, from, op, "unknown")
	}
}

func (h *cacheHistory) counted(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what]++
}

// Histories of the state cache under the same faults are linearizable: transactions with conditions on two keys and reads
// that are not local. Local reads of one process never go back.
func TestCacheHistories(t *testing.T) {
	seed, histories := gmstest.Seed(t), uint64(2)
	if os.Getenv("FENCEPOST_LONG") != "" {
		histories = 60
	}
	for i := range histories {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			var ops []porcupine.Operation
			synctest.Test(t, func(t *testing.T) { ops = cacheHistoryOf(t, seed+i) })
			judge(t, cacheModel(), ops, seed+i)
		})
	}
}

func cacheHistoryOf(t *testing.T, seed uint64) []porcupine.Operation {
	w := gmstest.Cluster(t, 5, gmstest.WithSeed(seed), localProfile())
	r := newRecord()
	h := &cacheHistory{r: r, t: t, when: map[int]moment{}, local: map[*gmstest.Node][cacheKeys]uint64{}, counts: map[string]int{}}
	c := hire(t, w, r, seed, 8, h.once)
	c.faults(8, 1, rand.New(rand.NewPCG(seed, 1)))
	c.rest()
	h.settle(w.Node(w.Names()[0]))
	t.Log(h.counts)
	if h.counts["written"] < 50 || h.counts["conflict"] == 0 || h.counts["read"] < 50 {
		t.Error("the history shows too little")
	}
	return h.ops
}

// settle finds out what became of the transactions whose clients do not know it: each put a mark of its own, which the
// changes of the cache show, or do not. What is not shown and was read all the same, the model does not understand.
func (h *cacheHistory) settle(n *gmstest.Node) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	made := map[string]uint64{}
	for change, err := range n.Group.Cache().Watch(over, "app", 0) {
		if err != nil && !errors.Is(err, context.Canceled) {
			h.t.Fatal(err)
		}
		for _, e := range change.Events {
			if strings.HasPrefix(e.Key.Key, "mark") {
				made[string(e.Value)] = change.Version
			}
		}
	}
	vague := map[int]bool{}
	for _, i := range h.vague {
		vague[i] = true
	}
	var ops []porcupine.Operation
	for i, o := range h.ops {
		op := o.Input.(cacheOp)
		if vague[i] {
			if made[op.value] == 0 {
				h.counts["unknown, and never happened"]++
				continue
			}
			op.unknown, op.version = false, made[op.value]
			o.Input, o.Return = op, h.r.settled(h.when[i])
		}
		ops = append(ops, o)
	}
	h.ops = ops
}

// The model itself sees what must not be.
func TestTheCacheModelSeesFaults(t *testing.T) {
	any := [cacheKeys]int64{-1, -1}
	at := func(call int64, op cacheOp) porcupine.Operation {
		return porcupine.Operation{Input: op, Call: call, Return: call + 1}
	}
	put := func(call int64, value string, version uint64, on int64) porcupine.Operation {
		return at(call, cacheOp{value: value, version: version, puts: [cacheKeys]bool{true}, on: [cacheKeys]int64{on, -1}})
	}
	read := func(call int64, value string, version uint64) porcupine.Operation {
		return at(call, cacheOp{read: true, value: value, version: version, on: any})
	}
	failed := func(call, on int64) porcupine.Operation {
		return at(call, cacheOp{failed: true, on: [cacheKeys]int64{on, -1}})
	}
	perhaps := func(call int64, value string) porcupine.Operation {
		return porcupine.Operation{Input: cacheOp{value: value, unknown: true, puts: [cacheKeys]bool{true}, on: any}, Call: call, Return: forever}
	}
	for name, c := range map[string]struct {
		want bool
		ops  []porcupine.Operation
	}{
		"written and read":              {true, []porcupine.Operation{put(1, "a", 5, -1), read(3, "a", 5)}},
		"a stale read":                  {false, []porcupine.Operation{put(1, "a", 5, -1), put(3, "b", 6, -1), read(5, "a", 5)}},
		"nothing after a write":         {false, []porcupine.Operation{put(1, "a", 5, -1), read(3, "", 0)}},
		"two on one version":            {false, []porcupine.Operation{put(1, "a", 5, 0), put(3, "b", 6, 0)}},
		"a smaller version":             {false, []porcupine.Operation{put(1, "a", 5, -1), put(3, "b", 4, -1)}},
		"a version twice":               {false, []porcupine.Operation{put(1, "a", 5, -1), put(3, "b", 5, -1)}},
		"a conflict that was none":      {false, []porcupine.Operation{put(1, "a", 5, -1), failed(3, 5)}},
		"a conflict":                    {true, []porcupine.Operation{put(1, "a", 5, -1), put(3, "b", 6, -1), failed(5, 5)}},
		"an unknown write that is seen": {true, []porcupine.Operation{put(1, "a", 5, -1), perhaps(3, "b"), read(5, "a", 5), read(7, "b", 6), failed(9, 5)}},
		"seen, and gone again":          {false, []porcupine.Operation{put(1, "a", 5, -1), perhaps(3, "b"), read(5, "b", 6), read(7, "a", 5)}},
		"read before it was written":    {false, []porcupine.Operation{read(1, "b", 6), perhaps(3, "b")}},
	} {
		if got := porcupine.CheckOperations(cacheModel(), c.ops); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A version is one write's own: of many that put the same key at once no two are told the same, also when their writes
// share an entry of the log; so a compare-and-swap on one's own version never overwrites somebody else's value.
func TestAVersionIsItsWritersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := gmstest.Cluster(t, 3)
		for range 20 {
			var mu sync.Mutex
			var writers sync.WaitGroup
			told := map[uint64]string{}
			for i := range 30 {
				writers.Go(func() {
					cache, value := w.Node(w.Names()[i%3]).Group.Cache(), fmt.Sprint(i)
					version, err := cache.Commit(t.Context(), gms.Txn{Puts: []gms.Put{{Key: cacheKey(0), Value: []byte(value)}}})
					mu.Lock()
					defer mu.Unlock()
					if other, twice := told[version]; err != nil || twice {
						t.Errorf("writers %s and %s were both told version %d: %v", other, value, version, err)
					}
					told[version] = value
				})
			}
			writers.Wait()
			e, err := w.Node("n1").Group.Cache().Get(t.Context(), cacheKey(0))
			if err != nil || told[e.Version] != string(e.Value) {
				t.Errorf("version %d is writer %s's, its value %s: %v", e.Version, told[e.Version], e.Value, err)
			}
		}
	})
}
