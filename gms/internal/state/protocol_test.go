package state

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// strange gives a message a field that nobody knows.
func strange[M proto.Message](m M) M {
	m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 777, protowire.VarintType), 1))
	return m
}

// What came later than what the group writes is refused without a trace, wherever in a command it is: not even its answer is
// kept, since those who know it and those who do not must have the same state.
func TestLaterThingsLeaveNoTrace(t *testing.T) {
	r := newRig(t)
	a := r.open("A1", "c")
	put := func() *wire.CachePut {
		return &wire.CachePut{Key: &wire.CacheKey{Component: "c", Key: "k"}, Value: []byte("v")}
	}
	lock := &wire.Lock{Name: "l"}
	for name, c := range map[string]*wire.Command{
		"the command itself":    strange(&wire.Command{Run: a.Bytes()}),
		"beside a known one":    strange(command(a, lock)),
		"in a known one":        command(a, strange(proto.CloneOf(lock))),
		"deep below it":         command(a, &wire.CacheTxn{Puts: []*wire.CachePut{put(), strange(put())}}),
		"in a oneof below":      command(a, &wire.CacheTxn{Conditions: []*wire.Condition{{Kind: &wire.Condition_ClaimHeld{ClaimHeld: strange(&wire.ClaimHeld{})}}}}),
		"a value of a known":    command(RunID{}, &wire.CloseRun{Node: "A", Run: a.Bytes(), Evidence: 99}),
		"a description of runs": command(RunID{}, strange(opening(r, "B", "B1"))),
	} {
		c.Client, c.Seq = id16("client "+name), 1
		was := content(t, r.m, true)
		if got := r.apply(c)[0]; got.GetCode() != wire.Code_CODE_UNKNOWN_COMMAND {
			t.Errorf("%s: %v", name, got)
		}
		if content(t, r.m, true) != was || len(r.changes) > 0 {
			t.Errorf("%s: it has left a trace: %v", name, r.changes)
		}
	}
}

// A group writes the next protocol when every open run reads it, one step at a time, and never an earlier one again; then who
// does not read it is refused.
func TestProtocolIsRaised(t *testing.T) {
	r := newRig(t)
	next := r.m.Protocol() + 1
	with := func(name string, protocol uint32) *wire.OpenRun {
		open := opening(r, name[:1], name)
		open.Protocol = protocol
		return open
	}
	r.ok(RunID{}, with("A1", next))
	r.ok(RunID{}, with("B1", next-1))
	r.want(wire.Code_CODE_PROTOCOL, RunID{}, with("C1", next+1))
	r.want(wire.Code_CODE_NO_CHANGE, RunID{}, &wire.RaiseProtocol{Protocol: next - 1})
	r.want(wire.Code_CODE_STALE, RunID{}, &wire.RaiseProtocol{Protocol: next - 2})
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.RaiseProtocol{Protocol: next + 1})
	if got := r.want(wire.Code_CODE_BUSY, RunID{}, &wire.RaiseProtocol{Protocol: next}); string(got.GetHolder()) != string(runID("B1").Bytes()) {
		t.Errorf("who is in the way: %v", got)
	}
	r.ok(RunID{}, with("B2", next))
	if next > wire.Protocol {
		return // this build's way ends here: TestBeyond
	}
	r.ok(RunID{}, &wire.RaiseProtocol{Protocol: next})
	if r.m.Protocol() != next || r.m.Snapshot().GetVersion() != next {
		t.Errorf("the group writes %d, its snapshots are of %d", r.m.Protocol(), r.m.Snapshot().GetVersion())
	}
	r.want(wire.Code_CODE_PROTOCOL, RunID{}, with("C1", next-1))
}

// From the entry on that takes the group beyond what this build reads nothing is applied: what is understood of later ones is
// not what they mean.
func TestBeyond(t *testing.T) {
	for name, leave := range map[string]*wire.Entry{
		"by its own word":  entry(command(RunID{}, &wire.RaiseProtocol{Protocol: wire.Protocol + 1})),
		"by later entries": {Version: wire.Protocol + 1, Commands: []*wire.Command{command(RunID{}, &wire.RaiseProtocol{Protocol: wire.Protocol + 1})}},
	} {
		r := newRig(t)
		for p := uint32(2); p <= wire.Protocol; p++ {
			r.ok(RunID{}, &wire.RaiseProtocol{Protocol: p})
		}
		if r.m.Beyond() != nil {
			t.Fatalf("%s: %v", name, r.m.Beyond())
		}
		r.m.Apply(r.m.Index()+1, leave)
		var newer ProtocolError
		if !errors.As(r.m.Beyond(), &newer) || newer.Protocol != wire.Protocol+1 {
			t.Errorf("%s: %v", name, r.m.Beyond())
		}
		index, was := r.m.Index(), r.content()
		results, changes := r.m.Apply(index+1, entry(command(RunID{}, opening(r, "A", "A1"))))
		if r.m.Index() != index || r.content() != was || len(changes) > 0 || slices.ContainsFunc(results, func(x *wire.Result) bool { return x.GetCode() != wire.Code_CODE_UNKNOWN_COMMAND }) {
			t.Errorf("%s: an entry was applied: %v", name, results)
		}
	}
}

// A group is formed with the protocol that its first leader names; who does not read it applies nothing.
func TestFormedWithAProtocol(t *testing.T) {
	m := New()
	m.Apply(1, entry(command(RunID{}, &wire.FormGroup{ClusterId: id16("group"), Protocol: wire.Protocol + 1})))
	if m.Beyond() == nil {
		t.Error("a group of a later protocol was formed here")
	}
	m = New()
	results, _ := m.Apply(1, entry(command(RunID{}, &wire.FormGroup{ClusterId: id16("group"), Protocol: maxProtocol + 1})))
	if results[0].GetCode() != wire.Code_CODE_INVALID || m.Beyond() != nil {
		t.Errorf("a protocol that there cannot be: %v, %v", results[0], m.Beyond())
	}
}
