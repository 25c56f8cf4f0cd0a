package gms

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/gossip"
	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

func metaOf(n byte, node, cluster string) *wire.Meta {
	return &wire.Meta{
		Protocol: wire.Protocol, Node: node, Run: runOf(n).Bytes(), Home: append(make([]byte, 15), node[1]), ClusterId: []byte(cluster),
		ClusterAddr: node + ":7947",
	}
}

func TestFoundersAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		g.cfg.Bootstrap = []string{"n2", "n1", "n2", "n3"}
		g.peers.put(metaOf(1, "n1", ""), "", true)
		g.peers.put(metaOf(2, "n2", ""), "", true)
		type outcome struct {
			ids []string
			err error
		}
		done := make(chan outcome, 1)
		go func() {
			servers, err := g.awaitFounders(t.Context())
			var ids []string
			for _, s := range servers {
				ids = append(ids, s.ID)
			}
			done <- outcome{ids, err}
		}()
		pass(time.Minute)
		if len(done) != 0 {
			t.Fatal("did not wait for n3")
		}
		g.peers.put(metaOf(3, "n3", ""), "", true)
		o := <-done
		if o.err != nil || len(o.ids) != 3 || o.ids[0] != "n1/00000000000000000000000000000031" {
			t.Errorf("%v, %v", o.ids, o.err)
		}
	})
}

func TestAFormedGroupIsNotFormedAgain(t *testing.T) {
	g := newLooseGroup(t)
	g.cfg.Bootstrap = []string{"n1", "n2"}
	g.peers.put(metaOf(1, "n1", ""), "", true)
	g.peers.put(metaOf(2, "n2", "0123456789abcdef"), "", true)
	if _, err := g.awaitFounders(t.Context()); !errors.Is(err, errFormed) {
		t.Errorf("error %v", err)
	}
}

func TestFoundersWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		g.cfg.Bootstrap = []string{"n1", "n2"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.awaitFounders(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

func TestGossipAdmits(t *testing.T) {
	g := newLooseGroup(t)
	named := func(name string, m *wire.Meta) gossip.Member {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return gossip.Member{Name: name, Meta: data}
	}
	member := func(m *wire.Meta) gossip.Member {
		m.ClusterAddr = "127.0.0.1:7947"
		return named(m.GetNode()+"/"+hexID(m.GetRun()), m)
	}
	if err := g.admit(member(metaOf(9, "n9", "another cluster!"))); err != nil {
		t.Errorf("while unformed: %v", err)
	}
	g.settle()
	g.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED))
	own := string(make([]byte, 16))
	for name, c := range map[string]struct {
		m    gossip.Member
		want error
	}{
		"an open run":             {member(metaOf(3, "n3", own)), nil},
		"a newcomer":              {member(metaOf(9, "n9", "")), nil},
		"a closed run":            {member(metaOf(2, "n2", own)), ErrRunClosed},
		"one of another cluster":  {member(metaOf(9, "n9", "another cluster!")), ErrOtherGroup},
		"another's meta":          {named("n8/"+runOf(9).String(), metaOf(9, "n9", "")), errAny},
		"one without an address":  {named("n9/"+runOf(9).String(), metaOf(9, "n9", "")), errAny},
		"one without a run":       {member(&wire.Meta{Node: "n9"}), errAny},
		"one that cannot be read": {gossip.Member{Meta: []byte{0xff}}, errAny},
	} {
		err := g.admit(c.m)
		if c.want == errAny && err == nil || c.want != errAny && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var errAny = errors.New("any error")

func TestHomeIsJudged(t *testing.T) {
	const last = 100
	for name, c := range map[string]struct {
		reply *wire.HomePositionReply
		want  error
	}{
		"not known":                {&wire.HomePositionReply{}, nil},
		"as far as on record":      {&wire.HomePositionReply{Known: true, Index: last}, nil},
		"an older copy":            {&wire.HomePositionReply{Known: true, Index: last + 1}, ErrOlderHome},
		"another home":             {&wire.HomePositionReply{Known: true, OtherHome: true}, ErrOtherHome},
		"a copy of this home":      {&wire.HomePositionReply{Known: true, Index: last, Standing: true}, ErrNameTaken},
		"another home that stands": {&wire.HomePositionReply{Known: true, OtherHome: true, Standing: true}, ErrNameTaken},
	} {
		t.Run(name, func(t *testing.T) {
			g := newLooseGroup(t)
			if err := g.judgeHome(c.reply, last); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("error %v", err)
			}
			if !errors.Is(g.Err(), c.want) {
				t.Errorf("Err is %v", g.Err())
			}
		})
	}
}

func TestHomePositionOnRecord(t *testing.T) {
	g := newLooseGroup(t)
	dialer, err := rpc.NewDialer(rpc.DialerConfig{Network: g.cfg.Network, Identity: g.identity, Resolve: g.resolve, Logger: g.log})
	if err != nil {
		t.Fatal(err)
	}
	defer dialer.Stop()
	g.dialer = dialer // nobody answers where the run of n2 is said to be
	h := handler{g: g.Group}
	ask := func(node string, home []byte) *wire.HomePositionReply {
		ctx := rpc.WithPeer(t.Context(), rpc.Peer{Node: node})
		r, err := h.HomePosition(ctx, &wire.HomePositionRequest{Node: node, Home: home})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	home := append(make([]byte, 15), '2')
	if r := ask("n2", home); r.GetKnown() || len(r.GetClusterId()) != 0 {
		t.Errorf("a replica without state answers %v", r)
	}
	g.settle()
	g.must(&wire.Command{Op: &wire.Command_NotePositions{NotePositions: &wire.NotePositions{Positions: []*wire.HomePosition{{Node: "n2", Home: home, Index: 3}}}}})
	if r := ask("n2", home); !r.GetKnown() || r.GetIndex() != 3 || r.GetOtherHome() || r.GetStanding() || len(r.GetClusterId()) != 16 {
		t.Errorf("answer %v", r)
	}
	if r := ask("n2", make([]byte, 16)); !r.GetOtherHome() {
		t.Errorf("answer to another home %v", r)
	}
	if r := ask("n7", home); r.GetKnown() {
		t.Errorf("answer about a stranger %v", r)
	}
	g.must(&wire.Command{Op: &wire.Command_ReplaceHome{ReplaceHome: &wire.ReplaceHome{Node: "n2"}}})
	if r := ask("n2", make([]byte, 16)); r.GetOtherHome() || r.GetIndex() != 0 {
		t.Errorf("after the replacement %v", r)
	}
}

// Whoever stands under a known name with another home does not draw the connections that are meant for the rightful one.
func TestAddressesPreferTheHomeOnRecord(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	impostor := metaOf(8, "n2", "")
	impostor.Home, impostor.ClusterAddr = bytes.Repeat([]byte{7}, 16), "impostor:1"
	check := func(when, want string) {
		t.Helper()
		if a, err := g.resolve("n2"); err != nil || a != want {
			t.Errorf("%s: %q, %v", when, a, err)
		}
	}
	check("only the log knows it", "127.0.0.1:2")
	g.peers.put(impostor, "", true)
	g.peers.put(metaOf(2, "n2", ""), "", true)
	check("both are alive", "n2:7947")
	g.peers.gone(runOf(2))
	check("the rightful one is dead", "n2:7947")
	restarted := metaOf(9, "n2", "")
	restarted.ClusterAddr = "moved:1"
	g.peers.put(restarted, "", true)
	check("it came back elsewhere", "moved:1")
	if _, err := g.resolve("n7"); err == nil {
		t.Error("a stranger has an address")
	}
}

func TestPeersForgetWhatIsOver(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	for n, node := range map[byte]string{2: "n2", 3: "n3", 8: "n2", 9: "n9"} {
		g.peers.put(metaOf(n, node, ""), "", true)
	}
	g.peers.gone(runOf(3)) // open in the log: kept
	g.peers.gone(runOf(8)) // a run of n2 that never was opened
	g.peers.gone(runOf(9)) // of a node that the log does not know yet
	g.peers.forget(g.isOver)
	for n, want := range map[byte]bool{2: true, 3: true, 8: false, 9: true} {
		if _, ok := g.peers.runs[runOf(n)]; ok != want {
			t.Errorf("run %d kept: %v", n, ok)
		}
	}
	if !g.peers.dead(runOf(3)) || g.peers.dead(runOf(2)) || g.peers.dead(runOf(77)) {
		t.Error("dead and alive are mixed up")
	}
	g.peers.reset()
	if list, _ := g.peers.alive(); len(list) != 0 {
		t.Errorf("after reset: %v", list)
	}
}

// A witness says what it saw a moment ago, else what the run's host says now, and nothing where a refusal proves nothing. Nobody
// listens at the addresses of these runs; no host is known of the run 77.
func TestWitness(t *testing.T) {
	seen := func(n byte, ago time.Duration, s sighting) func(*looseGroup) {
		return func(g *looseGroup) {
			s.at = g.cfg.Clock.Now() - ago
			g.seen.runs = map[state.RunID]sighting{runOf(n): s}
		}
	}
	for name, c := range map[string]struct {
		run     byte
		set     func(*looseGroup)
		refused bool
	}{
		"never heard of":                {2, func(*looseGroup) {}, true},
		"no proof a moment ago":         {2, seen(2, 0, sighting{}), true},
		"refused a moment ago":          {77, seen(77, sightCounts/2, sighting{refused: true}), true},
		"refused long ago, unknown now": {77, seen(77, sightCounts, sighting{refused: true}), false},
		"refusals are switched off":     {2, func(g *looseGroup) { g.cfg.NoRefused = true }, false},
		"behind address translation":    {4, func(*looseGroup) {}, false},
	} {
		g := newLooseGroup(t)
		g.settle()
		behind := openCommand(4, "n4", 0)
		behind.GetOpenRun().OwnInterface = false
		g.must(behind)
		c.set(g)
		if r := g.witness(t.Context(), runOf(c.run)); r.GetRefused() != c.refused || r.GetAlive() {
			t.Errorf("%s: %v", name, r)
		}
	}
}

func TestALeaderIsPursuedOnce(t *testing.T) {
	var s sightings
	done, first := s.pursue(runOf(1))
	if _, again := s.pursue(runOf(1)); !first || again {
		t.Error("two searches for one run")
	}
	if _, other := s.pursue(runOf(2)); !other {
		t.Error("another run's search is held up")
	}
	done()
	if _, again := s.pursue(runOf(1)); !again {
		t.Error("no search after the first")
	}
}
