package gmstest

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/recovery/warden"
	"github.com/fencepost/fencepost/signals"
)

// keyOf is the warden key of a node's first run, and runOf that run's id.
func keyOf(node string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(node))
	return ed25519.NewKeyFromSeed(seed[:])
}

func runOf(node string) (id [16]byte) {
	sum := sha256.Sum256([]byte("run of " + node))
	copy(id[:], sum[:])
	return id
}

func withWardens(*scene) func(string, *gms.Config) {
	return func(node string, c *gms.Config) {
		c.Run, c.WardenKey, c.NoRefused = runOf(node), keyOf(node).Public().(ed25519.PublicKey), true
	}
}

// lies: what is not signed by the run's own warden, and what it says of a run that answers, changes no view; its true word
// closes at once, and said again it is old news.
func lies(x *scene) {
	x.begin(1)
	by := x.w.Leader()
	if !x.recovererLeads || by == x.victim {
		by = x.w.Others(x.victim, by)[0]
	}
	Advance(10 * time.Second) // by then every home remembers where the others are
	other := x.w.Others(x.victim, by)[0]
	before := x.w.Node(by).Group.View().Version
	for what, signed := range map[string][]byte{
		"signed by the one who announces":  x.obituary(warden.Died, x.victim, x.victim, by),
		"by another node's warden":         x.obituary(warden.Died, x.victim, x.victim, other),
		"of a run, under another's name":   x.obituary(warden.Died, x.victim, other, x.victim),
		"of a run that never was":          x.obituary(warden.Died, "n99", "n99", x.victim),
		"quiesced, by another":             x.obituary(warden.Quiesced, x.victim, x.victim, other),
		"no obituary":                      []byte("FPOBIT1\nnonsense"),
		"a living run is said to be quiet": x.obituary(warden.Quiesced, x.victim, x.victim, x.victim),
	} {
		if err := x.announce(by, signed); err == nil {
			x.t.Errorf("%s was taken", what)
		}
	}
	died := x.obituary(warden.Died, x.victim, x.victim, x.victim)
	if err := x.announce(by, died); err != nil {
		x.t.Errorf("the warden's own word: %v", err)
	}
	Advance(10 * time.Second)
	if v := x.w.Node(by).Group.View().Version; v != before || len(x.w.observer.closings) > 0 {
		x.t.Errorf("view %d after %d, closed %v", v, before, x.w.observer.closings)
	}
	x.kill(x.victim)
	if err := x.announce(by, died); err != nil {
		x.t.Errorf("a true obituary: %v", err)
	}
	x.finished()
	after := x.witness().Group.View().Version
	if err := x.announce(by, died); !errors.Is(err, gms.ErrRunClosed) {
		x.t.Errorf("a replay: %v", err)
	}
	if v := x.witness().Group.View().Version; v != after || x.closedAfter(x.victim) > 2*time.Second {
		x.t.Errorf("view %d after %d, closed after %v", v, after, x.closedAfter(x.victim))
	}
	if n := len(x.w.Node(by).Group.View().Members); n != len(x.w.Names())-1 {
		x.t.Errorf("%d members", n)
	}
	failures := x.app.signalsOf(by, signals.FailureNotification)
	if slices.ContainsFunc(failures, func(f signals.Facts) bool { return f.Evidence != signals.Obituary }) {
		x.t.Errorf("failures heard: %+v", failures)
	}
}

// obituary says of run's run, under the name, signed by the warden of signer.
func (x *scene) obituary(what warden.What, run, name, signer string) []byte {
	x.t.Helper()
	signed, err := warden.Obituary{What: what, Run: runOf(run), Generation: 1, Node: name}.Sign(keyOf(signer))
	must(x.t, err)
	return signed
}

// announce brings an obituary to the group, from a node's host.
func (x *scene) announce(by string, signed []byte) error {
	ctx, cancel := context.WithTimeout(x.t.Context(), 10*time.Second)
	defer cancel()
	n := x.w.Node(by)
	a := gms.NewAnnouncer(gms.AnnouncerConfig{Home: n.site.home, Group: "test", Node: x.victim, Network: n.proc})
	defer a.Close()
	return a.Announce(ctx, signed)
}
