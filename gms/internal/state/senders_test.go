package state

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Who may send each command: "own" for its own run only, "any" for everybody, "leader" for nobody but the leader itself.
// The names are the fields of wire.Command's oneof, all of them.
var sendersOf = map[string]string{
	"form_group": "leader", "suspect": "leader", "expire_lock": "leader", "note_positions": "leader", "audit": "leader",
	"lead": "leader", "note_quiesced": "leader", "move_appointment": "leader",
	"rebase": "any", "raise_protocol": "any", "change_settings": "any", "retry_recovery": "any", "drop_recovery": "any", "replace_home": "any",
	"forget_node": "any", "cache_txn": "any", "end_claim": "any",
	"open_run": "own", "close_run": "own", "set_ready": "own", "register_component": "own", "announce_group": "own",
	"lock": "own", "unlock": "own", "claim": "own", "adopt": "own", "raise_fence": "own", "lower_fence": "own",
	"acquire": "own", "release": "own", "fail_recovery": "own", "set_detail": "own",
}

// ops makes one empty command of each kind.
func ops() map[string]*wire.Command {
	all := map[string]*wire.Command{}
	fields := (&wire.Command{}).ProtoReflect().Descriptor().Oneofs().ByName("op").Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		c := &wire.Command{}
		c.ProtoReflect().Set(f, protoreflect.ValueOfMessage(c.ProtoReflect().NewField(f).Message()))
		all[string(f.Name())] = c
	}
	return all
}

// No command escapes the question who may send it.
func TestEveryCommandHasItsSenders(t *testing.T) {
	m := New()
	m.Apply(1, entry(command(RunID{}, &wire.FormGroup{ClusterId: id16("group"), Base: testBase})))
	a, b := runID("a1"), runID("b1")
	for n, id := range map[string]RunID{"A": a, "B": b} {
		results, _ := m.Apply(m.Index()+1, entry(command(id, openingOf(n, id))))
		if results[0].GetCode() != wire.Code_CODE_OK {
			t.Fatal(results)
		}
	}
	for name, c := range ops() {
		who, known := sendersOf[name]
		if !known {
			t.Errorf("%s: nobody has decided who may send it: see permitted", name)
			continue
		}
		switch name {
		case "open_run":
			c.GetOpenRun().Node = "A"
		case "close_run":
			c.GetCloseRun().Node, c.GetCloseRun().Evidence = "A", wire.Evidence_EVIDENCE_LEFT
		}
		of := func(run RunID, sender string, term uint64) bool {
			c := proto.CloneOf(c)
			c.Run, c.Sender, c.Term = run.Bytes(), sender, term
			return m.permitted(run, c)
		}
		if !of(a, "", 0) || !of(RunID{}, "", 7) {
			t.Errorf("%s: the leader itself may not", name)
		}
		if of(a, "A", 0) != (who != "leader") {
			t.Errorf("%s: of its own run it is permitted: %v", name, !(who != "leader"))
		}
		if of(a, "B", 0) || of(b, "A", 0) && name == "open_run" {
			t.Errorf("%s: one node speaks for another's run", name)
		}
		if of(RunID{}, "B", 0) != (who == "any") {
			t.Errorf("%s: without a run it is permitted: %v", name, who != "any")
		}
		if of(a, "A", 7) {
			t.Errorf("%s: a node speaks for a leader", name)
		}
	}
}

// What closes a run, and what moves an appointment, depends on who says it.
func TestEvidenceIsTheLeaders(t *testing.T) {
	m := New()
	closing := func(e wire.Evidence) bool {
		return m.permitted(RunID{}, &wire.Command{Sender: "A", Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{Node: "B", Evidence: e}}})
	}
	for e := range wire.Evidence_name {
		if got, want := closing(wire.Evidence(e)), wire.Evidence(e) == wire.Evidence_EVIDENCE_OPERATOR; got != want {
			t.Errorf("a node closes another's run as %v: %v", wire.Evidence(e), got)
		}
	}
	move := func(force bool) bool {
		return m.permitted(RunID{}, &wire.Command{Sender: "A", Op: &wire.Command_MoveAppointment{MoveAppointment: &wire.MoveAppointment{Force: force}}})
	}
	if move(false) || !move(true) {
		t.Error("an appointment is moved by a node's word, or not by an operator's")
	}
}

// A refused command changes nothing, and says so.
func TestForbiddenIsRefused(t *testing.T) {
	m := New()
	m.Apply(1, entry(command(RunID{}, &wire.FormGroup{ClusterId: id16("group"), Base: testBase})))
	c := command(runID("a1"), openingOf("A", runID("a1")))
	c.Sender = "B"
	results, changes := m.Apply(2, entry(c))
	if results[0].GetCode() != wire.Code_CODE_FORBIDDEN || len(changes) != 0 || len(m.Runs()) != 0 {
		t.Errorf("%v, %v", results, changes)
	}
	c.Sender = "A"
	if results, _ := m.Apply(3, entry(c)); results[0].GetCode() != wire.Code_CODE_OK {
		t.Errorf("%v", results)
	}
}

func openingOf(node string, run RunID) *wire.OpenRun {
	return &wire.OpenRun{Node: node, Run: run.Bytes(), Home: id16("home " + node), NodeKey: make([]byte, keySize), Role: wire.Role_ROLE_CORE}
}
