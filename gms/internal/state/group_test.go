package state

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestNothingHappensBeforeTheGroupIsFormed(t *testing.T) {
	r := &rig{t: t, m: New()}
	a := runID("A1")
	for run, ops := range map[RunID][]proto.Message{
		{}: {opening(r, "A", "A1"), &wire.Rebase{Base: 5}, &wire.Audit{}, &wire.ChangeSettings{Settings: &wire.Settings{}}},
		a:  {&wire.Claim{Component: "c", Item: "i"}, &wire.Lock{Name: "l"}, &wire.CacheTxn{}},
	} {
		for _, op := range ops {
			r.want(wire.Code_CODE_NOT_FORMED, run, op)
		}
	}
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.FormGroup{ClusterId: []byte("short")})
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.FormGroup{ClusterId: id16("g"), Base: wire.MaxToken - 1})
	if r.m.Formed() || r.m.ClusterID() != nil || r.m.Position() != r.m.Index() {
		t.Error("a group that is not formed has content")
	}
}

func TestFormGroupOnce(t *testing.T) {
	r := newRig(t)
	if got := changeOf[GroupFormed](r); got.Base != testBase || string(got.ClusterID) != string(id16("group")) {
		t.Errorf("forming shows as %+v", got)
	}
	if r.m.Base() != testBase || r.m.Position() != testBase+1 || r.m.Counter() != testBase {
		t.Errorf("base %d, position %d, counter %d", r.m.Base(), r.m.Position(), r.m.Counter())
	}
	r.want(wire.Code_CODE_NO_CHANGE, RunID{}, &wire.FormGroup{ClusterId: id16("group"), Base: 5})
	r.want(wire.Code_CODE_STALE, RunID{}, &wire.FormGroup{ClusterId: id16("other"), Base: 2 * testBase})
}

func TestNumbersNeverGoBack(t *testing.T) {
	r := newRig(t)
	a := r.open("A1")
	last := r.claim(a, "one")
	if last <= testBase {
		t.Fatalf("the first token is %d, not above the base", last)
	}
	for _, base := range []uint64{0, testBase, r.m.Position() - 1} {
		r.want(wire.Code_CODE_STALE, RunID{}, &wire.Rebase{Base: base})
	}
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.Rebase{Base: wire.MaxToken})
	position := r.m.Position()
	r.ok(RunID{}, &wire.Rebase{Base: 5 * testBase, Reason: "a resource is ahead"})
	if changeOf[Rebased](r).Base != 5*testBase || r.m.Position() <= position {
		t.Errorf("the new base shows as %+v, position %d", r.changes, r.m.Position())
	}
	if token := r.claim(a, "two"); token <= 5*testBase {
		t.Errorf("token %d after a rebase to %d", token, 5*testBase)
	}
	var many []*wire.Command // the grants of one entry can outrun the positions
	for i := range 100 {
		many = append(many, command(a, &wire.Claim{Component: "backup", Item: fmt.Sprint(i)}))
	}
	r.apply(many...)
	if r.m.Counter()-1 <= r.m.Position() {
		t.Fatalf("counter %d has not outrun position %d", r.m.Counter(), r.m.Position())
	}
	r.want(wire.Code_CODE_STALE, RunID{}, &wire.Rebase{Base: r.m.Counter() - 1})
	r.ok(RunID{}, &wire.Rebase{Base: r.m.Counter()})
}

func TestSettings(t *testing.T) {
	r := newRig(t)
	s := &wire.Settings{Selector: wire.Selector_SELECTOR_SUCCESSOR, MaxAttempts: 5}
	r.ok(RunID{}, &wire.ChangeSettings{Settings: s})
	if !proto.Equal(changeOf[SettingsChanged](r).Settings, s) || !proto.Equal(r.m.Settings(), s) {
		t.Errorf("settings are %v", r.m.Settings())
	}
	r.want(wire.Code_CODE_NO_CHANGE, RunID{}, &wire.ChangeSettings{Settings: s})
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.ChangeSettings{})
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.ChangeSettings{Settings: &wire.Settings{MaxAttempts: 1001}})
}

func TestEntriesOfOtherVersionsAndPlaces(t *testing.T) {
	r := newRig(t)
	c := command(RunID{}, opening(r, "A", "A1"))
	was := r.content()
	results, changes := r.m.Apply(r.m.Index()+1, &wire.Entry{Version: wire.Protocol + 1, Commands: []*wire.Command{c, c}})
	if len(results) != 2 || results[1].GetCode() != wire.Code_CODE_UNKNOWN_COMMAND || len(changes) > 0 || r.content() != was || r.m.Beyond() == nil {
		t.Errorf("an entry of a newer version: %v, %v", results, changes)
	}
	if results, _ := r.m.Apply(r.m.Index()+1, entry(c)); results[0].GetCode() != wire.Code_CODE_UNKNOWN_COMMAND || r.content() != was {
		t.Errorf("an entry behind one that is not read: %v", results)
	}
	r = newRig(t)
	index := r.m.Index()
	results, _ = r.m.Apply(index, entry(c))
	if results[0].GetCode() != wire.Code_CODE_STALE || r.m.Index() != index || r.content() != was {
		t.Errorf("an entry that was applied already: %v", results)
	}
	if got := r.apply(&wire.Command{})[0]; got.GetCode() != wire.Code_CODE_UNKNOWN_COMMAND {
		t.Errorf("a command without operation: %v", got)
	}
	if results, changes := r.m.Apply(index+100, entry()); len(results) > 0 || len(changes) > 0 || r.m.Index() != index+100 {
		t.Error("an empty entry only moves the index")
	}
}

func TestEnvelopesAreChecked(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]*wire.Command{
		"short run":      {Run: []byte("short")},
		"zero run":       {Run: make([]byte, 16)},
		"short client":   {Client: []byte("short"), Seq: 1},
		"no sequence":    {Client: id16("c")},
		"acks the reply": {Client: id16("c"), Seq: 1, Acked: 1},
	} {
		c.Op = &wire.Command_Audit{Audit: &wire.Audit{}}
		if got := r.apply(c)[0]; got.GetCode() != wire.Code_CODE_INVALID {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAudit(t *testing.T) {
	r, other := newRig(t), newRig(t)
	r.ok(RunID{}, &wire.Audit{})
	mark := changeOf[AuditMarked](r)
	if mark.Hash != r.m.Hash() || mark.Position != r.m.Position() {
		t.Fatalf("the mark is %+v", mark)
	}
	audit := &wire.Audit{Position: mark.Position, Hash: mark.Hash[:]}
	r.ok(RunID{}, audit)
	if len(r.changes) > 0 {
		t.Errorf("the same hash gives %v", r.changes)
	}
	other.ok(RunID{}, audit) // not known here: nothing to compare
	if len(other.changes) > 0 {
		t.Errorf("an unknown position gives %v", other.changes)
	}
	audit.Hash = make([]byte, 32)
	r.ok(RunID{}, audit)
	if got := changeOf[AuditMismatch](r); got.Mine != mark.Hash || got.Want != [32]byte{} || got.Position != mark.Position {
		t.Errorf("another hash gives %+v", got)
	}
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.Audit{Hash: []byte("short")})
	for range 2 * maxAudits {
		r.ok(RunID{}, &wire.Audit{})
	}
	if len(r.m.audits) != maxAudits {
		t.Errorf("%d marks are kept", len(r.m.audits))
	}
}
