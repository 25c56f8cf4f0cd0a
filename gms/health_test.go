package gms

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms/internal/gossip"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// FIELD.md R3: a voter whose index stands still while its contact is fresh is an alarm; one that moves, holds all, or is
// dead is none.
func TestAFollowerThatStandsStillIsAnAlarm(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	var s standstill
	for i := range 30 {
		s = s.look(at(i), 100+uint64(i), 90+uint64(i), []FollowerHealth{
			{Node: "stands", Match: 50, Contact: at(i)},
			{Node: "moves", Match: 50 + uint64(i), Contact: at(i)},
			{Node: "holds all", Match: 100 + uint64(i), Contact: at(i)},
			{Node: "dead", Match: 50, Contact: at(0)},
			{Node: "never heard of"},
			{Node: "applies nothing", Match: 100 + uint64(i), Applied: 40, Contact: at(i)},
			{Node: "applies", Match: 100 + uint64(i), Applied: 40 + uint64(i), Contact: at(i)},
			{Node: "applied all", Match: 100 + uint64(i), Applied: 90 + uint64(i), Contact: at(i)},
			{Node: "has not said", Match: 100 + uint64(i), Contact: at(i)},
			{Node: "died", Match: 100 + uint64(i), Applied: 40, Contact: at(0)},
		})
	}
	for node, want := range map[string]time.Duration{"applies nothing": 29 * time.Second, "applies": 0, "applied all": 0, "has not said": 0, "died": 0} {
		if got, other := s.idle(node, at(29)), s.of(node, at(29)); got != want || other != 0 {
			t.Errorf("%s has applied nothing for %v, want %v; and stands for %v", node, got, want, other)
		}
	}
	for node, want := range map[string]time.Duration{"stands": 29 * time.Second, "moves": 0, "holds all": 0, "dead": 0, "never heard of": 0} {
		if got := s.of(node, at(29)); got != want {
			t.Errorf("%s stands for %v, want %v", node, got, want)
		}
	}
	s = s.look(at(30), 200, 190, []FollowerHealth{{Node: "stands", Match: 51, Contact: at(30)}})
	if got := s.of("stands", at(31)); got != time.Second {
		t.Errorf("after it moved: %v", got)
	}
}

func TestAlarms(t *testing.T) {
	now := time.Unix(10000, 0)
	for what, h := range map[string]Health{
		"":                  {Followers: []FollowerHealth{{Node: "n2", Standing: standingTooLong}}, GossipWaiting: gossipTooFull, Unrecovered: now.Add(-unrecoveredFor)},
		"follower n2: ":     {Followers: []FollowerHealth{{Node: "n2", Standing: standingTooLong + 1}}},
		"follower n3: ":     {Followers: []FollowerHealth{{Node: "n2", Idle: 13 * time.Second}, {Node: "n3", Idle: 13*time.Second + 1}}, idleTooLong: 13 * time.Second},
		"gossip queue: ":    {GossipWaiting: gossipTooFull + 1},
		"gossip score: ":    {GossipScore: gossipTooSlow},
		"datagrams: ":       {StreamsOnly: []string{"n3"}},
		"recovery: one is ": {Unrecovered: now.Add(-unrecoveredFor - 1)},
	} {
		got := h.alarms(now)
		if what == "" && len(got) > 0 || what != "" && (len(got) != 1 || !strings.HasPrefix(got[0], what)) {
			t.Errorf("%q: %q", what, got)
		}
	}
	var h Health
	h.addGossip(gossip.Health{Waiting: 3, Blocked: map[string]time.Time{"n2/ab": now, "n2/cd": now, "n1/ef": now}})
	if h.GossipWaiting != 3 || strings.Join(h.StreamsOnly, " ") != "n1 n2" {
		t.Errorf("%+v", h)
	}
}

// FIELD.md L12: the age of the oldest failure that is not recovered is known to everybody, by the log's time.
func TestTheOldestUnrecoveredFailureIsKnown(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	if h := g.Health(); !h.Unrecovered.IsZero() {
		t.Errorf("with nothing to recover: %v", h.Unrecovered)
	}
	patient := openCommand(9, "n9", 0)
	patient.GetOpenRun().TtlMs = 60000
	g.must(patient)
	if h := g.Health(); h.idleTooLong != standingTooLong+time.Minute {
		t.Errorf("who renews each 20 s is idle after %v", h.idleTooLong)
	}
	closed := time.UnixMilli(1234567)
	g.applyAt(closed, closeCommand(2, "n2", wire.Evidence_EVIDENCE_OPERATOR))
	g.applyAt(closed.Add(time.Hour), closeCommand(3, "n3", wire.Evidence_EVIDENCE_OPERATOR))
	h := g.Health()
	if !h.Unrecovered.Equal(closed) || len(h.Alarms) != 1 {
		t.Errorf("unrecovered since %v, alarms %q", h.Unrecovered, h.Alarms)
	}
	g.rep.read(func(m *state.Machine) {
		if len(m.Recoveries()) < 2 {
			t.Error("the other one's is open too")
		}
	})
}
