package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

var start = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

var usual = Rule{Severity: api.Warning, After: time.Minute, Repeat: 24 * time.Hour}

var rules = telling(usual, nil)

// telling are rules for kinds of events, and another for all others.
func telling(rest Rule, some map[string]Rule) Rules {
	return Rules{Group: "shop", Of: func(kind string) Rule {
		if r, ok := some[kind]; ok {
			return r
		}
		return rest
	}}
}

func alarm(kind, about string, change ...func(*api.Alarm)) api.Alarm {
	a := api.Alarm{Kind: kind, About: about, Severity: api.Warning, Text: kind + " of " + about}
	for _, c := range change {
		c(&a)
	}
	return a
}

func critical(a *api.Alarm)              { a.Severity = api.Critical }
func cause(text string) func(*api.Alarm) { return func(a *api.Alarm) { a.Cause = text } }
func occurrence(id string) func(*api.Alarm) {
	return func(a *api.Alarm) { a.Occurrence = id }
}

// script plans at moments after start and says what was told.
type script struct {
	t     *testing.T
	rules Rules
	state State
}

func (s *script) at(after time.Duration, seen Seen, want ...string) {
	s.t.Helper()
	seen.Now = start.Add(after)
	before := fmt.Sprintf("%+v", s.state)
	next, messages := Plan(s.state, s.rules, seen)
	if now := fmt.Sprintf("%+v", s.state); now != before {
		s.t.Errorf("after %v: Plan has changed what it was given", after)
	}
	s.state = next
	var got []string
	for _, m := range messages {
		var keys []string
		for _, a := range m.Alarms {
			keys = append(keys, a.Key())
		}
		got = append(got, m.Kind+" "+strings.Join(keys, " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("after %v (-want +got):\n%s", after, diff)
	}
}

func alarms(list ...api.Alarm) Seen { return Seen{Alarms: list} }

// TestOnceWithAnAllClear: an alarm is told when it has lasted a minute, once, again after a day, and its end.
func TestOnceWithAnAllClear(t *testing.T) {
	s := &script{t: t, rules: rules}
	late := alarm("backup", "shop", critical)
	s.at(0, alarms(late))
	s.at(59*time.Second, alarms(late))
	s.at(time.Minute, alarms(late), "alarm backup/shop")
	s.at(23*time.Hour, alarms(late))
	s.at(24*time.Hour+time.Minute, alarms(late), "alarm backup/shop")
	s.at(25*time.Hour, alarms())
	s.at(25*time.Hour+59*time.Second, alarms())
	s.at(25*time.Hour+time.Minute, alarms(), "clear backup/shop")
	s.at(26*time.Hour, alarms())
}

// TestWhatPassesIsNotTold: what came and went within a minute is never told, nor is an end that was none.
func TestWhatPassesIsNotTold(t *testing.T) {
	s := &script{t: t, rules: rules}
	flap := alarm("member", "n2")
	s.at(0, alarms(flap))
	s.at(30*time.Second, alarms())
	s.at(10*time.Minute, alarms())
	s.at(11*time.Minute, alarms(flap))
	s.at(12*time.Minute, alarms(flap), "alarm member/n2")
	s.at(13*time.Minute, alarms())
	s.at(13*time.Minute+30*time.Second, alarms(flap))
	s.at(20*time.Minute, alarms(flap))
}

// TestGroupedByCause: what has one cause is one message, with what came a moment later.
func TestGroupedByCause(t *testing.T) {
	s := &script{t: t, rules: rules}
	a, b, c := alarm("failed", "a", cause("disk full")), alarm("failed", "b", cause("disk full")), alarm("failed", "c", cause("no password"))
	s.at(0, alarms(a, c))
	s.at(50*time.Second, alarms(a, b, c))
	s.at(time.Minute, alarms(a, b, c), "alarm failed/a failed/b", "alarm failed/c")
	s.at(time.Hour, alarms(c))
	s.at(time.Hour+time.Minute, alarms(c), "clear failed/a failed/b")
}

// TestEachFailureIsTold: the next night's failure is told although last night's was, and only a good one is an all-clear.
func TestEachFailureIsTold(t *testing.T) {
	s := &script{t: t, rules: rules}
	first, second := alarm("failed", "shop", occurrence("t1")), alarm("failed", "shop", occurrence("t2"))
	s.at(0, alarms(first))
	s.at(time.Minute, alarms(first), "alarm failed/shop")
	s.at(time.Hour, alarms(second))
	s.at(2*time.Hour, alarms(second), "alarm failed/shop")
	s.at(3*time.Hour, alarms())
	s.at(4*time.Hour, alarms(), "clear failed/shop")
}

// TestWorseIsNews: an alarm that becomes critical is told anew, once.
func TestWorseIsNews(t *testing.T) {
	s := &script{t: t, rules: rules}
	s.at(0, alarms(alarm("backup", "shop")))
	s.at(time.Minute, alarms(alarm("backup", "shop")), "alarm backup/shop")
	s.at(time.Hour, alarms(alarm("backup", "shop", critical)), "alarm backup/shop")
	s.at(2*time.Hour, alarms(alarm("backup", "shop", critical)))
	s.rules = telling(Rule{Severity: api.Critical, After: time.Minute}, nil)
	s.at(3*time.Hour, alarms(alarm("backup", "shop", critical), alarm("clock", "n1")))
	s.at(4*time.Hour, alarms(alarm("backup", "shop", critical), alarm("clock", "n1")))
}

// TestEachKindHasItsRule: when it is told, and again, and to whom; what goes to others is another message.
func TestEachKindHasItsRule(t *testing.T) {
	s := &script{t: t, rules: telling(usual, map[string]Rule{
		"backup": {Repeat: time.Hour}, "failed": {After: 5 * time.Minute, To: []string{"night"}}, "member": {Severity: None}, "recovery": {Severity: None},
	})}
	late, failed, away, full := alarm("backup", "shop", critical), alarm("failed", "shop", cause("disk full")), alarm("member", "n2"), alarm("storage", "nas", cause("disk full"))
	all := alarms(late, failed, away, full)
	s.at(0, all, "alarm backup/shop")
	s.at(time.Minute, all, "alarm storage/nas")
	s.at(5*time.Minute, all, "alarm failed/shop")
	s.at(time.Hour, all, "alarm backup/shop")
	all.Recoveries = []api.Recovery{{Component: "backup", Node: "n2", Run: "bb", Evidence: "refused", State: "released", Recoverer: "n1", Ended: 9}}
	s.at(time.Hour+time.Minute, all)
	s.at(61*time.Minute+time.Second, alarms(failed, full), "clear backup/shop")
}

// TestWhatNobodyWantsToHearAnyMore: an event whose rule says so from now on is neither told again nor over; who wants to hear of
// it again does, as of a new one.
func TestWhatNobodyWantsToHearAnyMore(t *testing.T) {
	quiet := telling(usual, map[string]Rule{"failed": {Severity: None}})
	s := &script{t: t, rules: rules}
	failed := alarm("failed", "shop")
	s.at(0, alarms(failed))
	s.at(time.Minute, alarms(failed), "alarm failed/shop")
	s.rules = quiet
	s.at(time.Hour, alarms(failed))
	s.at(2*time.Hour, alarms())
	s.at(3*time.Hour, alarms())
	s.rules = rules
	s.at(4*time.Hour, alarms(failed))
	s.at(5*time.Hour, alarms(failed), "alarm failed/shop")
	s.at(6*time.Hour, alarms())
	s.rules = quiet
	s.at(7*time.Hour, alarms())
	s.rules = telling(Rule{Severity: api.Critical}, nil)
	s.at(8*time.Hour, alarms(alarm("backup", "shop", critical)), "alarm backup/shop")
	s.at(9*time.Hour, alarms(alarm("backup", "shop")), "clear backup/shop") // it is no longer what is told of
}

// TestRecoveries: one that took a millisecond is told, those of one run together, once; what was over before the first look
// and what left in order is not; one that lasts is told while it does.
func TestRecoveries(t *testing.T) {
	s := &script{t: t, rules: rules}
	ended := func(component, run string, position uint64) api.Recovery {
		return api.Recovery{Component: component, Node: "n2", Run: run, Evidence: "refused", State: "released", Recoverer: "n1", Ended: position}
	}
	open := api.Recovery{Component: "backup", Node: "n3", Run: "cc", Evidence: "lapsed", State: api.FenceRaised}
	old := ended("backup", "aa", 10)
	s.at(0, Seen{Recoveries: []api.Recovery{old}})
	fresh := []api.Recovery{ended("verify", "bb", 13), ended("backup", "bb", 12), old}
	s.at(time.Second, Seen{Recoveries: fresh}, "recovered recovery/n2 backup recovery/n2 verify")
	s.at(2*time.Second, Seen{Recoveries: fresh})
	left := ended("backup", "dd", 20)
	left.Evidence = "left"
	s.at(3*time.Second, Seen{Recoveries: append(fresh, left, open)})
	s.at(64*time.Second, Seen{Recoveries: append(fresh, left, open)}, "alarm death/n3")
	open.Ended, open.State, open.Recoverer = 30, "released", "n1"
	s.at(65*time.Second, Seen{Recoveries: append(fresh, left, open)}, "recovered recovery/n3 backup")
	s.at(10*time.Minute, Seen{Recoveries: append(fresh, left, open)}, "clear death/n3")
}

// TestTheStateIsBounded whatever there is to tell.
func TestTheStateIsBounded(t *testing.T) {
	var list []api.Alarm
	for i := range 3 * remembered {
		long := strings.Repeat("ü", 1000)
		list = append(list, alarm("failed", fmt.Sprintf("db%d", i), cause("x"), func(a *api.Alarm) { a.Text, a.Hint, a.Cause = long, long, long }))
	}
	state, _ := Plan(State{}, rules, Seen{Now: start, Alarms: list})
	if len(state.Alarms) != remembered {
		t.Errorf("%d alarms are remembered", len(state.Alarms))
	}
	_, messages := Plan(state, rules, Seen{Now: start.Add(time.Hour), Alarms: list})
	for _, v := range []any{state, messages[0]} {
		if b, err := json.Marshal(v); err != nil || len(b) > 64<<10 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
}

func TestTitles(t *testing.T) {
	late := []*Told{{Alarm: alarm("backup", "shop", critical)}, {Alarm: alarm("clock", "n1")}}
	for kind, want := range map[string]string{
		KindAlarm: "[fencepost shop] critical: backup of shop (and 1 more)", KindClear: "[fencepost shop] over: backup of shop (and 1 more)",
		KindRecovered: "[fencepost shop] recovered: backup of shop (and 1 more)",
	} {
		p := plan{rules: rules}
		if p.tell(kind, late, nil); p.messages[0].Title != want || p.messages[0].ID != "shop-1" {
			t.Errorf("%+v", p.messages[0])
		}
	}
}

// TestAlive is when the outside watcher is told that all is well.
func TestAlive(t *testing.T) {
	well := api.Overview{Status: api.Status{Ready: true, Lease: "held"}}
	for _, test := range []struct {
		name   string
		change func(*api.Overview)
		want   bool
	}{
		{"well", func(*api.Overview) {}, true},
		{"not ready", func(o *api.Overview) { o.Ready = false }, false},
		{"no lease", func(o *api.Overview) { o.Lease = "expired" }, false},
		{"no quorum", func(o *api.Overview) { o.Alarms = []api.Alarm{alarm("quorum", "shop", critical)} }, false},
		{"no ledger", func(o *api.Overview) { o.Alarms = []api.Alarm{alarm("ledger", "shop", critical)} }, false},
		{"overdue", func(o *api.Overview) { o.Alarms = []api.Alarm{alarm("backup", "shop", critical)} }, false},
		{"none yet", func(o *api.Overview) { o.Alarms = []api.Alarm{alarm("backup", "shop")} }, true},
		{"a storage is away", func(o *api.Overview) { o.Alarms = []api.Alarm{alarm("storage", "nas", critical)} }, true},
	} {
		o := well
		test.change(&o)
		if got := Alive(o); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
