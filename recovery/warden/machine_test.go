package warden

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/recovery/home"
)

// say writes acts for comparison.
func say(acts []act) string {
	var words []string
	for _, a := range acts {
		switch a := a.(type) {
		case tellA:
			words = append(words, "tell "+a.what.String())
		case pauseA:
			words = append(words, "pause "+a.d.String())
		case failA:
			words = append(words, "fail ("+a.cause+")")
		default:
			words = append(words, strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", a), "warden."), "A"))
		}
	}
	return strings.Join(words, ", ")
}

// line of a script: an event, what shall be done, and in which state the machine then is.
type line struct {
	e     event
	acts  string
	state state
}

const deathActs = "tell died, keep, bury"

var (
	segv     = ended{Exit{Signal: "SIGSEGV"}}
	code0    = ended{Exit{}}
	code2    = ended{Exit{Code: 2}}
	up       = []line{{begun{}, "recover", recovering}, {recovered{}, "start", starting}, {started{}, "", running}, {cameUp{}, "ready", running}}
	death    = line{segv, "fail (the node killed by SIGSEGV), " + deathActs, burying}
	buriedOK = line{buried{}, "tell quiesced, recover", recovering}
	errBoom  = errors.New("errBoom")
)

func script(parts ...any) (all []line) {
	for _, p := range parts {
		switch p := p.(type) {
		case line:
			all = append(all, p)
		case []line:
			all = append(all, p...)
		}
	}
	return all
}

func TestMachine(t *testing.T) {
	for name, c := range map[string]struct {
		lines []line
		code  int
		err   error
	}{
		"planned end": {script(up, line{code0, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"asked to stop": {script(up, line{stopAsked{}, "term", running}, line{stopAsked{}, "", running},
			line{code0, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"stop takes too long": {script(up, line{stopAsked{}, "term", running}, line{late{}, "kill", running},
			line{ended{Exit{Signal: "SIGKILL"}}, "fail (the node killed by SIGKILL), " + deathActs, burying},
			line{buried{}, "tell quiesced", finished}), 1, nil},
		"second stop ends it with code 1": {script(up, line{stopAsked{}, "term", running},
			line{ended{Exit{Code: 1}}, "fail (the node ended with code 1), " + deathActs, burying}, line{buried{}, "tell quiesced", finished}), 1, nil},
		"never came up and says why": {script(up[:3], line{code2, "fail (the node ended with code 2), " + deathActs, burying},
			line{buried{}, "tell quiesced", finished}), 2, nil},
		"never came up, killed: again": {script(up[:3], death, buriedOK, line{recovered{}, "pause 1s", pausing}, line{paused{}, "start", starting},
			line{started{}, "", running}, line{cameUp{}, "ready", running}, line{cameUp{}, "", running},
			line{code0, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"came up, then a code: again": {script(up, line{code2, "fail (the node ended with code 2), " + deathActs, burying}, buriedOK,
			line{recovered{}, "pause 1s", pausing}, line{stopAsked{}, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"came up, then gave up": {script(up, line{ended{Exit{Code: 1, Parting: GaveUp}}, "fail (the node ended with code 1), " + deathActs, burying},
			line{buried{}, "tell quiesced", finished}), 1, nil},
		"came up, then failed: again": {script(up, line{ended{Exit{Code: 1, Parting: Failed}}, "fail (the node ended with code 1), " + deathActs, burying}, buriedOK,
			line{recovered{}, "pause 1s", pausing}, line{stopAsked{}, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"stopped while it is buried": {script(up, death, line{stopAsked{}, "", burying}, line{buried{}, "tell quiesced", finished}), 1, nil},
		"stopped while it is cleaned": {script(up[:1], line{stopAsked{}, "", recovering}, line{recovered{}, "retire", retiring},
			line{retired{}, "", finished}), 0, nil},
		"stopped while it starts": {script(up[:2], line{stopAsked{}, "", starting}, line{started{}, "term", running},
			line{code0, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"hangs": {script(up, line{hung{}, "dump", running}, line{hung{}, "", running}, line{late{}, "kill", running},
			line{ended{Exit{Signal: "SIGKILL"}}, "fail (the node made no progress and was ended), " + deathActs, burying}, buriedOK,
			line{recovered{}, "pause 1s", pausing}, line{stopAsked{}, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"hangs and dumps": {script(up, line{hung{}, "dump", running},
			line{code2, "fail (the node made no progress and was ended), " + deathActs, burying}, buriedOK,
			line{recovered{}, "pause 1s", pausing}, line{stopAsked{}, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"adopted, left in order": {script(line{begun{true}, "adopt", running}, line{cameUp{}, "ready", running},
			line{ended{Exit{Unknown: true, Parting: InOrder}}, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"adopted, died": {script(line{begun{true}, "adopt", running},
			line{ended{Exit{Unknown: true}}, "fail (the node ended, how is not known), " + deathActs, burying}, buriedOK,
			line{recovered{}, "pause 1s", pausing}, line{stopAsked{}, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"crash loop": {script(up, death, buriedOK, line{recovered{}, "pause 1s", pausing}, line{paused{}, "start", starting}, line{started{}, "", running},
			death, buriedOK, line{recovered{}, "pause 2s", pausing}, line{paused{}, "start", starting}, line{started{}, "", running},
			death, line{buried{}, "tell quiesced", finished}), 6, ErrNeedsOperator},
		"cannot be started":           {script(up[:2], line{started{errBoom}, "", finished}), 1, errBoom},
		"cannot be cleaned":           {script(up[:1], line{recovered{errBoom}, "", finished}), 1, errBoom},
		"somebody is inside at first": {script(up[:1], line{recovered{home.ErrNotProven}, "", finished}), 5, home.ErrNotProven},
		"somebody is inside later":    {script(up, death, line{buried{home.ErrNotProven}, "", finished}), 5, home.ErrNotProven},
		"recovery needs an operator":  {script(up, death, line{buried{home.ErrNeedsOperator}, "", finished}), 6, home.ErrNeedsOperator},
		"cleaning fails again and again": {script(up, death, buriedOK, line{recovered{errBoom}, "recover", recovering},
			line{recovered{errBoom}, "", finished}), 6, errBoom},
		"no room at first": {script(up[:1], line{recovered{home.ErrNoRoom}, "room", roomless}, line{roomy{}, "recover", recovering},
			line{recovered{home.ErrNoRoom}, "room", roomless}, line{roomy{}, "recover", recovering}, line{recovered{}, "start", starting},
			line{started{home.ErrNoRoom}, "room", roomless}, line{paused{}, "", roomless}, line{roomy{}, "start", starting}, line{roomy{}, "", starting}, line{started{}, "", running},
			line{code0, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"no room for a death, which is told all the same": {script(up, death, line{buried{home.ErrNoRoom}, "room", roomless}, line{roomy{}, "bury", burying},
			line{buried{home.ErrNoRoom}, "room", roomless}, line{roomy{}, "bury", burying}, buriedOK, line{recovered{home.ErrNoRoom}, "room", roomless},
			line{roomy{}, "recover", recovering}, line{recovered{}, "pause 1s", pausing}, line{stopAsked{}, "retire", retiring}, line{retired{}, "", finished}), 0, nil},
		"stopped without a proof, for want of room": {script(up, death, line{buried{home.ErrNoRoom}, "room", roomless}, line{stopAsked{}, "", finished}), 5, home.ErrNoRoom},
		"stopped without a seal, for want of room":  {script(up[:1], line{stopAsked{}, "", recovering}, line{recovered{home.ErrNoRoom}, "", finished}), 1, home.ErrNoRoom},
		"somebody stays at the end":                 {script(up, line{code0, "retire", retiring}, line{retired{home.ErrNotProven}, "", finished}), 5, home.ErrNotProven},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine{policy: Policy{Restarts: 2, Window: time.Hour, MinPause: time.Second, MaxPause: 3 * time.Second}, state: idle}
			for i, l := range c.lines {
				if got := say(m.step(time.Duration(i)*time.Second, l.e)); got != l.acts || m.state != l.state {
					t.Fatalf("line %d, %T%+v: did %q and is %s, want %q and %s", i, l.e, l.e, got, m.state, l.acts, l.state)
				}
			}
			if m.state != finished || m.outcome.Code != c.code || !errors.Is(m.outcome.Err, c.err) {
				t.Errorf("%s with %+v, want code %d, %v", m.state, m.outcome, c.code, c.err)
			}
		})
	}
}

// TestDeathsAreForgotten: a death a day is no crash loop.
func TestDeathsAreForgotten(t *testing.T) {
	m := machine{policy: Policy{Restarts: 2, Window: time.Hour, MinPause: time.Second, MaxPause: time.Minute}, state: idle}
	now := time.Duration(0)
	for _, l := range up {
		m.step(now, l.e)
	}
	for range 10 {
		now += 24 * time.Hour
		m.step(now, segv)
		m.step(now, buried{})
		if got := say(m.step(now, recovered{})); got != "pause 1s" {
			t.Fatalf("did %q", got)
		}
		m.step(now, paused{})
		m.step(now, started{})
	}
}

func TestPause(t *testing.T) {
	p := Policy{MinPause: 100 * time.Millisecond, MaxPause: time.Second}
	var got []string
	for n := 1; n < 7; n++ {
		got = append(got, p.pause(n).String())
	}
	if s := strings.Join(got, " "); s != "100ms 200ms 400ms 800ms 1s 1s" {
		t.Error(s)
	}
}

func TestProgress(t *testing.T) {
	p := progress{first: 10*time.Second + 50*time.Millisecond, limit: time.Second, every: 100 * time.Millisecond}
	at := time.Duration(0)
	look := func(step time.Duration, beats uint64) bool { at += step; return p.look(at, beats) }
	for range 100 {
		if look(100*time.Millisecond, 0) {
			t.Fatal("hangs while it still may be starting")
		}
	}
	if !look(100*time.Millisecond, 0) {
		t.Error("does not hang 10.1 s after it was started")
	}
	for i := range uint64(100) {
		if look(100*time.Millisecond, i+1) {
			t.Fatal("hangs with progress at every look")
		}
	}
	for i := range 10 {
		if look(100*time.Millisecond, 100) {
			t.Fatalf("hangs after %d looks", i)
		}
	}
	if !look(100*time.Millisecond, 100) {
		t.Error("does not hang after 1.1 s of silence")
	}
	if look(100*time.Millisecond, 101) {
		t.Error("hangs after a beat")
	}
	if look(time.Hour, 101) {
		t.Error("hangs because the warden was stopped for an hour")
	}
}

func TestPolicyIsChecked(t *testing.T) {
	for _, p := range []Policy{{Window: -1}, {MinPause: time.Minute, MaxPause: time.Second}, {StopFor: -1}, {OrphanFor: -1}} {
		if _, err := p.withDefaults(); err == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
	p, err := Policy{}.withDefaults()
	if err != nil || p.Restarts != 5 || p.HangAfter != 2*time.Minute || p.StartFor != 10*time.Minute || p.OrphanFor != time.Minute {
		t.Errorf("%+v, %v", p, err)
	}
}
