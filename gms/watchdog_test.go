package gms

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// A lie, a replay, a word for another, one of a member that is no watchdog, and one about nobody are refused; the view stays
// as it is, and nobody is suspected.
func TestReportsThatAreRefused(t *testing.T) {
	t.Parallel()
	tg := newTestGroup(t, 4)
	for _, name := range tg.names {
		tg.start(name, func(c *Config) {
			c.Bootstrap = []string{"n1", "n2", "n3"}
			if c.Node == "n4" {
				c.Role = signals.Watchdog
			}
		})
	}
	tg.awaitStanding(tg.names...)
	for _, name := range tg.names {
		n := tg.nodes[name]
		tg.await(n, "the whole view", func() bool { return len(n.View().Members) == 4 })
	}
	dog, n1 := tg.nodes["n4"], tg.nodes["n1"]
	before := n1.View().Version
	_, victim := tg.nodes["n2"].Self()
	if err := dog.AnnounceObservedFailure(tg.ctx, "n2", "", "it does not answer me"); !errors.Is(err, ErrAlive) {
		t.Errorf("a lie: %v", err)
	}
	if err := dog.AnnounceObservedFailure(tg.ctx, "n2", victim, strings.Repeat("x", maxReason+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a long reason: %v", err)
	}
	for _, c := range []struct{ node, run string }{{"nobody", ""}, {"n3", victim}, {"n2", strings.Repeat("ab", 16)}} {
		if err := dog.AnnounceObservedFailure(tg.ctx, c.node, c.run, ""); !errors.Is(err, ErrUnknownMember) {
			t.Errorf("of %q %q: %v", c.node, c.run, err)
		}
	}
	if err := n1.AnnounceObservedFailure(tg.ctx, "n2", "", ""); !errors.Is(err, ErrRole) {
		t.Errorf("of a core member: %v", err)
	}

	send := func(g *testNode, r *wire.ReportRequest) *wire.ReportReply {
		t.Helper()
		var reply *wire.ReportReply
		tg.await(g, "a leader's answer", func() bool {
			c, err := g.client(g.leaderHint())
			if err != nil {
				return false
			}
			reply, err = c.Report(tg.ctx, r)
			return err == nil && reply.GetOutcome() != wire.ReportReply_OUTCOME_UNDECIDED
		})
		return reply
	}
	runOf := func(n *testNode) []byte { return n.ownRun().Bytes() }
	report := func(by []byte, seq uint64) *wire.Report {
		return &wire.Report{ClusterId: dog.cluster(), By: by, Seq: seq, Run: runOf(tg.nodes["n2"])}
	}
	signed := func(key ed25519.PrivateKey, r *wire.Report) *wire.ReportRequest {
		data, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return &wire.ReportRequest{Report: data, Signature: ed25519.Sign(key, append([]byte(reportWord), data...))}
	}
	fresh := signed(dog.home.key, report(runOf(dog), 1000))
	if got := send(dog, fresh).GetOutcome(); got != wire.ReportReply_OUTCOME_ALIVE {
		t.Errorf("a new report of a living run: %v", got)
	}
	other := report(runOf(dog), 1002)
	other.ClusterId = []byte("another cluster!")
	for _, c := range []struct {
		why error
		r   *wire.ReportRequest
	}{
		{errSeenAlready, fresh},
		{errNotItsWord, signed(n1.home.key, report(runOf(dog), 1001))}, // n1 speaks for the watchdog
		{errNoWatchdog, signed(n1.home.key, report(runOf(n1), 1001))},
		{errNoReport, signed(dog.home.key, other)},
		{errNoReport, &wire.ReportRequest{Report: make([]byte, maxReport+1)}},
	} {
		if reply := send(tg.nodes["n3"], c.r); reply.GetOutcome() != wire.ReportReply_OUTCOME_REFUSED || reply.GetWhy() != c.why.Error() {
			t.Errorf("want %v: %v", c.why, reply)
		}
	}
	if err := n1.Sync(tg.ctx); err != nil {
		t.Fatal(err)
	}
	n1.rep.read(func(m *state.Machine) {
		for _, r := range m.Runs() {
			if r.Suspected || !r.IsOpen() {
				t.Errorf("%s is suspected or closed", r.Node())
			}
		}
	})
	if v := n1.View().Version; v != before {
		t.Errorf("view %d, before %d", v, before)
	}
	if _, err := dog.Claim(tg.ctx, "work", "item", 1); !errors.Is(err, ErrRole) {
		t.Errorf("a watchdog claims: %v", err)
	}
	if err := dog.AwaitRegistered(tg.ctx, "work"); !errors.Is(err, ErrRole) {
		t.Errorf("a watchdog waits for its components: %v", err)
	}
}
