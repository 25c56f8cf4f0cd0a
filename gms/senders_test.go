package gms

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// impostor is a member of the group, for itself proven, that speaks for another node's run; its calls must all fail.
type impostor struct {
	client wire.ClusterClient
	run    []byte // of the victim
	victim string
	home   []byte
}

// ownVoices tries each call that speaks in its sender's name, for the victim. Each says what it was answered with; an
// empty answer is a refusal.
func ownVoices() map[string]func(context.Context, impostor) string {
	return map[string]func(context.Context, impostor) string{
		"Submit": func(ctx context.Context, x impostor) string {
			r, err := x.client.Submit(ctx, &wire.SubmitRequest{Commands: []*wire.Command{
				{Run: x.run, Sender: x.victim, Op: &wire.Command_Lock{Lock: &wire.Lock{Name: "l"}}},
				{Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{Node: x.victim, Run: x.run, Evidence: wire.Evidence_EVIDENCE_LAPSED}}},
				{Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{Node: x.victim, Run: x.run, Evidence: wire.Evidence_EVIDENCE_LEFT}}},
				{Term: 1 << 40, Op: &wire.Command_Suspect{Suspect: &wire.Suspect{Run: x.run}}},
			}})
			for _, one := range r.GetResults() {
				if one.GetCode() != wire.Code_CODE_FORBIDDEN {
					return one.String()
				}
			}
			return said(err != nil || len(r.GetResults()) != 4, r)
		},
		"Session": func(ctx context.Context, x impostor) string {
			s, err := x.client.Session(ctx)
			if err != nil {
				return ""
			}
			if err := s.Send(&wire.SessionUp{Msg: &wire.SessionUp_Renewal{Renewal: &wire.Renewal{Run: x.run, Seq: 1 << 40}}}); err != nil {
				return ""
			}
			m, err := s.Recv()
			return said(err == nil, m)
		},
		"Tell": func(ctx context.Context, x impostor) string {
			r, err := x.client.Tell(ctx, &wire.TellRequest{From: x.run, To: x.run, Component: "c", Seq: 1})
			return said(err == nil && r.GetOutcome() != wire.TellReply_OUTCOME_NOT_MEMBER, r)
		},
		"HomePosition": func(ctx context.Context, x impostor) string {
			r, err := x.client.HomePosition(ctx, &wire.HomePositionRequest{Node: x.victim, Home: x.home})
			return said(err == nil, r)
		},
		"Announce": func(ctx context.Context, x impostor) string {
			forged := append([]byte(obituaryMagic), obituaryDied)
			forged = append(append(forged, x.run...), make([]byte, 24)...)
			forged = append(append(forged, byte(len(x.victim))), x.victim...)
			r, err := x.client.Announce(ctx, &wire.AnnounceRequest{Obituary: append(forged, make([]byte, 64)...)})
			return said(err == nil && r.GetTaken(), r)
		},
		"Report": func(ctx context.Context, x impostor) string {
			encoded, _ := proto.Marshal(&wire.Report{By: x.run, Seq: 1, Run: x.run})
			r, err := x.client.Report(ctx, &wire.ReportRequest{Report: encoded, Signature: make([]byte, 64), PassedOn: true})
			return said(err == nil && r.GetOutcome() != wire.ReportReply_OUTCOME_REFUSED, r)
		},
		"Renew": func(ctx context.Context, x impostor) string {
			encoded, _ := proto.Marshal(&wire.Renewal{Run: x.run, Seq: 1 << 40})
			for _, signature := range [][]byte{nil, make([]byte, 64)} {
				r, err := x.client.Renew(ctx, &wire.RenewRequest{Renewal: encoded, Signature: signature, PassedOn: true})
				if err == nil {
					return r.String()
				}
			}
			return ""
		},
	}
}

func said(yes bool, m proto.Message) string {
	if !yes {
		return ""
	}
	return string(m.ProtoReflect().Descriptor().Name()) + " " + strings.TrimSpace(prototext.Format(m))
}

