package gms_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/gmstest"
	"github.com/fencepost/fencepost/signals"
)

// holdKind is what a client learned, or what may have happened without its knowing.
type holdKind int

const (
	granted holdKind = iota // it holds, with a token
	refused                 // somebody holds
	freed                   // its hold ended by its word
	notHeld                 // it was told that its hold had ended before
	mayEnd                  // its hold ends at some time from here on: its process died, its run was closed, its word was lost
)

// hold is one operation on one lock or item.
type hold struct {
	kind   holdKind
	key    string
	id     int    // of the grant that it is about
	token  uint64 // granted
	run    string // granted: the holder, if that is sure
	holder string // refused: the run that is said to hold; empty when anyone may
}

// holdState is one lock or claim as a single machine would keep it.
type holdState struct {
	last   uint64 // highest token granted
	holder int    // id of the grant; 0: free
	run    string
}

// holdModel is what locks and claims must look like: one holder at a time, whose name is told, and tokens that grow. What
// ends a hold without its holder's knowing is an operation of its own, without an end, which only a fault or a lost word
// brings into the history.
func holdModel() porcupine.Model {
	return porcupine.Model{
		Partition: partition(func(o porcupine.Operation) string { return o.Input.(hold).key }),
		Init:      func() any { return holdState{} },
		Step: func(state, input, _ any) (bool, any) {
			s, op := state.(holdState), input.(hold)
			switch op.kind {
			case granted:
				return s.holder == 0 && op.token > s.last, holdState{op.token, op.id, op.run}
			case refused:
				return s.holder != 0 && (op.holder == "" || s.run == "" || op.holder == s.run), s
			case notHeld:
				return s.holder != op.id, s
			}
			return s.holder == op.id, holdState{last: s.last}
		},
		DescribeOperation: func(input, _ any) string {
			op := input.(hold)
			return fmt.Sprintf("%s %s #%d token %d run %.4s holder %.4s", [...]string{"granted", "refused", "freed", "not held", "may end"}[op.kind], op.key, op.id, op.token, op.run, op.holder)
		},
	}
}

func partition(key func(porcupine.Operation) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			byKey[key(o)] = append(byKey[key(o)], o)
		}
		for _, p := range byKey {
			parts = append(parts, p)
		}
		return parts
	}
}

// request is a call that may have taken or freed something though its client does not know.
type request struct {
	key  string
	node string
	from moment
	to   int64 // place in the order by which it was decided
}

// holds is the history of locks and claims.
type holds struct {
	r *record

	mu      sync.Mutex
	ops     []porcupine.Operation
	refuses []refusal
	grants  map[int]*grant
	asked   []request // of unknown outcome
	local   []request // calls of a process for a lock, whatever came of them
	next    int
	counts  map[string]int
}

// grant is a hold, from its client's side.
type grant struct {
	hold
	node string
	at   moment
	over bool   // its client knows that it has ended
	lost moment // when the word of its end was sent that was not answered; zero for none
}

type refusal struct {
	op   porcupine.Operation
	node string
	own  bool // the process itself is said to hold
}

func newHolds(r *record) *holds {
	return &holds{r: r, grants: map[int]*grant{}, counts: map[string]int{}}
}

// ask notes what came of a request for a lock or a claim. It returns the id of the grant, 0 for none.
func (h *holds) ask(client int, n *gmstest.Node, key string, from moment, run string, token uint64, err error, waits bool) int {
	to := h.r.now()
	again := n.Run()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.local = append(h.local, request{key, n.Name, from, to.order})
	op := porcupine.Operation{ClientId: client, Call: from.order, Return: to.order}
	var held *gms.HolderError
	switch {
	case err == nil:
		h.next++
		x := hold{kind: granted, key: key, id: h.next, token: token}
		if run == again {
			x.run = run
		}
		h.grants[h.next] = &grant{hold: x, node: n.Name, at: from}
		op.Input = x
		h.ops = append(h.ops, op)
		h.counts["granted"]++
		return h.next
	case errors.As(err, &held):
		op.Input = hold{kind: refused, key: key, holder: held.Run}
		h.refuses = append(h.refuses, refusal{op, n.Name, held.Run == run || held.Run == again})
		h.counts["refused"]++
	case !waits && !errors.Is(err, gms.ErrUnknown) && !errors.Is(err, gms.ErrNoQuorum):
		h.counts["refused for want of a lease"]++
	default: // it goes on in the background: what it may get is given back
		h.asked = append(h.asked, request{key, n.Name, from, to.order})
		h.counts["unknown"]++
	}
	return 0
}

