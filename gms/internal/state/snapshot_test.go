package state

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// full is a state with something of everything.
func full(t testing.TB) *rig {
	r := newRig(t)
	a := r.open("A1", "backup", "verify")
	b, c := r.open("B1", "backup"), r.open("C1", "backup")
	r.apply(request("b", 1, 0, b, &wire.Claim{Component: "backup", Item: "held"}))
	r.apply(request("b", 2, 0, b, &wire.SetReady{Ready: true}))
	for _, item := range []string{"orphan", "adopted", "poison", "freed"} {
		r.claim(a, item)
	}
	r.ok(b, &wire.Lock{Name: "l"})
	r.want(wire.Code_CODE_QUEUED, c, &wire.Lock{Name: "l", Wait: true})
	r.ok(b, &wire.RaiseFence{Component: "prune", Node: "C"})
	r.ok(a, &wire.CacheTxn{Puts: []*wire.CachePut{{Key: ck("bound"), Value: []byte("v"), Bound: true}, put("free", "v")}})
	r.open("D1")
	r.close("D1")
	r.ok(RunID{}, &wire.ForgetNode{Node: "D", Burn: true})
	r.close("A1")
	r.open("A2", "verify")
	r.close("A2")
	f := r.acquire("backup", "A1")
	holder := appointee(r.recovery("backup", "A1"))
	r.ok(holder, &wire.Adopt{Component: "backup", Item: "adopted", Fence: f})
	for item, how := range map[string]wire.EndClaim_How{"poison": wire.EndClaim_HOW_QUARANTINE, "freed": wire.EndClaim_HOW_FREE} {
		r.ok(holder, &wire.EndClaim{Component: "backup", Item: item, Token: r.claimed(item).GetToken(), How: how, Fence: f})
	}
	r.ok(RunID{}, &wire.DropRecovery{Component: "verify", Run: a.Bytes()})
	r.ok(RunID{}, &wire.Lead{Node: "B", Term: 7})
	r.ok(b, &wire.AnnounceGroup{Kind: wire.AnnounceGroup_KIND_SHUTDOWN, Phase: wire.AnnounceGroup_PHASE_INITIATED})
	return r
}

func TestSnapshotsAreCanonicalAndComplete(t *testing.T) {
	r := full(t)
	s := r.m.Snapshot()
	fields := s.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if !s.ProtoReflect().Has(fields.Get(i)) {
			t.Errorf("the full state has no %s", fields.Get(i).Name())
		}
	}
	b, err := MarshalSnapshot(s)
	if err != nil {
		t.Fatal(err)
	}
	var read wire.Snapshot
	if err := proto.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	m, err := Restore(&read)
	if err != nil {
		t.Fatal(err)
	}
	again, err := MarshalSnapshot(m.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(b) || m.Hash() != r.m.Hash() {
		t.Error("a restored state has other bytes")
	}
}

func TestASnapshotDoesNotChangeWhileApplyGoesOn(t *testing.T) {
	r := full(t)
	s := r.m.Snapshot()
	was, err := MarshalSnapshot(s)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan []byte)
	go func() { // under the race detector this also shows that nothing is shared
		var b []byte
		for range 50 {
			b, _ = MarshalSnapshot(s)
		}
		done <- b
	}()
	f := &wire.FenceHeld{Component: "backup", Node: "A", Run: runID("A1").Bytes(), Token: r.recovery("backup", "A1").GetToken()}
	holder := appointee(r.recovery("backup", "A1"))
	r.ok(holder, &wire.EndClaim{Component: "backup", Item: "orphan", Token: r.claimed("orphan").GetToken(), How: wire.EndClaim_HOW_FREE, Fence: f})
	r.release("backup", "A1")
	r.close("B1")
	r.close("C1")
	r.ok(RunID{}, &wire.CacheTxn{Puts: []*wire.CachePut{put("free", "w"), put("x", "y")}})
	if now := <-done; string(now) != string(was) {
		t.Error("the snapshot has changed")
	}
}

