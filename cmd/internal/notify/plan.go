package notify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// State is what was told, and what is about to be. The zero value has told nothing.
type State struct {
	Format int              `json:"format"`
	Alarms map[string]*Told `json:"alarms"` // by key and occurrence
	Ended  uint64           `json:"ended"`  // position up to which ended recoveries are told
	Begun  bool             `json:"begun"`  // Ended counts: what had ended before the first look is not told
	Number uint64           `json:"number"` // of the last message
}

const stateFormat = 1

// Told is an alarm as it was seen and told.
type Told struct {
	Alarm api.Alarm `json:"alarm"`
	First time.Time `json:"first"`         // seen
	Gone  time.Time `json:"gone,omitzero"` // not seen since; zero: it is there
	Last  time.Time `json:"last,omitzero"` // told; zero: not yet
}

// Kinds of messages.
const (
	KindAlarm     = "alarm"
	KindClear     = "clear"     // what was told of is over
	KindRecovered = "recovered" // a node died, and its work was taken over
	KindTest      = "test"
)

// Message is what a receiver gets.
type Message struct {
	ID     string      `json:"id"` // the same each time that it is delivered
	Kind   string      `json:"kind"`
	Group  string      `json:"group"`
	At     time.Time   `json:"at"`
	Title  string      `json:"title"` // one line
	Cause  string      `json:"cause,omitempty"`
	Alarms []api.Alarm `json:"alarms"` // that begin, last, or are over

	to []string // receivers; none: all
}

// Rules say what is told, when, and to whom.
type Rules struct {
	Group string
	// Of is the rule for events of a kind: that of an alarm, "death" of a node, "recovery" that has ended. nil: Rule{} for all.
	Of func(kind string) Rule
}

func (r Rules) of(kind string) Rule {
	if r.Of == nil {
		return Rule{}
	}
	return r.Of(kind)
}

// Rule says how events of one kind are told.
type Rule struct {
	Severity api.Severity  // Warning, or "": all; Critical: only these; None: never
	After    time.Duration // that an alarm, or its end, must have lasted
	Repeat   time.Duration // after which one that lasts is told again; 0: never
	To       []string      // receivers; none: all
}

// None is the severity that no event has.
const None api.Severity = "none"

// wants tells whether an event of a severity is told at all.
func (r Rule) wants(s api.Severity) bool {
	return r.Severity != None && (r.Severity != api.Critical || s == api.Critical)
}

// Seen is what there is now.
type Seen struct {
	Now        time.Time
	Alarms     []api.Alarm
	Recoveries []api.Recovery // open and lately ended
}

// Plan decides which messages there are. It changes nothing that it was given.
func Plan(before State, r Rules, seen Seen) (after State, messages []Message) {
	p := plan{State: clone(before), rules: r, seen: seen}
	p.look()
	p.forget()
	p.alarms()
	p.clears()
	p.recovered()
	return p.State, p.messages
}

func clone(s State) State {
	out := s
	out.Format, out.Alarms = stateFormat, make(map[string]*Told, len(s.Alarms))
	for key, t := range s.Alarms {
		copied := *t
		out.Alarms[key] = &copied
	}
	return out
}

type plan struct {
	State
	rules    Rules
	seen     Seen
	messages []Message
}

// keyOf names one occurrence of an alarm.
func keyOf(a api.Alarm) string { return a.Key() + "#" + a.Occurrence }

// look notes which alarms are there.
func (p *plan) look() {
	there := map[string]bool{}
	for _, a := range slices.Concat(p.seen.Alarms, deaths(p.seen.Recoveries)) {
		key := keyOf(a)
		r := p.rules.of(a.Kind)
		if r.Severity == None {
			delete(p.State.Alarms, key) // it is not over, but nobody wants to hear of it
		}
		if !r.wants(a.Severity) {
			continue
		}
		there[key] = true
		t, known := p.State.Alarms[key]
		if !known {
			t = &Told{First: p.seen.Now}
			p.State.Alarms[key] = t
		}
		if known && t.Alarm.Severity != a.Severity {
			t.Last = time.Time{} // it became worse, or better: that is news
		}
		t.Alarm, t.Gone = short(a), time.Time{}
	}
	for key, t := range p.State.Alarms {
		if !there[key] && t.Gone.IsZero() {
			t.Gone = p.seen.Now
		}
	}
}

// deaths are the runs that are being recovered, each as one alarm.
func deaths(all []api.Recovery) (list []api.Alarm) {
	byRun := map[string][]string{}
	first := map[string]api.Recovery{}
	for _, r := range all {
		if r.Ended == 0 && r.State != api.FenceParked {
			byRun[r.Run] = append(byRun[r.Run], r.Component)
			first[r.Run] = r
		}
	}
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		slices.Sort(byRun[run])
		list = append(list, api.Alarm{Kind: "death", About: first[run].Node, Occurrence: run, Severity: api.Warning, Since: first[run].Since,
			Text: fmt.Sprintf("node %s was closed (%s); its %s is being taken over", first[run].Node, first[run].Evidence, strings.Join(byRun[run], ", ")),
			Hint: "fencepost recoveries"})
	}
	return list
}

// batch are events of one cause that go to the same receivers: one message.
type batch struct {
	list []*Told
	to   []string
	ripe bool
}

// batches gathers events, by cause and receivers.
type batches map[string]*batch

func (b batches) add(t *Told, to []string, ripe bool) {
	key := cmp.Or(t.Alarm.Cause, t.Alarm.Kind) + "\n" + strings.Join(to, "\n")
	if b[key] == nil {
		b[key] = &batch{to: to}
	}
	b[key].list = append(b[key].list, t)
	b[key].ripe = b[key].ripe || ripe
}