// No certificate of the group speaks for another node: whatever call there is, it was decided in whose name it speaks, and
// one in another's name is refused.
func TestNobodySpeaksForAnother(t *testing.T) {
	tg := newTestGroup(t, 2)
	tg.start("n1")
	tg.start("n2")
	tg.awaitStanding("n1", "n2")
	leader, others := tg.leaderAmong("n1", "n2")
	victim := tg.nodes[others[0]].Group
	_, run := victim.Self()
	id, err := parseRun(run)
	if err != nil {
		t.Fatal(err)
	}
	at := tg.nodes[leader].Group
	d, err := rpc.NewDialer(rpc.DialerConfig{
		Network: SystemNetwork{}, Resolve: func(string) (string, error) { return at.clusterAddr, nil },
		Identity: func() rpc.Identity {
			return rpc.Identity{Group: at.cfg.Group, ClusterID: at.cluster(), Node: "mallory", Home: make([]byte, 16)}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	client, err := d.Client(leader)
	if err != nil {
		t.Fatal(err)
	}
	x := impostor{client: client, run: id.Bytes(), victim: others[0], home: victim.home.id[:]}
	tries := ownVoices()
	var methods []string
	for _, m := range wire.Cluster_ServiceDesc.Methods {
		methods = append(methods, m.MethodName)
	}
	for _, m := range wire.Cluster_ServiceDesc.Streams {
		methods = append(methods, m.StreamName)
	}
	for _, method := range methods {
		v, decided := voiceOf(method)
		try, tried := tries[method]
		switch {
		case !decided:
			t.Errorf("%s: nobody has decided in whose name it speaks: see voiceOf", method)
		case (v != voiceNone) != tried:
			t.Errorf("%s speaks in somebody's name: %v; it is tried in another's: %v", method, v != voiceNone, tried)
		case tried:
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if answer := try(ctx, x); answer != "" {
				t.Errorf("%s for another node is answered: %s", method, answer)
			}
			cancel()
		}
	}
	if err := admitCall("Overthrow", rpc.Peer{Node: "n1"}); err == nil {
		t.Error("a call of which nothing was decided is let through")
	}
	if _, now := victim.Self(); now != run {
		t.Errorf("the victim's run became %q", now)
	}
}

// A renewal by the detour counts when its run has signed it, for its group only, and once.
func TestDetoursAreSigned(t *testing.T) {
	tg := newTestGroup(t, 2)
	tg.start("n1")
	tg.start("n2")
	tg.awaitStanding("n1", "n2")
	a, b := tg.nodes["n1"].Group, tg.nodes["n2"].Group
	tg.await(tg.nodes["n2"], "n2 knows n1's run", func() bool { return !b.ownRun().IsZero() && knows(b, a.ownRun()) })
	r, err := a.sealed(&wire.Renewal{Run: a.ownRun().Bytes(), Seq: 7})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.unsealed("n3", r); err != nil || got.GetSeq() != 7 {
		t.Errorf("a signed one: %v, %v", got, err)
	}
	if _, err := b.unsealed("n1", &wire.RenewRequest{Renewal: r.GetRenewal()}); err != nil {
		t.Errorf("an unsigned one of the run itself: %v", err)
	}
	other, err := b.sealed(&wire.Renewal{Run: a.ownRun().Bytes(), Seq: 8})
	if err != nil {
		t.Fatal(err)
	}
	changed := append([]byte{}, r.GetRenewal()...)
	changed[len(changed)-1]++
	for name, r := range map[string]*wire.RenewRequest{
		"by another node":  other,
		"unsigned":         {Renewal: r.GetRenewal()},
		"changed":          {Renewal: changed, Signature: r.GetSignature()},
		"no renewal":       {Renewal: []byte{0xff}, Signature: r.GetSignature()},
		"of no run at all": {},
	} {
		if _, err := b.unsealed("n3", r); err == nil {
			t.Errorf("%s: it counts", name)
		}
	}
}

func knows(g *Group, id state.RunID) (known bool) {
	g.rep.read(func(m *state.Machine) { _, known = m.Run(id) })
	return known
}
