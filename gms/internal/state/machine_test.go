package state

import (
	"crypto/sha256"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

const testBase = 1_000_000

// rig drives a machine in tests, one command per entry unless said otherwise.
type rig struct {
	t       testing.TB
	m       *Machine
	changes []Change // of the last entry
}

// newRig is a formed group without members.
func newRig(t testing.TB) *rig {
	r := &rig{t: t, m: New()}
	r.ok(RunID{}, &wire.FormGroup{ClusterId: id16("group"), Base: testBase})
	return r
}

// id16 is 16 bytes that stand for a name.
func id16(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:16]
}

func runID(name string) RunID { return RunID(id16("run " + name)) }

// command wraps an operation; run is zero for the leader and operators.
func command(run RunID, op proto.Message) *wire.Command {
	c := &wire.Command{Run: run.Bytes()}
	fields := c.ProtoReflect().Descriptor().Oneofs().ByName("op").Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Message().FullName() == op.ProtoReflect().Descriptor().FullName() {
			c.ProtoReflect().Set(f, protoreflect.ValueOfMessage(op.ProtoReflect()))
			return c
		}
	}
	panic("no command has this operation")
}

func entry(commands ...*wire.Command) *wire.Entry {
	return &wire.Entry{Version: wire.Protocol, Commands: commands}
}

// apply applies one entry and checks the invariants.
func (r *rig) apply(commands ...*wire.Command) []*wire.Result {
	r.t.Helper()
	results, changes := r.m.Apply(r.m.Index()+1, entry(commands...))
	r.changes = changes
	if err := Invariants(r.m); err != nil {
		r.t.Fatalf("after index %d: %v", r.m.Index(), err)
	}
	return results
}

func (r *rig) do(run RunID, op proto.Message) *wire.Result {
	r.t.Helper()
	return r.apply(command(run, op))[0]
}

// ok demands that the command succeeds.
func (r *rig) ok(run RunID, op proto.Message) *wire.Result {
	r.t.Helper()
	return r.want(wire.Code_CODE_OK, run, op)
}

// want demands an answer, and that a refusal leaves the state as it was.
func (r *rig) want(code wire.Code, run RunID, op proto.Message) *wire.Result {
	r.t.Helper()
	was := r.content()
	result := r.do(run, op)
	if result.GetCode() != code {
		r.t.Fatalf("%T: got %v (%s), want %v", op, result.GetCode(), result.GetDetail(), code)
	}
	if code != wire.Code_CODE_OK && code != wire.Code_CODE_QUEUED {
		if r.content() != was {
			r.t.Fatalf("%T: refused with %v, but the state has changed", op, code)
		}
		if len(r.changes) > 0 {
			r.t.Fatalf("%T: refused with %v, but there are changes: %v", op, code, r.changes)
		}
	}
	return result
}

// content is the state without the index of the log, and without what clients were answered.
func (r *rig) content() string { return content(r.t, r.m, false) }

func content(t testing.TB, m *Machine, answers bool) string {
	t.Helper()
	s := m.Snapshot()
	s.Index = 0
	if !answers {
		s.Clients = nil
	}
	b, err := MarshalSnapshot(s)
	if err != nil {
		t.Fatalf("encode snapshot: %v", err)
	}
	return string(b)
}

// opening describes run name of a node, with components.
func opening(r *rig, node, name string, components ...string) *wire.OpenRun {
	known, _ := r.m.Node(node)
	open := &wire.OpenRun{
		Node: node, Run: runID(name).Bytes(), Home: id16("home " + node), NodeKey: keyOfNode(node),
		Role: wire.Role_ROLE_CORE, GossipAddr: "127.0.0.1:7946", ClusterAddr: "127.0.0.1:7947",
		PrevEpoch: known.GetLastEpoch(), Protocol: wire.Protocol,
	}
	for _, c := range components {
		open.Components = append(open.Components, &wire.Component{Name: c})
	}
	return open
}

func keyOfNode(node string) []byte {
	sum := sha256.Sum256([]byte("key " + node))
	return sum[:]
}

// open opens run name of a node. The node's name is the first letter: A1 is a run of A.
func (r *rig) open(name string, components ...string) RunID {
	r.t.Helper()
	r.ok(RunID{}, opening(r, name[:1], name, components...))
	return runID(name)
}

func closingOf(name string, how wire.Evidence) *wire.CloseRun {
	return &wire.CloseRun{Node: name[:1], Run: runID(name).Bytes(), Evidence: how, Detail: "test"}
}

func (r *rig) close(name string) *wire.Result {
	r.t.Helper()
	return r.ok(RunID{}, closingOf(name, wire.Evidence_EVIDENCE_REFUSED))
}

// recovery is that of a dead run; the test ends when there is none.
func (r *rig) recovery(component, dead string) *wire.Recovery {
	r.t.Helper()
	rec, ok := r.m.Recovery(component, runID(dead))
	if !ok {
		r.t.Fatalf("there is no recovery of %s in %s", dead, component)
	}
	return rec
}

func refOf(rec *wire.Recovery) *wire.RecoveryRef {
	return &wire.RecoveryRef{Component: rec.GetComponent(), Run: rec.GetRun(), Index: rec.GetIndex()}
}

func appointee(rec *wire.Recovery) RunID {
	id, _ := RunIDOf(rec.GetAppointee())
	return id
}

// acquire raises the fence as its appointee and returns what it proves.
func (r *rig) acquire(component, dead string) *wire.FenceHeld {
	r.t.Helper()
	rec := r.recovery(component, dead)
	result := r.ok(appointee(rec), &wire.Acquire{Recovery: refOf(rec)})
	return &wire.FenceHeld{Component: component, Node: rec.GetNode(), Run: rec.GetRun(), Token: result.GetToken()}
}

func (r *rig) release(component, dead string) {
	r.t.Helper()
	rec := r.recovery(component, dead)
	r.ok(appointee(rec), &wire.Release{Recovery: refOf(rec), Token: rec.GetToken()})
}

func (r *rig) claim(run RunID, item string) uint64 {
	r.t.Helper()
	return r.ok(run, &wire.Claim{Component: "backup", Item: item, RoundTrip: 1}).GetToken()
}

func (r *rig) claimed(item string) *wire.ClaimState {
	r.t.Helper()
	c, ok := r.m.Claim("backup", item)
	if !ok {
		r.t.Fatalf("nobody claims %s", item)
	}
	return c
}

// changeOf returns the only change of a type that the last entry made.
func changeOf[T Change](r *rig) T {
	r.t.Helper()
	var found []T
	for _, c := range r.changes {
		if v, ok := c.(T); ok {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		var zero T
		r.t.Fatalf("the entry made %d changes %T, want one: %v", len(found), zero, r.changes)
	}
	return found[0]
}
