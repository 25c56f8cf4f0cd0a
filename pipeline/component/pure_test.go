package component

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var t0 = time.Date(2026, 5, 2, 10, 0, 0, 0, time.UTC)

func event(eventType string, minute int, success bool) Event {
	return Event{Type: eventType, Start: t0.Add(time.Duration(minute) * time.Minute), Success: success}
}

func TestMatch(t *testing.T) {
	it := Item{Type: "batch", ID: "b1", ChangedAt: t0.Add(5 * time.Minute), Events: []Event{
		event("scan", 1, false), event("scan", 3, true), event("scan", 2, false), // the newest is not the last
		event("check", 4, false), event("early", 5, true), event("late", 6, false),
	}}
	for _, c := range []struct {
		name    string
		trigger Trigger
		why     []string // the beginning of each reason
	}{
		{"empty", Trigger{}, nil},
		{"past", Trigger{Past: []string{"scan"}}, nil},
		{"past, newest failed", Trigger{Past: []string{"check"}}, []string{"the newest check failed"}},
		{"past, none", Trigger{Past: []string{"x"}}, []string{"there is no x yet"}},
		{"past failed", Trigger{PastFailed: []string{"check"}}, nil},
		{"past failed, newest succeeded", Trigger{PastFailed: []string{"scan"}}, []string{"the newest scan succeeded"}},
		{"past failed, none", Trigger{PastFailed: []string{"x"}}, []string{"there is no x, a failed one"}},
		{"future", Trigger{Future: []string{"x"}}, nil},
		{"future, a failed one is one", Trigger{Future: []string{"check"}}, []string{"there is already an event check (failed)"}},
		{"old, none", Trigger{Old: []string{"x"}}, nil},
		{"old, older", Trigger{Old: []string{"scan"}}, nil},
		{"old, not newer", Trigger{Old: []string{"early"}}, nil},
		{"old, newer, whatever its outcome", Trigger{Old: []string{"late"}}, []string{"the newest late"}},
		{"types", Trigger{Types: []string{"x", "batch"}}, nil},
		{"types, another", Trigger{Types: []string{"x"}}, []string{"type batch"}},
		{"items", Trigger{Items: []string{"b1"}}, nil},
		{"items, another", Trigger{Items: []string{"b2"}}, []string{"item b1"}},
		{"all fields count", Trigger{Past: []string{"scan", "check"}, Future: []string{"x", "late"}, Types: []string{"x"}},
			[]string{"the newest check failed", "there is already an event late", "type batch"}},
	} {
		ok, why := c.trigger.Match(it)
		if ok != (len(c.why) == 0) || !slices.EqualFunc(why, c.why, strings.HasPrefix) {
			t.Errorf("%s: %v, %q, want %q", c.name, ok, why, c.why)
		}
	}
}

func TestNewestOfEqualTimes(t *testing.T) {
	a, b, c := event("x", 1, true), event("x", 1, false), event("x", 1, true)
	a.Token, b.Token, c.Token = 2, 3, 3
	if e, ok := (Item{Events: []Event{b, a}}).Newest("x"); !ok || e.Token != 3 {
		t.Errorf("newest is %+v, want the larger token", e)
	}
	if e, _ := (Item{Events: []Event{b, c}}).Newest("x"); !e.Success {
		t.Error("of one token the later stored counts")
	}
	zero := Event{Type: "x"}
	if _, ok := (Item{Events: []Event{zero}}).Newest("x"); !ok {
		t.Error("an event without a time is an event")
	}
}

func drawItem(t *rapid.T) Item {
	it := Item{
		Type: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "type"), ID: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "id"),
		ChangedAt: t0.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "changed")) * time.Minute),
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "events") {
		e := event(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "event"), rapid.IntRange(0, 3).Draw(t, "minute"), rapid.Bool().Draw(t, "ok"))
		e.Token = uint64(i)
		it.Events = append(it.Events, e)
	}
	return it
}