// end notes what came of the word that ends a hold.
func (h *holds) end(client, id int, from moment, err error) {
	to := h.r.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.grants[id]
	op := porcupine.Operation{ClientId: client, Call: from.order, Return: to.order}
	switch {
	case err == nil:
		g.over = true
		op.Input = hold{kind: freed, key: g.key, id: id}
		h.ops = append(h.ops, op)
		h.counts["freed"]++
	case errors.Is(err, gms.ErrNotHolder), errors.Is(err, gms.ErrNotFound):
		op.Input = hold{kind: notHeld, key: g.key, id: id}
		h.ops = append(h.ops, op)
		h.counts["ended before"]++
	default:
		g.lost = from
		h.counts["word lost"]++
	}
}

// history is what the model judges.
func (h *holds) history() []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	ops := h.ops
	for i := range h.asked {
		h.asked[i].to = h.r.settled(h.asked[i].from)
	}
	for id, g := range h.grants {
		if g.over {
			continue
		}
		from, ok := h.r.mayEnd(g.node, g.at)
		if g.lost.order > 0 {
			from, ok = min(from, g.lost.order), true
		}
		if ok { // without a fault of its node and without a word that was lost, nothing may end it
			ops = append(ops, porcupine.Operation{ClientId: 1000 + id, Input: hold{kind: mayEnd, key: g.key, id: id}, Call: from, Return: forever})
			h.counts["may end"]++
		}
	}
	for _, r := range h.refuses {
		if !h.excused(r) {
			ops = append(ops, r.op)
		} else {
			h.counts["refused, perhaps by one that knows of no grant"]++
		}
	}
	return ops
}

// excused: whoever came to no answer may have held meanwhile, which nothing but refusals can show. And of two calls of one
// process for a lock, the second is refused while the first has no answer.
func (h *holds) excused(r refusal) bool {
	key := r.op.Input.(hold).key
	overlaps := func(x request) bool { return x.key == key && x.from.order < r.op.Return && x.to > r.op.Call }
	for _, x := range h.asked {
		if overlaps(x) {
			return true
		}
	}
	for _, x := range h.local {
		if r.own && x.node == r.node && overlaps(x) && x.from.order != r.op.Call {
			return true
		}
	}
	return false
}

// once has a client take something, hold it for a moment, and end the hold.
func (h *holds) once(ctx context.Context, n *gmstest.Node, id int, rng *rand.Rand) {
	limited, cancel := context.WithTimeout(ctx, time.Duration(100+rng.IntN(3000))*time.Millisecond)
	defer cancel()
	if rng.IntN(2) == 0 {
		h.lock(ctx, limited, n, id, rng)
	} else {
		h.claim(ctx, limited, n, id, rng)
	}
	doze(ctx, rng, 300)
}

func (h *holds) lock(ctx, limited context.Context, n *gmstest.Node, client int, rng *rand.Rand) {
	key := fmt.Sprint("lock ", rng.IntN(2))
	take, waits := n.Group.WaitLock, true
	if rng.IntN(3) == 0 {
		take, waits = n.Group.TryLock, false
	}
	from, run := h.r.now(), n.Run()
	l, err := take(limited, key)
	id := h.ask(client, n, key, from, run, l.Token, err, waits)
	if id == 0 {
		return
	}
	doze(ctx, rng, 200)
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	from = h.r.now()
	h.end(client, id, from, n.Group.Unlock(limited, l))
}

func (h *holds) claim(ctx, limited context.Context, n *gmstest.Node, client int, rng *rand.Rand) {
	item := fmt.Sprint("item ", rng.IntN(3))
	from, run := h.r.now(), n.Run()
	c, err := n.Group.Claim(limited, "work", item, 1)
	id := h.ask(client, n, item, from, run, c.Token, err, false)
	if id == 0 {
		return
	}
	doze(ctx, rng, 200)
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	how := []signals.How{signals.Complete, signals.Abandon}[rng.IntN(2)]
	from = h.r.now()
	h.end(client, id, from, n.Group.EndClaim(limited, c, how))
}

// Histories of locks and claims of eight clients on five nodes, under deaths, pauses, cuts and changes of leaders, are
// linearizable: no two hold at once, whoever is refused is refused by a holder, and by the one that is named; tokens grow
// per key, so that no request that was repeated on the way was granted twice; and nothing but a fault of its own node or
// its own word ends a hold.
func TestLockHistories(t *testing.T) {
	seed, histories := gmstest.Seed(t), uint64(2)
	if os.Getenv("FENCEPOST_LONG") != "" {
		histories = 60
	}
	for i := range histories {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			var ops []porcupine.Operation
			synctest.Test(t, func(t *testing.T) { ops = lockHistoryOf(t, seed+i) })
			judge(t, holdModel(), ops, seed+i)
		})
	}
}

