package detect

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A script is a list of lines "<ms> <event> [yes|no|goodbye] -> proposal, proposal". The TTL is 3000 ms, ticks come each
// 100 ms by themselves up to the time of the next line, and what they propose must be listed on that line. One run "A"
// is open from 0 on, with addresses of its own interfaces.
type script struct {
	name  string
	set   func(*Settings)
	open  func(*Event)
	begin int // ms on the leader's clock when its term begins and it meets the run
	lines []string
}

var kinds = map[string]Kind{
	"opened": Opened, "closed": Closed, "renewed": Renewed, "stream": StreamOpened, "ended": StreamEnded, "alive": GossipAlive,
	"dead": GossipDead, "reported": Reported, "probed": Probed, "pinged": Pinged, "voters": VotersAsked, "failed": CloseFailed, "obituary": Obituary, "outlived": Outlived, "tick": Tick,
}

func (p Proposal) String() string {
	switch p.Act {
	case Probe:
		return "probe"
	case Ping:
		return "ping"
	case AskVoters:
		return "ask"
	case Suspect:
		return "suspect"
	case Unsuspect:
		return "unsuspect"
	case PingDead:
		return "ping-dead"
	case Glance:
		return "glance"
	}
	return map[Evidence]string{Refused: "close-refused", Lapsed: "close-lapsed", Buried: "close-buried"}[p.Evidence]
}

func TestScripts(t *testing.T) {
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) { play(t, s) })
	}
}

func TestRule03_AProofIsVoidWhileTheRunAnswers(t *testing.T) { playRule(t, "rule 3: ") }

func TestRule06_LapsedIsMeasuredOnThisLeadersClock(t *testing.T) { playRule(t, "rule 6: ") }

func playRule(t *testing.T, rule string) {
	n := 0
	for _, s := range scripts {
		if strings.HasPrefix(s.name, rule) {
			n++
			t.Run(strings.TrimPrefix(s.name, rule), func(t *testing.T) { play(t, s) })
		}
	}
	if n < 3 {
		t.Errorf("%d scripts", n)
	}
}

func play(t *testing.T, s script) {
	set := Settings{TTL: 3 * time.Second, Tick: 100 * time.Millisecond}
	if s.set != nil {
		s.set(&set)
	}
	a := RunID{'A'}
	first := Event{Kind: Opened, Run: a, OwnInterface: true}
	if s.open != nil {
		s.open(&first)
	}
	clock := time.Duration(s.begin) * time.Millisecond
	m := New(set, clock)
	m.Step(clock, first)
	for _, line := range s.lines {
		in, want, _ := strings.Cut(line, "->")
		f := strings.Fields(in)
		var ms int
		if _, err := fmt.Sscan(f[0], &ms); err != nil {
			t.Fatal(err)
		}
		at := time.Duration(ms) * time.Millisecond
		got := []string{}
		add := func(ps []Proposal) {
			for _, p := range ps {
				got = append(got, p.String())
			}
		}
		starved := len(f) > 2 && f[2] == "late"
		for !starved && clock+set.Tick <= at {
			clock += set.Tick
			add(m.Step(clock, Event{Kind: Tick}))
		}
		if starved {
			clock = at
		}
		e := Event{Kind: kinds[f[1]], Run: a}
		if len(f) > 2 {
			e.Yes, e.Goodbye = f[2] == "yes", f[2] == "goodbye"
		}
		if f[1] != "tick" || starved {
			add(m.Step(at, e))
		}
		if g, w := strings.Join(got, ", "), strings.TrimSpace(want); g != w {
			t.Fatalf("%q: proposed %q, want %q", line, g, w)
		}
	}
}