func TestRestoreRefuses(t *testing.T) {
	bad := runID("Z9").Bytes()
	for name, spoil := range map[string]func(*wire.Snapshot){
		"no version":            func(s *wire.Snapshot) { s.Version = 0 },
		"a newer version":       func(s *wire.Snapshot) { s.Version = wire.Protocol + 1 },
		"content before":        func(s *wire.Snapshot) { s.ClusterId = nil },
		"counter below base":    func(s *wire.Snapshot) { s.Counter = s.Base - 1 },
		"numbers out of range":  func(s *wire.Snapshot) { s.Base = wire.MaxToken },
		"settings":              func(s *wire.Snapshot) { s.Settings.Selector = 9 },
		"mark in the future":    func(s *wire.Snapshot) { s.UnderWaySince = s.Index + s.Base + 1 },
		"mark of no kind":       func(s *wire.Snapshot) { s.UnderWay = 0 },
		"leader of no term":     func(s *wire.Snapshot) { s.Term = 0 },
		"ready views backwards": func(s *wire.Snapshot) { s.ReadyViews[0].Version = 0 },
		"ready, but not open":   func(s *wire.Snapshot) { s.ReadyViews[0].Members[0].Run = bad },
		"ready member missing":  func(s *wire.Snapshot) { s.ReadyViews[0].Members = nil },
		"node without home":     func(s *wire.Snapshot) { s.Nodes[0].Home = nil },
		"node ahead":            func(s *wire.Snapshot) { s.Nodes[0].Position = s.Index + 1 },
		"run twice":             func(s *wire.Snapshot) { s.Runs = append(s.Runs, s.Runs[0]) },
		"run of no node":        func(s *wire.Snapshot) { s.Runs[1].Open.Node = "Z" },
		"run that is not last":  func(s *wire.Snapshot) { s.Runs[0].Closed = 0 },
		"closed before opened":  func(s *wire.Snapshot) { s.Runs[0].Closed = 1 },
		"views out of order":    func(s *wire.Snapshot) { s.Views[0].Version = s.Views[1].Version },
		"view of nobody":        func(s *wire.Snapshot) { s.Views[0].Runs[0] = bad },
		"last view incomplete":  func(s *wire.Snapshot) { v := s.Views[len(s.Views)-1]; v.Runs = v.Runs[1:] },
		"recovery of an open":   func(s *wire.Snapshot) { s.Recoveries[0].Run = runID("B1").Bytes() },
		"recovery twice":        func(s *wire.Snapshot) { s.Recoveries = append(s.Recoveries, s.Recoveries[0]) },
		"recovery queued alone": func(s *wire.Snapshot) { s.Recoveries[0].State = queued },
		"recovery stateless":    func(s *wire.Snapshot) { s.Recoveries[0].State = 0 },
		"recovery of a closed":  func(s *wire.Snapshot) { s.Recoveries[0].Appointee = runID("A2").Bytes() },
		"waiting, appointed":    func(s *wire.Snapshot) { s.Recoveries[0].State = waiting },
		"raised, no token":      func(s *wire.Snapshot) { s.Recoveries[0].Token = 0 },
		"lock of a closed run":  func(s *wire.Snapshot) { s.Locks[0].Run = runID("A1").Bytes() },
		"waiter twice":          func(s *wire.Snapshot) { s.Locks[0].Waiters = append(s.Locks[0].Waiters, s.Locks[0].Waiters[0]) },
		"token never given":     func(s *wire.Snapshot) { s.Locks[0].Token = s.Counter + 1 },
		"claim of a closed run": func(s *wire.Snapshot) { claimIn(s, "held").Run = runID("A1").Bytes() },
		"orphan of nobody":      func(s *wire.Snapshot) { claimIn(s, "orphan").Run = bad },
		"adopted, old token":    func(s *wire.Snapshot) { claimIn(s, "adopted").Adopted.Token-- },
		"quarantined orphan":    func(s *wire.Snapshot) { claimIn(s, "poison").Orphan = true },
		"claims out of order":   func(s *wire.Snapshot) { s.Claims[0], s.Claims[1] = s.Claims[1], s.Claims[0] },
		"never orphaned":        func(s *wire.Snapshot) { s.Orphaned[0].Orphanings = 0 },
		"fence of a closed run": func(s *wire.Snapshot) { s.Maintenance[0].Run = runID("A1").Bytes() },
		"large value":           func(s *wire.Snapshot) { s.Cache[0].Value = make([]byte, MaxValue+1) },
		"bound to nobody":       func(s *wire.Snapshot) { s.Cache[0].Bound = bad },
		"client of a closed":    func(s *wire.Snapshot) { s.Clients[0].Run = runID("A1").Bytes() },
		"answers out of order":  func(s *wire.Snapshot) { s.Clients[0].Acked = 1 },
		"no text":               func(s *wire.Snapshot) { s.Recoveries[0].Why = "\xff" },
		"unknown field":         func(s *wire.Snapshot) { s.ProtoReflect().SetUnknown([]byte{0xf8, 0x7, 1}) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := proto.CloneOf(full(t).m.Snapshot())
			spoil(s)
			if m, err := Restore(s); err == nil || m != nil {
				t.Error("the snapshot is accepted")
			}
		})
	}
	if _, err := Restore(nil); err == nil {
		t.Error("no snapshot is accepted")
	}
	if _, err := Restore(New().Snapshot()); err != nil {
		t.Errorf("the state before the first entry is refused: %v", err)
	}
}

