package state

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// world draws commands that a group of few nodes, components and items could send: sensible ones, and late, repeated,
// mistaken and malformed ones.
type world struct {
	m    *Machine
	runs []RunID // every run that was ever drawn
	refs []*wire.RecoveryRef
	held []*wire.FenceHeld
	sent []*wire.Command
	seq  map[string]uint64
}

var (
	worldNodes      = []string{"A", "B", "C", "D"}
	worldComponents = []string{"backup", "verify"}
	worldItems      = []string{"one", "two", "three"}
	worldLocks      = []string{"l1", "l2"}
)

func newWorld() *world {
	w := &world{m: New(), seq: map[string]uint64{}}
	w.m.Apply(1, entry(command(RunID{}, &wire.FormGroup{ClusterId: id16("group"), Base: testBase})))
	return w
}

func pick[T any](t *rapid.T, what string, list []T) T { return rapid.SampledFrom(list).Draw(t, what) }

// chance is true once in n.
func chance(t *rapid.T, what string, n int) bool { return rapid.IntRange(1, n).Draw(t, what) == 1 }

// remember keeps what is shown now, for commands that will come late.
func (w *world) remember() {
	for _, r := range w.m.Recoveries() {
		if !active(r) {
			continue
		}
		w.refs = append(w.refs, refOf(r))
		w.held = append(w.held, &wire.FenceHeld{Component: r.GetComponent(), Node: r.GetNode(), Run: r.GetRun(), Token: r.GetToken()})
	}
	w.refs, w.held = w.refs[max(0, len(w.refs)-20):], w.held[max(0, len(w.held)-20):]
}

func (w *world) run(t *rapid.T) RunID {
	if open := w.m.runs.open; len(open) > 0 && !chance(t, "any run", 6) {
		return pick(t, "open run", open)
	}
	if len(w.runs) == 0 {
		return runID("nobody")
	}
	return pick(t, "run", w.runs)
}

// draw makes the next command: mostly of the present, sometimes one that was sent before.
func (w *world) draw(t *rapid.T) *wire.Command {
	if len(w.sent) > 0 && chance(t, "repeat", 8) {
		return pick(t, "sent", w.sent)
	}
	run, op := w.operation(t)
	c := command(run, op)
	if chance(t, "malformed", 40) {
		c.Run = []byte("short")
	}
	if chance(t, "with number", 2) {
		client := fmt.Sprintf("client %v", run)
		w.seq[client]++
		c.Client, c.Seq = id16(client), w.seq[client]
		c.Acked = rapid.Uint64Range(0, c.Seq-1).Draw(t, "acked")
	}
	w.sent = append(w.sent, proto.CloneOf(c))
	return c
}

func (w *world) operation(t *rapid.T) (RunID, proto.Message) {
	kinds := []func(*rapid.T) (RunID, proto.Message){
		w.opening, w.closing, w.claiming, w.claiming, w.recovering, w.recovering, w.recovering, w.locking, w.caching, w.operating,
	}
	return pick(t, "kind", kinds)(t)
}

func (w *world) opening(t *rapid.T) (RunID, proto.Message) {
	node := pick(t, "node", worldNodes)
	r := &rig{m: w.m}
	open := opening(r, node, fmt.Sprint(node, len(w.runs)))
	for _, name := range worldComponents {
		if !chance(t, "without "+name, 4) {
			open.Components = append(open.Components, &wire.Component{Name: name})
		}
	}
	if chance(t, "spectator", 8) {
		open.Role = wire.Role_ROLE_SPECTATOR
	}
	if chance(t, "watchdog", 12) {
		open.Role, open.Components = wire.Role_ROLE_WATCHDOG, nil
	}
	if chance(t, "other home", 10) {
		open.Home = id16("other home")
	}
	if chance(t, "host order", 3) {
		open.Orders = []*wire.CandidateOrder{{Component: "backup", Runs: [][]byte{w.run(t).Bytes()}}}
	}
	if chance(t, "late", 8) {
		open.PrevEpoch = rapid.Uint64Range(0, w.m.Position()).Draw(t, "epoch")
	}
	id, _ := RunIDOf(open.GetRun())
	w.runs = append(w.runs, id)
	return RunID{}, open
}

