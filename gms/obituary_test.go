package gms

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
)

// obituaryBytes is an obituary as a warden signs it.
func obituaryBytes(what byte, run state.RunID, node string, key ed25519.PrivateKey) []byte {
	b := append([]byte(obituaryMagic), what)
	b = append(b, run[:]...)
	b = binary.BigEndian.AppendUint64(b, 1)
	b = append(b, make([]byte, 16)...)
	b = append(b, byte(len(node)))
	b = append(b, node...)
	return append(b, ed25519.Sign(key, b)...)
}

func FuzzReadObituary(f *testing.F) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(obituaryBytes(1, state.RunID{7}, "n1", key))
	f.Fuzz(func(t *testing.T, signed []byte) {
		what, _, node, err := readObituary(signed)
		if err == nil && (len(node) == 0 || len(node) > 63 || what != signed[8]) {
			t.Errorf("read %q of %q", node, signed)
		}
	})
}

// TestObituaries: what the registered warden signed for this run is believed once nobody answers a ping; what another key
// signed, for another node, for an old run, or about a run that answers, closes nobody.
func TestObituaries(t *testing.T) {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	tg := newTestGroup(t, 3)
	run := state.RunID{1, 2, 3}
	for _, name := range tg.names {
		tg.start(name, func(c *Config) {
			c.Profile = ProfileLAN
			c.NoRefused = true // only the obituary may be quick
			if c.Node == "n3" {
				c.Run, c.WardenKey = run, public
			}
		})
	}
	for _, name := range tg.names {
		n := tg.nodes[name]
		if err := n.AwaitStanding(tg.ctx); err != nil {
			t.Fatal(err)
		}
		tg.await(n, "the whole view", func() bool { return len(n.View().Members) == 3 })
	}
	if _, got := tg.nodes["n3"].Self(); got != run.String() {
		t.Fatalf("n3 stands as %s, its warden said %s", got, run)
	}
	announce := func(signed []byte) error {
		by := tg.nodes["n1"]
		tg.await(by, "the addresses of the last view", func() bool { return by.remembered().Cluster["n2"] != "" })
		ctx, cancel := context.WithTimeout(tg.ctx, attemptLimit)
		defer cancel()
		a := NewAnnouncer(AnnouncerConfig{Home: tg.dirs["n1"], Group: "test", Node: "n3"})
		defer a.Close()
		return a.Announce(ctx, signed)
	}
	for what, signed := range map[string][]byte{
		"not signed by the warden": obituaryBytes(1, run, "n3", other),
		"not signed by":            obituaryBytes(1, run, "n2", key),
		"run is closed":            obituaryBytes(1, state.RunID{9}, "n3", key),
		"not an obituary":          []byte("nonsense"),
	} {
		if err := announce(signed); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := announce(obituaryBytes(1, run, "n3", key)); err != nil { // a replay from the future: the run answers
		t.Errorf("a true obituary of a living run: %v", err)
	}
	// It is void while the run answers: once every member has seen what the leader made of it, the run still stands.
	n3 := tg.nodes["n3"]
	if _, err := n3.Claim(tg.ctx, "work", "item", 1); err != nil {
		t.Errorf("claim after a void obituary: %v", err)
	}
	// Nothing is believed of a run that answers, also not that nothing of it is left.
	if err := announce(obituaryBytes(2, run, "n3", key)); err == nil || !strings.Contains(err.Error(), "not closed yet") {
		t.Errorf("a living run was said to be quiesced: %v", err)
	}
	if _, got := n3.Self(); got != run.String() || len(tg.nodes["n1"].View().Members) != 3 {
		t.Errorf("n3 stands as %s in a view of %d", got, len(tg.nodes["n1"].View().Members))
	}
}

// TestRule22_QuiescedIsOnRecord: what the warden says of a run that nobody hears is on record with all, for those who wait
// for its lease; a forged one is not.
func TestRule22_QuiescedIsOnRecord(t *testing.T) {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	tg := newTestGroup(t, 3)
	runs := map[string]state.RunID{}
	for i, name := range tg.names {
		runs[name] = state.RunID{1, 2, byte(i)}
		tg.start(name, func(c *Config) {
			c.Profile, c.NoRefused = ProfilePatient, true // silence would take a minute
			c.Run, c.WardenKey = runs[name], public
		})
	}
	tg.awaitStanding(tg.names...)
	leader, others := tg.leaderAmong(tg.names...)
	by, victim := tg.nodes[others[0]], others[1]
	run := runs[victim]
	tg.await(by, "the addresses of all", func() bool { return by.remembered().Cluster[leader] != "" })
	tg.net.cut(victim)
	defer tg.net.cut()
	announcer := NewAnnouncer(AnnouncerConfig{Home: tg.dirs[by.cfg.Node], Group: "test", Node: victim})
	defer announcer.Close()
	announce := func(signed []byte) error {
		ctx, cancel := context.WithTimeout(tg.ctx, 30*time.Second)
		defer cancel()
		return announcer.Announce(ctx, signed)
	}
	if err := announce(obituaryBytes(1, run, victim, key)); err != nil {
		t.Fatal(err)
	}
	known := func(n *testNode) (r state.Run) {
		n.rep.read(func(m *state.Machine) { r, _ = m.Run(run) })
		return r
	}
	tg.await(by, "the closing of "+victim, func() bool { return !known(by).IsOpen() })
	if err := announce(obituaryBytes(2, run, victim, other)); err == nil || known(by).Quiesced {
		t.Errorf("a forged word was taken: %v", err)
	}
	if err := announce(obituaryBytes(2, run, victim, key)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{leader, by.cfg.Node} {
		n := tg.nodes[name]
		tg.await(n, "the record", func() bool { return known(n).Quiesced })
	}
	list, _ := by.Recoveries()
	for _, r := range list {
		if left, _ := by.LeaseWait(r.Appointment); r.Run == run.String() && left > 0 {
			t.Errorf("whoever recovers %s waits for %v", r.Component, left)
		}
	}
	if len(list) == 0 {
		t.Errorf("nobody recovers %s", victim)
	}
}
