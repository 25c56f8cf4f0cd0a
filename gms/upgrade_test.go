package gms

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// laterCommand is one that this build does not know.
func laterCommand() *wire.Command {
	c := &wire.Command{}
	c.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 5000, protowire.BytesType), "later"))
	return c
}

// No leader logs what came later than what the group writes, nor what was sent with it; entries say what the group writes.
func TestLaterCommandsAreNotLogged(t *testing.T) {
	log := &fakeLog{}
	b, _ := startBatcher(t, log)
	lock := &wire.Command{Op: &wire.Command_Lock{Lock: &wire.Lock{Name: "7"}}}
	results, _, err := b.submit(t.Context(), []*wire.Command{lock, laterCommand()})
	if err != nil || len(results) != 2 || results[0].GetCode() != wire.Code_CODE_UNKNOWN_COMMAND || results[1].GetCode() != wire.Code_CODE_UNKNOWN_COMMAND {
		t.Errorf("%v, %v", results, err)
	}
	if n := len(log.sizes()); n != 0 {
		t.Errorf("%d entries were logged", n)
	}
	if results, _, err := b.submit(t.Context(), []*wire.Command{lock}); err != nil || results[0].GetToken() != 7 {
		t.Errorf("%v, %v", results, err)
	}
	if v := log.entries[0].GetVersion(); v != firstProtocol() {
		t.Errorf("the entry is of version %d", v)
	}
}

// A replica whose group goes on to what this program does not read ends with one clear reason, applies nothing any more, and
// keeps no snapshot: what it has stays for the program that reads it.
func TestReplicaIsOutdated(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	good := g.snapshot()
	var why error
	g.rep.failed = func(err error) { why = err }
	entry := func(c *wire.Command, version uint32) []byte {
		data, err := proto.Marshal(&wire.Entry{Version: version, Commands: []*wire.Command{c}})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	position := g.rep.m.Position()
	g.rep.Apply(g.index+1, entry(closeCommand(1, "n1", wire.Evidence_EVIDENCE_LAPSED), Protocol+1))
	var hinted interface{ Hint() string }
	if !errors.Is(why, ErrProtocol) || !errors.As(why, &hinted) || hinted.Hint() == "" {
		t.Fatalf("%v", why)
	}
	g.rep.Apply(g.index+2, entry(closeCommand(1, "n1", wire.Evidence_EVIDENCE_LAPSED), Protocol))
	if g.rep.m.Position() != position {
		t.Error("an entry behind it was applied")
	}
	if _, err := g.rep.Snapshot(); err == nil {
		t.Error("a snapshot was kept")
	}

	s := &wire.Snapshot{}
	if err := proto.Unmarshal(good, s); err != nil {
		t.Fatal(err)
	}
	s.Version = Protocol + 1
	newer, err := proto.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	why = nil
	other := newLooseGroup(t)
	other.rep.failed = func(err error) { why = err }
	if err := other.rep.Restore(bytes.NewReader(newer)); err == nil || !errors.Is(why, ErrProtocol) {
		t.Errorf("a snapshot of a later protocol: %v, %v", err, why)
	}
}
