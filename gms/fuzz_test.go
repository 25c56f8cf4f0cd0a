package gms

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/gossip"
	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// The decoders of what comes by the network, and where each is fuzzed: hellos (gms/internal/rpc), certificates and the names
// in them (gms/certs), entries of the log and snapshots (gms/internal/state), obituaries and key rings (this package), and
// here: meta in gossip, renewals by the detour, what a feeder sends, and calls in general. Raft's and gossip's own messages are
// their libraries'; they come from members only, once there are certificates and keys.

func bytesOf(f *testing.F, m proto.Message) []byte {
	f.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// What gossip admits has the form that the rest relies on, whoever said it.
func FuzzAdmit(f *testing.F) {
	run := runOf(2)
	good := &wire.Meta{Protocol: 1, Node: "n2", Run: run.Bytes(), Home: make([]byte, 16), ClusterAddr: "127.0.0.1:7947"}
	f.Add("n2/"+run.String(), bytesOf(f, good))
	bad := proto.CloneOf(good)
	bad.ClusterId, bad.ClusterAddr = []byte("short"), "nowhere"
	f.Add("n2/"+run.String(), bytesOf(f, bad))
	f.Add("n3/"+run.String(), bytesOf(f, good))
	f.Fuzz(func(t *testing.T, name string, meta []byte) {
		g := newLooseGroup(t)
		m := gossip.Member{Name: name, Addr: "127.0.0.1:7946", Meta: meta}
		if g.admit(m) != nil {
			return
		}
		got, err := readMeta(m)
		if err != nil {
			t.Fatal(err)
		}
		id, ok := state.RunIDOf(got.GetRun())
		if !ok || name != got.GetNode()+"/"+id.String() || len(got.GetHome()) != 16 {
			t.Errorf("%q is admitted as %v", name, got)
		}
		g.peers.put(got, m.Addr, true)
		if addr, err := g.resolve(got.GetNode()); got.GetNode() != "n1" && (err != nil || addr != got.GetClusterAddr()) {
			t.Errorf("%q is at %q (%v)", name, addr, err)
		}
	})
}

// A renewal that another node brings is that of its signer, or none.
func FuzzUnsealed(f *testing.F) {
	renewal := bytesOf(f, &wire.Renewal{Run: runOf(2).Bytes(), Seq: 1, Fences: []*wire.FenceRenewal{{Component: "c"}}})
	f.Add(renewal, make([]byte, 64))
	f.Add([]byte{0xff}, []byte{})
	f.Fuzz(func(t *testing.T, renewal, signature []byte) {
		g := newLooseGroup(t)
		g.settle()
		r, err := g.unsealed("n9", &wire.RenewRequest{Renewal: renewal, Signature: signature})
		if err != nil {
			return
		}
		if id, ok := state.RunIDOf(r.GetRun()); !ok || !g.speaksFor("n9", id) {
			t.Errorf("%v counts for n9", r)
		}
	})
}

// Whatever a feeder sends, the replica takes it or refuses it, and stays whole.
func FuzzFed(f *testing.F) {
	entry := bytesOf(f, &wire.Entry{Version: wire.Protocol, Commands: []*wire.Command{{Op: &wire.Command_Lead{Lead: &wire.Lead{Node: "n1", Term: 2}}}}})
	f.Add(bytesOf(f, &wire.FollowReply{Msg: &wire.FollowReply_Entries{Entries: &wire.FedEntries{Entries: []*wire.FedEntry{{Before: 0, Index: 1, Data: entry}}}}}))
	f.Add(bytesOf(f, &wire.FollowReply{Msg: &wire.FollowReply_Snapshot{Snapshot: &wire.SnapshotPart{Data: []byte("x"), Last: true}}}))
	f.Add(bytesOf(f, &wire.FollowReply{Msg: &wire.FollowReply_Status{Status: &wire.FeedStatus{Leader: "n2", Voters: []string{"n2"}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &wire.FollowReply{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		g := newLooseGroup(t)
		var in feedIntake
		_ = in.take(g.Group, m) // an error ends the feed
		g.rep.read(func(m *state.Machine) {
			if _, err := state.Restore(m.Snapshot()); err != nil {
				t.Errorf("what was fed cannot be restored: %v", err)
			}
		})
	})
}

// No call, however malformed, does more than fail: here those that need nothing to be open.
func FuzzCalls(f *testing.F) {
	f.Add(bytesOf(f, &wire.SubmitRequest{Commands: []*wire.Command{{Op: &wire.Command_Lock{Lock: &wire.Lock{Name: "l"}}}}}))
	f.Add(bytesOf(f, &wire.TellRequest{From: runOf(2).Bytes(), To: runOf(1).Bytes(), Component: "c", Seq: 1}))
	f.Add(bytesOf(f, &wire.HomePositionRequest{Node: "n2", Home: make([]byte, 16)}))
	f.Add(bytesOf(f, &wire.KeyringRequest{Put: &wire.KeyRing{Version: 1, Keys: [][]byte{keyOf('a')}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		g := newLooseGroup(t)
		g.settle()
		g.keys = &keyKeeper{home: g.home}
		h, ctx := handler{g: g.Group}, rpc.WithPeer(t.Context(), rpc.Peer{Node: "n2"})
		calls := map[proto.Message]func(proto.Message) error{
			&wire.SubmitRequest{}:       func(m proto.Message) error { _, err := h.Submit(ctx, m.(*wire.SubmitRequest)); return err },
			&wire.HomePositionRequest{}: func(m proto.Message) error { _, err := h.HomePosition(ctx, m.(*wire.HomePositionRequest)); return err },
			&wire.AnnounceRequest{}:     func(m proto.Message) error { _, err := h.Announce(ctx, m.(*wire.AnnounceRequest)); return err },
			&wire.RenewRequest{}:        func(m proto.Message) error { _, err := h.Renew(ctx, m.(*wire.RenewRequest)); return err },
			&wire.KeyringRequest{}: func(m proto.Message) error {
				if _, err := h.Keyring(ctx, m.(*wire.KeyringRequest)); err == nil {
					t.Error("keys were told without certificates")
				}
				return nil
			},
		}
		for m, call := range calls {
			if proto.Unmarshal(b, m) == nil {
				_ = call(m) // that it returns is what counts
			}
		}
	})
}
