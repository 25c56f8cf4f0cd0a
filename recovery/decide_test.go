package recovery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecide(t *testing.T) {
	now := time.Unix(1000, 0)
	later := now.Add(time.Second)
	a := func(component string, index uint64) Appointed {
		return Appointed{Ref: Ref{Component: component, Node: "n", Run: "r", Index: index}}
	}
	k := func(component string) key { return key{component, "r"} }
	for _, tc := range []struct {
		name  string
		list  []Appointed
		slots map[key]slot
		hold  map[key]time.Time
		want  plan
	}{
		{name: "nothing to do"},
		{
			name: "new appointments start, oldest first",
			list: []Appointed{a("x", 9), a("y", 4)},
			want: plan{start: []Appointed{a("y", 4), a("x", 9)}},
		},
		{
			name:  "what runs is left alone",
			list:  []Appointed{a("x", 4)},
			slots: map[key]slot{k("x"): {4, phaseRunning}},
		},
		{
			name:  "not ours any more",
			slots: map[key]slot{k("x"): {4, phaseRunning}, k("y"): {5, phaseRunning}},
			want:  plan{move: []key{k("x"), k("y")}},
		},
		{
			name:  "gone and come back: the old action ends first",
			list:  []Appointed{a("x", 8)},
			slots: map[key]slot{k("x"): {4, phaseRunning}},
			want:  plan{move: []key{k("x")}},
		},
		{
			name:  "and is told once",
			list:  []Appointed{a("x", 8)},
			slots: map[key]slot{k("x"): {4, phaseMoved}},
		},
		{
			name:  "then the new one starts",
			list:  []Appointed{a("x", 8)},
			slots: map[key]slot{k("x"): {4, phaseSpent}},
			want:  plan{start: []Appointed{a("x", 8)}},
		},
		{
			name:  "lowering our own fence is no hand-over",
			slots: map[key]slot{k("x"): {4, phaseSettling}, k("y"): {5, phaseReleased}},
		},
		{
			name:  "released, but the list does not know yet",
			list:  []Appointed{a("x", 4)},
			slots: map[key]slot{k("x"): {4, phaseSpent}},
		},
		{
			name:  "ended ones are forgotten",
			slots: map[key]slot{k("x"): {4, phaseSpent}, k("y"): {5, phaseResting}},
			want:  plan{forget: []key{k("x"), k("y")}},
		},
		{
			name:  "a failed one rests",
			list:  []Appointed{a("x", 4)},
			slots: map[key]slot{k("x"): {4, phaseResting}},
			hold:  map[key]time.Time{k("x"): later},
			want:  plan{wake: later},
		},
		{
			name:  "and is delivered again",
			list:  []Appointed{a("x", 4)},
			slots: map[key]slot{k("x"): {4, phaseResting}},
			hold:  map[key]time.Time{k("x"): now},
			want:  plan{start: []Appointed{a("x", 4)}},
		},
		{
			name:  "a new index does not jump the pause, and the old fence is not renewed",
			list:  []Appointed{a("x", 7)},
			slots: map[key]slot{k("x"): {4, phaseResting}},
			hold:  map[key]time.Time{k("x"): later},
			want:  plan{forget: []key{k("x")}, wake: later},
		},
		{
			name: "the earliest pause wakes",
			list: []Appointed{a("x", 4), a("y", 5)},
			hold: map[key]time.Time{k("x"): later.Add(time.Second), k("y"): later},
			want: plan{wake: later},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decide(now, tc.list, tc.slots, tc.hold)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(plan{}, key{})); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