func drawTrigger(t *rapid.T) Trigger {
	list := func(name string, of ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, 2, rapid.ID[string]).Draw(t, name)
	}
	return Trigger{list("past", "x", "y"), list("failed", "x", "y"), list("future", "x", "y"), list("old", "x", "y"),
		list("types", "a", "b"), list("items", "1", "2")}
}

// TestMatchIsWhatItSays: the same law over sorted events, in the words of the seed.
func TestMatchIsWhatItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it, tr := drawItem(t), drawTrigger(t)
		sorted := slices.Clone(it.Events)
		slices.SortStableFunc(sorted, func(a, b Event) int { return a.Start.Compare(b.Start) })
		newest := map[string]Event{}
		for _, e := range sorted {
			newest[e.Type] = e // equal times: tokens grow in the order of storing
		}
		all := func(list []string, f func(e Event, found bool) bool) bool {
			return !slices.ContainsFunc(list, func(typ string) bool { e, ok := newest[typ]; return !f(e, ok) })
		}
		want := all(tr.Past, func(e Event, ok bool) bool { return ok && e.Success }) &&
			all(tr.PastFailed, func(e Event, ok bool) bool { return ok && !e.Success }) &&
			all(tr.Future, func(_ Event, ok bool) bool { return !ok }) &&
			all(tr.Old, func(e Event, ok bool) bool { return !ok || !e.Start.After(it.ChangedAt) }) &&
			(len(tr.Types) == 0 || slices.Contains(tr.Types, it.Type)) && (len(tr.Items) == 0 || slices.Contains(tr.Items, it.ID))
		got, why := tr.Match(it)
		if got != want || got != (len(why) == 0) {
			t.Fatalf("%+v on %+v: %v %q, want %v", tr, it, got, why, want)
		}
	})
}

func TestRetryTrigger(t *testing.T) {
	own := Trigger{Past: []string{"scan"}, Future: []string{"me", "x"}, Old: []string{"y"}}
	again, ok := own.Retry("me")
	want := Trigger{Past: []string{"scan"}, PastFailed: []string{"me"}, Future: []string{"x"}, Old: []string{"y"}}
	if !ok || !reflect.DeepEqual(again, want) {
		t.Errorf("retry is %+v, want %+v", again, want)
	}
	if !slices.Equal(own.Future, []string{"me", "x"}) {
		t.Error("the trigger itself was changed")
	}
	if _, ok := own.Retry("scan"); ok {
		t.Error("a trigger that does not mind an event has no retry for it")
	}
}

func TestNames(t *testing.T) {
	if got := PollLock("SampleComponent"); got != "/SBOI/SampleComponent" {
		t.Error(got)
	}
	if got := ItemLock("SampleComponent", "400022028241", 1); got != "/SampleComponent/B400022028241-RT1" {
		t.Error(got)
	}
	if RunLock("c", "n", 0) == RunLock("c", "n", 1) {
		t.Error("seats share a lock")
	}
}

func TestReportIsBounded(t *testing.T) {
	var r Report
	for i := range MaxFailures + 7 {
		r.Fail(Failure{Item: strings.Repeat("i", 999), Text: fmt.Sprint("failure ", i), Details: strings.Repeat("ü", MaxText)})
	}
	list := r.List()
	if len(list) != MaxFailures+1 || list[MaxFailures].Text != "and 7 more failures" || r.Outcome != Failed {
		t.Errorf("%d entries, the last is %+v", len(list), list[len(list)-1])
	}
	if text, err := json.Marshal(r); err != nil || len(text) > 64<<10 {
		t.Errorf("the report takes %d bytes, %v", len(text), err)
	}
	if d := list[0].Details; len(d) > MaxText || !strings.HasSuffix(d, "ü…") {
		t.Errorf("details of %d bytes that end in %q", len(d), d[len(d)-6:])
	}
	if got := r.Details(); got != "failure 0 (and 26 more failures)" {
		t.Errorf("details are %q", got)
	}
}