func lockHistoryOf(t *testing.T, seed uint64) []porcupine.Operation {
	w := gmstest.Cluster(t, 5, gmstest.WithSeed(seed), localProfile(), freesOrphans("work"))
	r := newRecord()
	h := newHolds(r)
	c := hire(t, w, r, seed, 8, h.once)
	c.faults(12, 2, rand.New(rand.NewPCG(seed, 1)))
	c.rest()
	for k := range 2 { // all clients idle: all locks free
		n := w.Node(w.Names()[k])
		unlock(t, n, try(t, n, fmt.Sprint("lock ", k)))
	}
	ops := h.history()
	t.Log(h.counts)
	if h.counts["granted"] < 100 || h.counts["refused"] == 0 || h.counts["unknown"] == 0 || h.counts["may end"] == 0 {
		t.Error("the history shows too little")
	}
	return ops
}

// judge has a model look at a history, and shows what it does not understand. Its limit is real time, so it is called
// outside of the bubble.
func judge(t *testing.T, m porcupine.Model, ops []porcupine.Operation, seed uint64) {
	t.Helper()
	verdict, info := porcupine.CheckOperationsVerbose(m, ops, time.Minute)
	if verdict == porcupine.Ok {
		return
	}
	t.Errorf("the history is not linearizable (%v); repeat it alone with %s=%d", verdict, gmstest.SeedEnv, seed)
	if dir := os.Getenv("FENCEPOST_HISTORIES"); dir != "" {
		if err := porcupine.VisualizePath(m, info, fmt.Sprintf("%s/%s-%d.html", dir, "history", seed)); err != nil {
			t.Error(err)
		}
	}
}

// The model itself sees what must not be.
func TestTheHoldModelSeesFaults(t *testing.T) {
	at := func(call int64, x hold) porcupine.Operation {
		x.key = "k"
		return porcupine.Operation{Input: x, Call: call, Return: call + 1}
	}
	got := func(call int64, id int, token uint64) porcupine.Operation {
		return at(call, hold{kind: granted, id: id, token: token, run: fmt.Sprint("run ", id)})
	}
	free := func(call int64, id int) porcupine.Operation { return at(call, hold{kind: freed, id: id}) }
	busy := func(call int64, holder string) porcupine.Operation {
		return at(call, hold{kind: refused, holder: holder})
	}
	gone := func(call int64, id int) porcupine.Operation { return at(call, hold{kind: notHeld, id: id}) }
	ends := func(call int64, id int) porcupine.Operation {
		return porcupine.Operation{Input: hold{kind: mayEnd, key: "k", id: id}, Call: call, Return: forever}
	}
	for name, c := range map[string]struct {
		want bool
		ops  []porcupine.Operation
	}{
		"one after the other":            {true, []porcupine.Operation{got(1, 1, 5), free(3, 1), got(5, 2, 7), free(7, 2)}},
		"two at once":                    {false, []porcupine.Operation{got(1, 1, 5), got(3, 2, 7), free(5, 1), free(7, 2)}},
		"two at once, one for ever":      {false, []porcupine.Operation{got(1, 1, 5), got(3, 2, 7), free(5, 2)}},
		"a smaller token":                {false, []porcupine.Operation{got(1, 1, 5), free(3, 1), got(5, 2, 4), free(7, 2)}},
		"a token twice":                  {false, []porcupine.Operation{got(1, 1, 5), free(3, 1), got(5, 2, 5)}},
		"after a fault of its node":      {true, []porcupine.Operation{got(1, 1, 5), ends(3, 1), got(5, 2, 7), free(7, 2)}},
		"before any fault":               {false, []porcupine.Operation{got(1, 1, 5), got(3, 2, 7), ends(9, 1), free(7, 2)}},
		"freed though another holds":     {false, []porcupine.Operation{got(1, 1, 5), ends(2, 1), got(5, 2, 7), free(7, 1)}},
		"refused while free":             {false, []porcupine.Operation{got(1, 1, 5), free(3, 1), busy(5, "")}},
		"refused by the holder":          {true, []porcupine.Operation{got(1, 1, 5), busy(3, "run 1"), free(5, 1)}},
		"refused in the name of another": {false, []porcupine.Operation{got(1, 1, 5), busy(3, "run 2"), free(5, 1)}},
		"told of an end that was none":   {false, []porcupine.Operation{got(1, 1, 5), gone(3, 1), free(5, 1)}},
		"told of its end":                {true, []porcupine.Operation{got(1, 1, 5), ends(2, 1), gone(5, 1)}},
	} {
		if got := porcupine.CheckOperations(holdModel(), c.ops); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