var scripts = []script{
	{name: "killed: broken stream, refusal and no pong close at once", lines: []string{
		"10 stream ->", "20 renewed ->", "900 ended -> probe", "905 probed yes -> ping", "906 pinged no -> close-refused", "950 closed ->", "9000 tick ->",
	}},
	{name: "rule 3: a run that answers a ping after the refusal stays", lines: []string{
		"10 stream ->", "900 ended -> probe", "905 probed yes -> ping", "906 pinged yes ->", "1000 stream ->", "1001 renewed ->", "2400 renewed ->", "3200 tick ->",
	}},
	{name: "a session that came back voids the refusal", lines: []string{
		"10 stream ->", "900 ended -> probe", "901 stream ->", "905 probed yes ->", "1000 renewed ->",
	}},
	{name: "rule 3: a report closes nobody, the leader probes at once", lines: []string{
		"10 stream ->", "900 ended goodbye ->", "950 reported -> probe", "958 probed yes -> ask", "960 voters yes -> ping", "961 pinged yes ->", "1000 stream ->", "1001 renewed ->", "1950 reported -> suspect", "1960 renewed -> unsuspect",
	}},
	{name: "a session that came back voids the silence of a ping", lines: []string{
		"10 stream ->", "900 ended -> probe", "905 probed yes -> ping", "906 stream ->", "907 pinged no ->", "1000 renewed ->",
	}},
	{name: "a firewall that resets one port is suspicion, withdrawn by the next renewal", lines: []string{
		"10 stream ->", "900 ended -> probe", "1150 probed no -> suspect", "1200 stream ->", "1201 renewed -> unsuspect",
	}},
	{name: "a run that renews through another member is not proven dead by a firewall that refuses this leader", lines: []string{
		"10 stream ->", "900 ended -> probe", "902 renewed ->", "905 probed yes -> ping", "906 pinged no -> suspect", "2000 renewed -> probe",
		"2005 probed yes -> ping", "2006 pinged no ->", "2890 renewed ->",
	}},
	{name: "a renewal that was received before the stream broke is no detour", lines: []string{
		"10 stream ->", "880 renewed ->", "900 ended -> probe", "905 probed yes -> ping", "906 pinged no -> close-refused",
	}},
	{name: "a goodbye is no hint", lines: []string{"10 stream ->", "900 ended goodbye ->", "950 stream ->", "1000 renewed ->"}},
	{name: "no proof behind address translation", open: func(e *Event) { e.OwnInterface = false }, lines: []string{
		"10 stream ->", "900 ended -> suspect",
	}},
	{name: "refused can be switched off", set: func(s *Settings) { s.NoRefused = true }, lines: []string{
		"10 stream ->", "900 ended -> suspect", "2900 dead ->", "3100 tick -> close-lapsed",
	}},
	{name: "lapsed: silence for the TTL while gossip holds it dead", lines: []string{
		"10 stream ->", "20 renewed ->", "1000 dead -> suspect", "3000 tick ->", "3100 tick -> close-lapsed",
	}},
	{name: "gossip alone closes nobody", lines: []string{
		"10 stream ->", "20 renewed ->", "100 dead -> suspect", "900 renewed ->", "1800 renewed ->", "2700 renewed ->", "3600 renewed ->", "3650 alive -> unsuspect",
	}},
	{name: "lapsed: three TTLs whatever gossip says", lines: []string{
		"10 stream ->", "20 renewed ->", "8900 tick -> suspect", "9100 tick -> close-lapsed",
	}},
	{name: "rule 6: a starved leader's time does not count", lines: []string{
		"10 stream ->", "20 renewed ->", "1000 dead -> suspect", "9000 tick late ->", "10900 tick ->", "11200 tick -> close-lapsed",
	}},
	{name: "rule 6: it counts from the receipt of the last renewal", lines: []string{
		"10 stream ->", "1500 renewed ->", "1600 dead -> suspect", "4500 tick ->", "4600 tick -> close-lapsed",
	}},
	{name: "rule 6: a new leader gives a full TTL from its own start", begin: 60000, lines: []string{
		"60100 tick -> glance", "60110 pinged yes ->", "60500 dead -> probe", "60600 probed no -> suspect", "61600 probed no -> probe", "62800 probed no -> probe", "63000 tick ->", "63100 tick -> close-lapsed",
	}},
	{name: "rule 6: a delay of a quarter of the TTL counts, and is not starvation", lines: []string{
		"10 stream ->", "20 renewed ->", "1000 dead -> suspect", "1800 tick late ->", "3000 tick ->", "3100 tick -> close-lapsed",
	}},
	{name: "a closing that failed is tried again, and one outstanding is not repeated", lines: []string{
		"10 stream ->", "1000 dead -> suspect", "3100 tick -> close-lapsed", "4000 tick ->", "4010 failed ->", "4100 tick -> close-lapsed",
	}},
	{name: "a new leader probes who does not come", lines: []string{
		"100 tick -> glance", "110 pinged yes ->", "950 tick ->", "1000 tick -> probe", "1250 probed yes -> ask", "1251 voters yes -> ping", "1252 pinged no -> close-refused",
	}},
	{name: "who died beside the last leader is not waited for", lines: []string{
		"100 tick -> glance", "101 pinged no -> probe", "105 probed yes -> ask", "106 voters yes -> ping", "107 pinged no -> close-refused",
	}},
	{name: "rule 3: who has not come and is refused to this leader alone is suspected, until its renewal comes by a detour", lines: []string{
		"100 tick -> glance", "101 pinged no -> probe", "105 probed yes -> ask", "110 voters no -> suspect", "1100 renewed ->",
		"1200 tick -> probe", "1205 probed yes -> ask", "1210 voters yes -> ping", "1211 pinged no ->", "2100 renewed ->", "2300 tick -> probe",
	}},
	{name: "who came back since it was asked about is not asked about again", lines: []string{
		"100 tick -> glance", "101 pinged no -> probe", "105 probed yes -> ask", "106 stream ->", "107 voters yes ->", "1000 renewed ->", "1600 tick ->",
	}},
	{name: "who comes while it is pinged is left alone", lines: []string{
		"100 tick -> glance", "101 stream ->", "102 renewed ->", "103 pinged no ->", "1000 renewed ->", "1600 tick ->",
	}},
	{name: "what is heard of it while it is pinged is not forgotten", lines: []string{
		"100 tick -> glance", "101 dead ->", "102 pinged yes -> probe", "350 probed no -> suspect",
	}},
	{name: "nobody is pinged early that came, or of which nothing can be proven", open: func(e *Event) { e.OwnInterface = false }, lines: []string{
		"1400 tick ->", "1600 tick -> suspect",
	}},
	{name: "an unproven one is probed again each second", lines: []string{
		"100 tick -> glance", "110 pinged yes ->", "1000 tick -> probe", "1250 probed no -> suspect", "2200 tick ->", "2300 tick -> probe", "2400 probed yes -> ask", "2401 voters yes -> ping", "2402 pinged no -> close-refused",
	}},
	{name: "a former leader is closed by what the voters saw", open: func(e *Event) { e.FormerLeader = true }, lines: []string{
		"5 reported -> ask", "8 voters yes -> ping", "9 pinged no -> close-refused",
	}},
	{name: "a former leader that nobody saw refused is suspected only", open: func(e *Event) { e.FormerLeader = true }, lines: []string{
		"5 reported -> ask", "8 voters no -> suspect", "100 tick -> glance", "110 pinged yes ->", "900 stream ->", "901 renewed -> unsuspect",
	}},
	{name: "a watchdog's lie about a run with a session is suspicion", lines: []string{
		"10 stream ->", "500 reported -> suspect", "900 renewed -> unsuspect",
	}},
	{name: "an obituary and no answer to a ping sent after it close at once, the stream's end or not", lines: []string{
		"10 stream ->", "20 renewed ->", "900 obituary -> ping-dead", "901 outlived no -> close-buried", "905 ended ->", "910 closed ->",
	}},
	{name: "rule 3: an obituary is void while the run answers", lines: []string{
		"10 stream ->", "20 renewed ->", "900 obituary -> ping-dead", "901 outlived yes -> suspect", "950 renewed -> unsuspect", "1900 renewed ->",
	}},
	{name: "an obituary behind address translation", open: func(e *Event) { e.OwnInterface = false }, lines: []string{
		"10 stream ->", "900 ended -> suspect", "901 obituary -> ping-dead", "902 outlived no -> close-buried",
	}},
	{name: "an obituary of a run that is being closed does nothing", lines: []string{
		"10 stream ->", "900 ended -> probe", "905 probed yes -> ping", "906 pinged no -> close-refused", "907 obituary ->",
	}},
	{name: "events about a closed run do nothing", lines: []string{"10 closed ->", "20 dead ->", "30 ended ->", "9500 tick ->"}},
}

func TestClosingHoldsRenewals(t *testing.T) {
	m := New(Settings{TTL: time.Second, Tick: 100 * time.Millisecond, NoRefused: true}, 0)
	a := RunID{1}
	m.Step(0, Event{Kind: Opened, Run: a})
	m.Step(0, Event{Kind: GossipDead, Run: a})
	for at := time.Duration(0); at <= 1100*time.Millisecond; at += 100 * time.Millisecond {
		m.Step(at, Event{Kind: Tick})
	}
	if !m.Closing(a) {
		t.Fatal("a closing is outstanding, yet renewals would be acknowledged")
	}
	m.Step(1200*time.Millisecond, Event{Kind: CloseFailed, Run: a})
	if m.Closing(a) {
		t.Fatal("the closing failed, yet renewals wait for ever")
	}
}
