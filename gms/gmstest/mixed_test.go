package gmstest

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// Nodes of several profiles in one group, as while a setting is rolled out: each run has the leases that it reckons with,
// whoever leads and whoever feeds it. Nobody that renews is closed, and no recovery that goes on is moved.
func TestMixedProfiles(t *testing.T) {
	local, lan, wan, patient := gms.ProfileLocal, gms.ProfileLAN, gms.ProfileWAN, gms.ProfilePatient
	for name, of := range map[string][]gms.Profile{ // n6 alone recovers
		"one is patient":     {lan, lan, lan, lan, local, patient},
		"one is not patient": {patient, patient, patient, patient, patient, local},
		"of each one":        {local, patient, wan, lan, patient, lan},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { mixedProfiles(t, of) })
		})
	}
}

func mixedProfiles(t *testing.T, of []gms.Profile) {
	a := newApp("work")
	const work = 45 * time.Second
	a.act = func(ctx context.Context, n *Node, s signals.FailureRecoverySignal) error {
		if _, err := s.Acquire(ctx); err != nil {
			return err
		}
		select {
		case <-time.After(work):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		_, err := freeAll(ctx, s)
		return err
	}
	w := Cluster(t, 6, a.option(), WithConfig(func(node string, c *gms.Config) {
		c.Order = func(_ string, _ signals.Member, candidates []signals.Member) []string { // n6 first: it is fed, and never leads
			runs := make([]string, 0, 6)
			for _, m := range candidates {
				if m.Node == "n6" {
					runs = append(runs, m.Run)
				}
			}
			return runs
		}
		c.Profile, c.Followers = of[node[1]-'1'], 1
		if c.FenceTTL = 5 * time.Second; c.Profile == gms.ProfilePatient {
			c.FenceTTL = time.Minute
		}
	}))
	for range 2 {
		Advance(15 * time.Second)
		feeder := w.Node("n6").Group.Feeder()
		for range 75 {
			Advance(time.Second)
			if now := w.Node("n6").Group.Feeder(); now != feeder {
				t.Errorf("n6 was fed by %q, and is by %q", feeder, now)
				feeder = now
			}
			for _, n := range w.Living() {
				if !n.Standing() {
					t.Errorf("%s has no lease while %s leads", n.Name, w.Leader())
				}
			}
		}
		leader := w.Leader()
		w.Kill(leader)
		w.AwaitGone(leader)
		Advance(2 * work)
		awaitRecovered(w)
		w.Start(leader)
		w.AwaitView(w.Names()...)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.actions {
		if x.Err != nil {
			t.Errorf("a recovery that went on was moved: %+v", x)
		}
	}
	if len(a.actions) != 2 {
		t.Errorf("%d recoveries", len(a.actions))
	}
}