// tell has those be told that are ripe, in the order of their causes.
func (b batches) tell(p *plan, kind string) (told []*Told) {
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if b[key].ripe {
			p.tell(kind, b[key].list, b[key].to)
			told = append(told, b[key].list...)
		}
	}
	return told
}

// alarms tells of those that have lasted, and again of those that go on.
func (p *plan) alarms() {
	due := batches{}
	for _, t := range p.State.Alarms {
		r := p.rules.of(t.Alarm.Kind)
		switch {
		case !t.Gone.IsZero():
		case t.Last.IsZero():
			due.add(t, r.To, p.seen.Now.Sub(t.First) >= r.After)
		case r.Repeat > 0 && p.seen.Now.Sub(t.Last) >= r.Repeat:
			due.add(t, r.To, true)
		}
	}
	for _, t := range due.tell(p, KindAlarm) {
		t.Last = p.seen.Now
	}
}

// clears tells that what was told of is over, unless the same thing is alarmed about anew, or nobody wants to hear of it any
// more.
func (p *plan) clears() {
	over := batches{}
	again := map[string]bool{}
	for _, t := range p.State.Alarms {
		again[t.Alarm.Key()] = again[t.Alarm.Key()] || t.Gone.IsZero()
	}
	for key, t := range p.State.Alarms {
		r := p.rules.of(t.Alarm.Kind)
		if t.Gone.IsZero() || p.seen.Now.Sub(t.Gone) < r.After && !t.Last.IsZero() {
			continue
		}
		delete(p.State.Alarms, key)
		if !t.Last.IsZero() && !again[t.Alarm.Key()] && r.wants(t.Alarm.Severity) {
			over.add(t, r.To, true)
		}
	}
	over.tell(p, KindClear)
}

// recovered tells of recoveries that have ended, those of one run in one message.
func (p *plan) recovered() {
	open := map[string]bool{}
	for _, r := range p.seen.Recoveries {
		open[r.Run] = open[r.Run] || r.Ended == 0
	}
	high := p.State.Ended
	byRun := map[string][]*Told{}
	for _, r := range p.seen.Recoveries {
		high = max(high, r.Ended)
		if r.Ended <= p.State.Ended || r.Evidence == "left" {
			continue
		}
		text := fmt.Sprintf("%s of node %s, which was closed (%s), was taken over by %s", r.Component, r.Node, r.Evidence, r.Recoverer)
		if r.State == "dropped" {
			text = fmt.Sprintf("%s of node %s, which was closed (%s), was dropped by an operator", r.Component, r.Node, r.Evidence)
		}
		byRun[r.Run] = append(byRun[r.Run], &Told{Alarm: api.Alarm{Kind: "recovery", About: r.Node + " " + r.Component, Severity: api.Warning, Text: text, Since: r.Since}})
	}
	p.State.Ended = high
	if !p.Begun {
		p.Begun = true
		return
	}
	r := p.rules.of("recovery")
	if !r.wants(api.Warning) {
		return
	}
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		p.tell(KindRecovered, byRun[run], r.To)
	}
}

// short cuts the words of an alarm, so that all that are remembered fit into one entry of the state cache (64 KiB).
func short(a api.Alarm) api.Alarm {
	a.Text, a.Hint, a.Cause = cut(a.Text, 200), cut(a.Hint, 100), cut(a.Cause, 100)
	return a
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// remembered bounds the state: far more alarms than a person can look at.
const remembered = 100

// forget drops the newest of too many alarms; they are told of when others are over.
func (p *plan) forget() {
	keys := slices.SortedFunc(maps.Keys(p.State.Alarms), func(a, b string) int {
		return cmp.Or(p.State.Alarms[a].First.Compare(p.State.Alarms[b].First), strings.Compare(a, b))
	})
	for _, key := range keys[min(len(keys), remembered):] {
		delete(p.State.Alarms, key)
	}
}

func (p *plan) tell(kind string, list []*Told, to []string) {
	p.Number++
	m := Message{ID: fmt.Sprintf("%s-%d", p.rules.Group, p.Number), Kind: kind, Group: p.rules.Group, At: p.seen.Now, Alarms: []api.Alarm{}, to: to}
	for _, t := range list {
		m.Alarms = append(m.Alarms, t.Alarm)
	}
	slices.SortFunc(m.Alarms, func(a, b api.Alarm) int {
		return cmp.Or(strings.Compare(string(a.Severity), string(b.Severity)), strings.Compare(keyOf(a), keyOf(b)))
	})
	m.Cause = m.Alarms[0].Cause
	m.Title = title(m)
	p.messages = append(p.messages, m)
}

func title(m Message) string {
	words := m.Alarms[0].Text
	if n := len(m.Alarms) - 1; n > 0 {
		words += fmt.Sprintf(" (and %d more)", n)
	}
	switch m.Kind {
	case KindClear:
		return "[fencepost " + m.Group + "] over: " + words
	case KindRecovered:
		return "[fencepost " + m.Group + "] recovered: " + words
	}
	return fmt.Sprintf("[fencepost %s] %s: %s", m.Group, m.Alarms[0].Severity, words)
}

// Alive tells whether the heartbeat may be sent.
func Alive(o api.Overview) bool {
	for _, a := range o.Alarms {
		switch {
		case a.Kind == "quorum" || a.Kind == "ledger" || a.Kind == "lease" && !a.Local:
			return false
		case a.Kind == "backup" && a.Severity == api.Critical:
			return false
		}
	}
	return o.Ready && o.Lease == "held"
}