func claimIn(s *wire.Snapshot, item string) *wire.ClaimState {
	for _, c := range s.GetClaims() {
		if c.GetItem() == item {
			return c
		}
	}
	return nil
}

// Whatever is accepted can be worked with: no entry makes the machine panic, and no invariant breaks.
func FuzzRestore(f *testing.F) {
	for _, m := range []*Machine{New(), newRig(f).m, full(f).m, orphaned(f).m} {
		b, err := MarshalSnapshot(m.Snapshot())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s wire.Snapshot
		if proto.Unmarshal(b, &s) != nil {
			return
		}
		m, err := Restore(&s)
		if err != nil {
			return
		}
		if err := Invariants(m); err != nil {
			t.Fatalf("an accepted snapshot breaks an invariant: %v", err)
		}
		r := &rig{t: t, m: m}
		m.Apply(m.Index()+1, entry(command(RunID{}, opening(r, "Z", "Z1", "backup"))))
		for _, run := range m.Runs() {
			m.Apply(m.Index()+1, entry(command(RunID{}, &wire.CloseRun{
				Node: run.Node(), Run: run.ID.Bytes(), Evidence: wire.Evidence_EVIDENCE_OPERATOR,
			})))
		}
		for _, rec := range m.Recoveries() {
			m.Apply(m.Index()+1, entry(command(RunID{}, &wire.DropRecovery{Component: rec.GetComponent(), Run: rec.GetRun()})))
		}
		m.Hash()
		if err := Invariants(m); err != nil {
			t.Fatalf("work on an accepted snapshot breaks an invariant: %v", err)
		}
	})
}

// No entry, however malformed, makes the machine panic or breaks an invariant.
func FuzzApply(f *testing.F) {
	seed := func(commands ...*wire.Command) {
		b, err := proto.Marshal(entry(commands...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	r := full(f)
	rec := r.recovery("backup", "A1")
	seed(command(RunID{}, opening(r, "D", "D1", "backup")), command(RunID{}, closingOf("B1", wire.Evidence_EVIDENCE_LAPSED)))
	seed(request("b", 3, 1, runID("B1"), &wire.CacheTxn{Puts: []*wire.CachePut{put("a", "b")}, Conditions: []*wire.Condition{versionIs("a", 0)}}))
	seed(command(appointee(rec), &wire.Release{Recovery: refOf(rec), Token: rec.GetToken()}), command(RunID{}, &wire.Audit{}))
	seed(&wire.Command{Op: &wire.Command_Lock{}}, command(RunID{}, &wire.Rebase{Base: 1 << 40}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e wire.Entry
		if proto.Unmarshal(b, &e) != nil {
			return
		}
		m, err := Restore(r.m.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		results, _ := m.Apply(m.Index()+1, &e)
		if len(results) != len(e.GetCommands()) {
			t.Fatalf("%d answers to %d commands", len(results), len(e.GetCommands()))
		}
		if err := Invariants(m); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(m.Snapshot()); err != nil {
			t.Fatalf("the snapshot is refused: %v", err)
		}
	})
}