func TestMerge(t *testing.T) {
	at := func(m int) time.Time { return t0.Add(time.Duration(m) * time.Minute) }
	bad := Report{Started: at(2), Ended: at(9)}
	bad.Fail(Failure{Text: "one"})
	for range MaxFailures {
		bad.Fail(Failure{Text: "more"})
	}
	got := Merge(Report{Started: at(3), Ended: at(4)}, bad, bad, Report{Outcome: Failed, Started: at(0), Unpreservable: true})
	if got.Outcome != Failed || !got.Started.Equal(at(2)) || !got.Ended.Equal(at(9)) || got.Unpreservable {
		t.Errorf("merged: %+v", got)
	}
	if len(got.Failures) != MaxFailures || got.More != MaxFailures+2 {
		t.Errorf("%d failures and %d more", len(got.Failures), got.More)
	}
	if got := Merge(); got.Outcome != Done || got.Unpreservable {
		t.Errorf("of nothing: %+v", got)
	}
	if got := Merge(Report{Unpreservable: true}); !got.Unpreservable {
		t.Errorf("of an unpreservable one: %+v", got)
	}
}

func TestMergeInAnyGrouping(t *testing.T) {
	draw := func(t *rapid.T) Report {
		var r Report
		for range rapid.IntRange(0, 30).Draw(t, "failures") {
			r.Fail(Failure{Text: "x"})
		}
		if rapid.Bool().Draw(t, "timed") {
			r.Started = t0.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "start")) * time.Minute)
			r.Ended = r.Started.Add(time.Minute)
		}
		return r
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw(t), draw(t), draw(t)
		all, left, right := Merge(a, b, c), Merge(Merge(a, b), c), Merge(a, Merge(b, c))
		if !reflect.DeepEqual(all, left) || !reflect.DeepEqual(all, right) {
			t.Fatalf("%d+%d, %d+%d and %d+%d failures", len(all.Failures), all.More, len(left.Failures), left.More, len(right.Failures), right.More)
		}
		sum := 0
		for _, r := range []Report{a, b, c} {
			sum += len(r.Failures) + r.More
		}
		if len(all.Failures)+all.More != sum || len(all.Failures) > MaxFailures {
			t.Fatalf("%d failures and %d more of %d", len(all.Failures), all.More, sum)
		}
	})
}

func TestReportJSON(t *testing.T) {
	r := Report{Outcome: Failed, Failures: []Failure{{Item: "b1", Type: "t", Text: "x"}}, More: 2, Started: t0, Unpreservable: true}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("%s is read as %+v, %v", text, back, err)
	}
	for in, want := range map[string]Report{
		`{"outcome":"done"}`:                            {Outcome: Done},
		`{"outcome":"done","preservable":true}`:         {Outcome: Done},
		`{"outcome":"done","preservable":false}`:        {Outcome: Done, Unpreservable: true},
		`{"outcome":"done","failures":[{"text":"oh"}]}`: {Outcome: Failed, Failures: []Failure{{Text: "oh"}}},
	} {
		var got Report
		if err := json.Unmarshal([]byte(in), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{`{}`, `{"outcome":"fine"}`, `[]`, `{"outcome":1}`} {
		if err := json.Unmarshal([]byte(in), new(Report)); err == nil {
			t.Errorf("%s: no error", in)
		}
	}
}

func TestFairness(t *testing.T) {
	f := Fairness{BackOff: time.Minute, MaxBackOff: 10 * time.Minute, QuarantineAfter: 3}
	r := Record{Created: t0, LastAttempt: t0.Add(time.Minute), Attempts: 1}
	for i, wait := range []time.Duration{1, 2, 4, 8, 10, 10} {
		r = f.AfterFailure(r, t0)
		if got := r.NotBefore.Sub(t0); got != wait*time.Minute || r.Quarantined != (i >= 2) || r.Failures != i+1 {
			t.Errorf("after %d failures: waits %s, %+v", i+1, got, r)
		}
	}
	if r.Ready(t0.Add(time.Hour)) {
		t.Error("a quarantined item is tried")
	}
	if r = Released(r); !r.Ready(t0) || r.Failures != 0 || !r.Created.Equal(t0) {
		t.Errorf("released: %+v", r)
	}
	if r = AfterSuccess(f.AfterFailure(r, t0)); r.Failures != 0 || r.Attempts != 0 || !r.NotBefore.IsZero() {
		t.Errorf("after success: %+v", r)
	}
	if never := (Fairness{QuarantineAfter: -1}).AfterFailure(Record{Failures: 1000}, t0); never.Quarantined {
		t.Error("quarantined although that is off")
	}
}

func TestWaitsOnlyGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Fairness{BackOff: time.Duration(rapid.Int64Range(1, 1e15).Draw(t, "first")), MaxBackOff: time.Duration(rapid.Int64Range(1, 1e18).Draw(t, "most"))}
		n := rapid.IntRange(1, 200).Draw(t, "failures")
		if a, b := f.Wait(n), f.Wait(n+1); a <= 0 || b < a || b > max(f.MaxBackOff, f.BackOff) {
			t.Fatalf("waits %s, then %s", a, b)
		}
	})
}