func (w *world) closing(t *rapid.T) (RunID, proto.Message) {
	id := w.run(t)
	if chance(t, "quiesced", 4) {
		return RunID{}, &wire.NoteQuiesced{Run: id.Bytes()}
	}
	c := &wire.CloseRun{
		Node: w.m.runs.all[id].Node(), Run: id.Bytes(), Evidence: wire.Evidence(rapid.IntRange(1, 6).Draw(t, "evidence")),
	}
	if c.Evidence == wire.Evidence_EVIDENCE_LEFT {
		c.Settled = []string{pick(t, "settled", worldComponents)}
		return id, c
	}
	if chance(t, "host order", 3) {
		c.Orders = []*wire.CandidateOrder{{Component: "backup", Runs: [][]byte{w.run(t).Bytes(), w.run(t).Bytes()}}}
	}
	return RunID{}, c
}

func (w *world) claiming(t *rapid.T) (RunID, proto.Message) {
	run, component, item := w.run(t), pick(t, "component", worldComponents), pick(t, "item", worldItems)
	held, ok := w.m.Claim(component, item)
	if !ok || chance(t, "claim", 6) {
		return run, &wire.Claim{Component: component, Item: item, RoundTrip: 1}
	}
	if !chance(t, "not the holder", 4) {
		run, _ = RunIDOf(held.GetRun())
	}
	return run, &wire.EndClaim{
		Component: component, Item: item, Token: held.GetToken() - uint64(rapid.IntRange(0, 9).Draw(t, "old token")/9),
		How: wire.EndClaim_How(rapid.IntRange(0, 4).Draw(t, "how")),
	}
}

// recovering acts for an appointment: the present one as its appointee, or a late one.
func (w *world) recovering(t *rapid.T) (RunID, proto.Message) {
	if len(w.refs) == 0 {
		return RunID{}, &wire.RetryRecovery{Component: "backup", Run: w.run(t).Bytes()}
	}
	at := len(w.refs) - 1 - rapid.IntRange(0, min(3, len(w.refs)-1)).Draw(t, "late appointment")
	ref, held := w.refs[at], w.held[at]
	dead, _ := RunIDOf(ref.GetRun())
	run := w.run(t)
	if r, ok := w.m.Recovery(ref.GetComponent(), dead); ok && !chance(t, "not the appointee", 5) {
		run = appointee(r)
	}
	switch rapid.IntRange(0, 7).Draw(t, "recovery") {
	case 0, 1:
		return run, &wire.Acquire{Recovery: ref}
	case 2:
		return run, &wire.Release{Recovery: ref, Token: held.GetToken()}
	case 3:
		return run, &wire.FailRecovery{Recovery: ref, Unavailable: chance(t, "unavailable", 2)}
	case 4:
		return RunID{}, &wire.MoveAppointment{Recovery: ref}
	case 5, 6:
		return run, w.settling(t, held)
	default:
		if chance(t, "drop", 2) {
			return RunID{}, &wire.DropRecovery{Component: ref.GetComponent(), Run: ref.GetRun()}
		}
		return RunID{}, &wire.RetryRecovery{Component: ref.GetComponent(), Run: ref.GetRun()}
	}
}

func (w *world) settling(t *rapid.T, held *wire.FenceHeld) proto.Message {
	item := pick(t, "item", worldItems)
	if chance(t, "adopt", 2) {
		return &wire.Adopt{Component: held.GetComponent(), Item: item, Fence: held}
	}
	c, _ := w.m.Claim(held.GetComponent(), item)
	how := wire.EndClaim_How(rapid.IntRange(1, 4).Draw(t, "how"))
	return &wire.EndClaim{Component: held.GetComponent(), Item: item, Token: c.GetToken(), How: how, Fence: held}
}

