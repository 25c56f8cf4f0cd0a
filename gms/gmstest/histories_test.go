package gmstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// Under random joins, leaves, kills, restarts, pauses and partitions all members that are connected at the end have applied
// the same views in the same order; no living, connected run was closed; a minority closed nobody (it cannot commit); every
// closed run was recovered once, or its recovery is parked. The observer judges each step on the way.
func TestHistories(t *testing.T) {
	histories := 40
	if long() {
		histories = 400
	}
	seed := Seed(t)
	for i := range histories {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			bubble(t, func(t *testing.T) { history(t, seed+uint64(i)) })
		})
		if t.Failed() {
			t.Fatalf("history %d: repeat it alone with %s=%d -run TestHistories/0", i, SeedEnv, seed+uint64(i))
		}
	}
}

// script is one random history.
type script struct {
	w      *World
	rng    *rand.Rand
	joined int
}

const (
	historySteps = 14
	historyNodes = 7
)

func history(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	actions := rand.New(rand.NewPCG(seed, 3)) // a source of their own: they are many, and in no order
	a := newApp("work", "more")
	var mu sync.Mutex
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return actions.IntN(n)
	}
	a.act = func(ctx context.Context, _ *Node, s signals.FailureRecoverySignal) error {
		if draw(6) == 0 {
			return errors.New("this attempt fails")
		}
		select {
		case <-time.After(time.Duration(draw(1000)) * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		_, err := freeAll(ctx, s)
		return err
	}
	timing, room := []gms.Profile{gms.ProfileLocal, gms.ProfileLAN}[rng.IntN(2)], []int{1, 2, 16}[rng.IntN(3)]
	w := Cluster(t, 3+rng.IntN(3), WithSeed(seed), a.option(), profile(timing), func(o *options) { o.secure = seed%8 == 7 }, WithConfig(func(node string, c *gms.Config) {
		c.FenceTTL, c.SnapshotThreshold, c.Followers = 5*time.Second, 30, room
		switch node {
		case "n6":
			c.Role = signals.Spectator
		case "n7":
			c.Role = signals.Witness
		}
	}))
	s := &script{w: w, rng: rng, joined: len(w.Names())}
	for range historySteps {
		s.step()
		s.claim()
		Advance(time.Duration(rng.Int64N(int64(3 * time.Second))))
	}
	s.mend()
	w.AwaitView(w.Names()...)
	awaitRecovered(w)
	for _, name := range w.Names() {
		for _, c := range w.observer.closed(name) {
			for _, component := range a.components {
				s.recovered(component, c)
			}
		}
	}
}

// recovered demands that the recovery of a closed run of a member that works has ended once, or is parked.
func (s *script) recovered(component string, c closing) {
	n := s.w.observer.releasedOf(component, c.Run)
	parked, _ := s.w.Living()[0].Group.Recoveries()
	if slices.ContainsFunc(parked, func(r gms.Recovery) bool { return r.Run == c.Run && r.Component == component }) {
		n++
	}
	want := 1
	if c.Node == "n7" { // the witness has no components
		want = 0
	}
	if n != want {
		s.w.t.Errorf("%s of run %s of %s was recovered %d times", component, c.Run, c.Node, n)
	}
}

func (s *script) pick(names []string) string { return names[s.rng.IntN(len(names))] }

// step does one thing to the group, if it can be done now.
func (s *script) step() {
	w := s.w
	living := w.Others()
	var down, asleep []string
	for _, name := range w.Names() {
		switch w.Node(name).lifeNow() {
		case killed, stopping:
			down = append(down, name)
		case paused:
			asleep = append(asleep, name)
		}
	}
	switch op := s.rng.IntN(16); {
	case op == 0 && s.joined < historyNodes:
		s.joined++
		s.tell("start", w.Start(fmt.Sprintf("n%d", s.joined)).Name)
	case op == 1 && len(living) > 2:
		name := s.pick(living)
		s.tell("stop", name)
		w.Stop(name)
	case op <= 3 && len(living) > 1:
		name := s.pick(living)
		s.tell("kill", name)
		w.Kill(name)
	case op == 4 && len(living) > 2:
		both := []string{s.pick(living), s.pick(living)}
		s.tell("kill", both...)
		w.Kill(slices.Compact(both)...)
	case op == 5 && len(living) > 1:
		name := s.pick(living)
		s.tell("pause", name)
		w.Pause(name)
	case op == 6 && len(asleep) > 0:
		name := s.pick(asleep)
		s.tell("resume", name)
		w.Resume(name)
	case op <= 8 && len(down) > 0:
		name := s.pick(down)
		s.tell("start", name)
		w.Start(name)
	case op == 9:
		s.tell("heal")
		w.Heal()
	case op <= 11:
		s.cut()
	case op == 12 && len(asleep) > 0:
		name := s.pick(asleep)
		s.tell("kill while paused", name)
		w.Kill(name)
	case op == 13:
		l := Link{Loss: s.rng.Float64() * 0.3, Duplicate: s.rng.Float64() * 0.1, Delay: time.Duration(s.rng.IntN(5)) * time.Millisecond, Jitter: 3 * time.Millisecond}
		s.tell(fmt.Sprintf("weather %+v", l))
		w.Weather(l)
	case op == 14:
		s.tell("wait for a minute")
		Advance(time.Minute)
	case op == 15 && len(living) > 2:
		s.stall(s.pick(living))
	}
}

// stall takes a node's disk away; its host ends the process when the group says so.
func (s *script) stall(name string) {
	s.tell("stall the disk", name)
	s.w.StallDisk(name)
	Advance(10 * time.Second)
	s.w.Kill(name)
}

// cut breaks links in one of several ways.
func (s *script) cut() {
	names := s.w.Names()
	s.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	half := names[:1+s.rng.IntN(len(names)-1)]
	switch s.rng.IntN(4) {
	case 0:
		s.tell("partition", half...)
		s.w.Partition(half)
	case 1:
		s.tell("isolate", names[0])
		s.w.Isolate(names[0])
	case 2:
		s.tell("cut one way", names[0])
		s.w.CutOneWay(names[0])
	case 3:
		s.tell("bridge over "+names[0], names[1])
		s.w.Bridge(names[0], names[1:2], names[2:])
	}
}

func (s *script) tell(what string, names ...string) {
	s.w.tape.note("==", fmt.Sprint(what, " ", names))
}

// claim has a member that stands claim an item, if the group can decide within a moment.
func (s *script) claim() {
	for _, n := range s.w.Living() {
		if !n.Standing() || s.rng.IntN(2) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		_, err := n.Group.Claim(ctx, "work", fmt.Sprint(s.rng.IntN(20)), 1)
		cancel()
		s.w.tape.note(n.Name, fmt.Sprint("== claims: ", err))
	}
}

// mend takes all faults back.
func (s *script) mend() {
	w := s.w
	s.tell("mend")
	w.Heal()
	for _, name := range w.Names() {
		switch w.Node(name).lifeNow() {
		case paused:
			w.Resume(name)
		case killed, stopping:
			w.Start(name)
		}
	}
}