func TestOrder(t *testing.T) {
	at := func(m int) time.Time { return t0.Add(time.Duration(m) * time.Minute) }
	item := func(id string, created, last, notBefore int) Item {
		r := Record{Created: at(created)}
		if last >= 0 {
			r.LastAttempt = at(last)
		}
		if notBefore >= 0 {
			r.NotBefore = at(notBefore)
		}
		return Item{ID: id, Record: r}
	}
	items := []Item{
		item("tried", 0, 10, -1), item("failed", 0, 5, 15), item("new", 12, -1, -1), item("newest", 16, -1, -1),
		item("waits", 0, 5, 31), item("old", 1, -1, -1), item("same", 1, -1, -1),
		{ID: "quarantined", Record: Record{Quarantined: true}},
	}
	var got []string
	for _, it := range Order(items, at(30)) {
		got = append(got, it.ID)
	}
	if want := "old same tried new failed newest"; strings.Join(got, " ") != want {
		t.Errorf("order is %q, want %q", got, want)
	}
	if items[0].ID != "tried" {
		t.Error("the argument was changed")
	}
}

// TestNobodyIsOvertakenForEver: with new items arriving all the time, an item that is tried again and again still has its
// turn, and so has each of the others.
func TestNobodyIsOvertakenForEver(t *testing.T) {
	f := Fairness{BackOff: time.Minute, MaxBackOff: time.Minute, QuarantineAfter: -1}
	items := map[string]Item{"bad": {ID: "bad", Record: Record{Created: t0}}}
	tries, lastTry := 0, 0
	for minute := range 500 {
		now := t0.Add(time.Duration(minute) * time.Minute)
		for i := range 1 + minute%2 { // a little more than can be done
			id := fmt.Sprintf("n%03d-%d", minute, i)
			items[id] = Item{ID: id, Record: Record{Created: now}}
		}
		list := make([]Item, 0, len(items))
		for _, it := range items {
			list = append(list, it)
		}
		first := Order(list, now)[0]
		if first.ID == "bad" {
			tries, lastTry = tries+1, minute
			first.Record.LastAttempt = now
			first.Record = f.AfterFailure(first.Record, now)
			items["bad"] = first
			continue
		}
		delete(items, first.ID)
	}
	if tries < 3 || lastTry < 250 || len(items) > 300 {
		t.Errorf("the bad one was tried %d times, last at minute %d; %d items wait", tries, lastTry, len(items))
	}
}