func (w *world) locking(t *rapid.T) (RunID, proto.Message) {
	run, name := w.run(t), pick(t, "lock", worldLocks)
	held, ok := w.m.Lock(name)
	switch rapid.IntRange(0, 4).Draw(t, "locking") {
	case 0, 1:
		return run, &wire.Lock{Name: name, Wait: chance(t, "wait", 2)}
	case 2:
		return run, &wire.Unlock{Name: name}
	case 3:
		return RunID{}, &wire.ExpireLock{Name: name, Token: held.GetToken()}
	default:
		if ok {
			run, _ = RunIDOf(held.GetRun())
		}
		return run, &wire.Unlock{Name: name, Token: held.GetToken()}
	}
}

func (w *world) caching(t *rapid.T) (RunID, proto.Message) {
	run := w.run(t)
	txn := &wire.CacheTxn{}
	if chance(t, "guard", 2) {
		txn.Conditions = append(txn.Conditions, versionIs(pick(t, "guarded", worldItems), uint64(rapid.IntRange(0, 2).Draw(t, "version"))*testBase))
	}
	if chance(t, "run", 2) {
		txn.Conditions = append(txn.Conditions, &wire.Condition{Kind: &wire.Condition_RunOpen{RunOpen: w.run(t).Bytes()}})
	}
	if chance(t, "put", 2) {
		p := put(pick(t, "key", worldItems), "value")
		p.Bound = chance(t, "bound", 2)
		txn.Puts = append(txn.Puts, p)
	} else {
		txn.Deletes = append(txn.Deletes, ck(pick(t, "key", worldItems)))
	}
	return run, txn
}

func (w *world) operating(t *rapid.T) (RunID, proto.Message) {
	run, node, component := w.run(t), pick(t, "node", worldNodes), pick(t, "component", worldComponents)
	switch rapid.IntRange(0, 12).Draw(t, "operating") {
	case 0:
		return RunID{}, &wire.Suspect{Run: run.Bytes(), Withdrawn: chance(t, "withdrawn", 2)}
	case 1:
		return run, &wire.SetReady{Ready: true}
	case 2:
		return run, &wire.RegisterComponent{Component: &wire.Component{Name: component}}
	case 3:
		return run, &wire.RaiseFence{Component: component, Node: node}
	case 4:
		for _, f := range w.m.Maintenance() {
			run, _ = RunIDOf(f.GetRun())
			return run, &wire.LowerFence{Component: f.GetComponent(), Node: f.GetNode(), Token: f.GetToken()}
		}
		return run, &wire.LowerFence{Component: component, Node: node}
	case 5:
		return RunID{}, &wire.ReplaceHome{Node: node}
	case 6:
		return RunID{}, &wire.ForgetNode{Node: node, Burn: chance(t, "burn", 8)}
	case 7:
		return RunID{}, &wire.NotePositions{Positions: []*wire.HomePosition{{Node: node, Home: id16("home " + node), Index: w.m.Index() - 1}}}
	case 8:
		return run, &wire.AnnounceGroup{
			Kind:  wire.AnnounceGroup_Kind(rapid.IntRange(0, 2).Draw(t, "announced")),
			Phase: wire.AnnounceGroup_Phase(rapid.IntRange(0, 3).Draw(t, "phase")),
		}
	case 9:
		return RunID{}, &wire.Lead{Node: node, Term: rapid.Uint64Range(0, 9).Draw(t, "term")}
	case 10:
		if chance(t, "detail", 2) {
			return run, &wire.SetDetail{Key: pick(t, "detail key", worldItems), Value: []byte{1}}
		}
		return run, &wire.SetReady{Ready: false}
	case 11:
		return RunID{}, &wire.Rebase{Base: w.m.Position() - 5 + uint64(rapid.IntRange(0, 100).Draw(t, "base"))}
	default:
		return RunID{}, &wire.ChangeSettings{Settings: &wire.Settings{
			Selector: wire.Selector(rapid.IntRange(0, 2).Draw(t, "selector")), MaxAttempts: uint32(rapid.IntRange(0, 4).Draw(t, "attempts")),
		}}
	}
}