func TestExitCodes(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("why: %w", err) }
	for _, c := range []struct {
		name string
		tick Tick
		want ExitCode
	}{
		{"nothing to do", Tick{}, ExitDone},
		{"done", Tick{Counts: Counts{Done: 3, Stale: 1, Busy: 2, Unpreserved: 1}}, ExitDone},
		{"an item failed", Tick{Counts: Counts{Done: 3, Failed: 1}}, ExitFailed},
		{"broken", Tick{Err: errors.New("x")}, ExitCannotRun},
		{"not stored", Tick{Counts: Counts{NotStored: 1}}, ExitCannotRun},
		{"busy", Tick{Err: wrap(ErrBusy)}, ExitBusy},
		{"lost", Tick{Counts: Counts{Lost: 1, Failed: 1}, Err: wrap(ErrLost)}, ExitLeaseLost},
		{"may not start", Tick{Err: wrap(ErrLost)}, ExitLeaseLost},
		{"stopped runner", Tick{Err: ErrStopped}, ExitCannotRun},
		{"not stopped", Tick{Counts: Counts{NotStopped: 1, Lost: 1}}, ExitNotStopped},
	} {
		if got := c.tick.Code(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	for code, want := range []ExitCode{0, 1, 2, 2, 2, 2} {
		if got := ExitCode(code).Compat(); got != want {
			t.Errorf("compat of %d is %d, want %d", code, got, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	oops := errors.New("oops")
	failed := Report{}
	failed.Fail(Failure{Text: "bad page"})
	for _, c := range []struct {
		name    string
		ending  ending
		outcome Outcome
		stored  bool
		details string
	}{
		{"success", ending{}, Done, true, ""},
		{"failure", ending{report: failed}, Failed, true, "bad page"},
		{"error", ending{err: oops}, Failed, true, "oops"},
		{"as if it had never been", ending{report: Report{Unpreservable: true}}, Done, false, ""},
		{"timed out, says done", ending{cause: ErrTimeLimit}, Failed, true, "it did not end within its time limit"},
		{"timed out, would rather not be", ending{cause: ErrTimeLimit, report: Report{Unpreservable: true}}, Failed, true, "it did not end within its time limit"},
		{"timed out with an error", ending{cause: ErrTimeLimit, err: oops}, Failed, true, "it did not end within its time limit (and 1 more failures)"},
		{"stopped, but done", ending{cause: ErrStopping}, Done, true, ""},
		{"stopped", ending{cause: ErrStopping, err: oops}, Done, false, ""},
	} {
		report, stored := verdict(c.ending, "b1")
		if stored != c.stored || stored && report.Outcome != c.outcome || stored && report.Details() != c.details {
			t.Errorf("%s: %+v, %v", c.name, report, stored)
		}
	}
}

// What stores ask: a claim begins and ends once, and one that a later one has overtaken changes nothing.
func TestKeptRules(t *testing.T) {
	old, heir := Claim{"c", "x", 1, 7}, Claim{"c", "x", 2, 9}
	done := func(c Claim) Result { return Result{Event: Event{Type: "c", Token: c.Token, Success: true}} }
	k, fenced := Kept{Item: Item{ID: "x"}}.AfterBegin(old, t0)
	if fenced || k.Records["c"].Attempts != 1 {
		t.Fatalf("begun: %+v, %v", k, fenced)
	}
	if again, fenced := k.AfterBegin(old, t0.Add(time.Hour)); fenced || !reflect.DeepEqual(again, k) {
		t.Errorf("begun twice: %+v, %v", again, fenced)
	}
	if _, fenced := k.AfterFinish(heir, done(heir)); !fenced {
		t.Error("who has not begun ends")
	}
	k, fenced = k.AfterBegin(heir, t0)
	if fenced || k.Records["c"].Attempts != 2 {
		t.Fatalf("the heir begins: %+v, %v", k, fenced)
	}
	if late, fenced := k.AfterBegin(old, t0); !fenced || !reflect.DeepEqual(late, k) {
		t.Errorf("a late begin: %+v, %v", late, fenced)
	}
	if late, fenced := k.AfterFinish(old, done(old)); !fenced || !reflect.DeepEqual(late, k) {
		t.Errorf("a late result: %+v, %v", late, fenced)
	}
	if other, fenced := k.AfterBegin(Claim{"d", "x", 1, 8}, t0); fenced || other.Records["c"].Attempts != 2 || other.Records["d"].Attempts != 1 {
		t.Errorf("another component: %+v, %v", other, fenced)
	}
	k, fenced = k.AfterFinish(heir, done(heir))
	if fenced || len(k.Item.Events) != 1 || k.Item.RoundTrip != 1 {
		t.Fatalf("the heir ends: %+v, %v", k, fenced)
	}
	if again, fenced := k.AfterFinish(heir, done(heir)); fenced || !reflect.DeepEqual(again, k) {
		t.Errorf("ended twice: %+v, %v", again, fenced)
	}
}
