package app

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// What was completed is remembered for thirty days, at its first time, and then forgotten, some hundred at once.
func TestCompletedIsRememberedForThirtyDays(t *testing.T) {
	a, _ := start(t, config(t))
	ready(t, a)
	d, now := doneTasks{a}, a.clock.Now().UTC()
	keep := func(task string, age time.Duration) {
		t.Helper()
		value := []byte(now.Add(-age).Format(time.RFC3339))
		if _, err := a.group.Cache().Commit(t.Context(), gms.Txn{Puts: []gms.Put{{Key: doneKey(task), Value: value}}}); err != nil {
			t.Fatal(err)
		}
	}
	const day = 24 * time.Hour
	keep("of-29-days", 29*day)
	for i := range forgottenAtOnce + 1 {
		keep(fmt.Sprintf("of-31-days-%03d", i), 31*day)
	}
	for _, task := range []string{"of-today", "of-29-days"} { // the second for the second time
		if err := d.Remember(t.Context(), ledger.Task{ID: task}); err != nil || !d.Done(task) {
			t.Errorf("%s is not remembered: %v", task, err)
		}
	}
	old := func() (n int) {
		for i := range forgottenAtOnce + 1 {
			if d.Done(fmt.Sprintf("of-31-days-%03d", i)) {
				n++
			}
		}
		return n
	}
	until(t, a, "this node leads, and the group's time is known", func() bool { return a.group.Leader() == "n1" && a.clock.Settled() })
	for _, left := range []int{1, 0, 0} {
		a.tend(t.Context()) // as it does each minute
		if n := old(); n != left {
			t.Errorf("%d of what was completed a month ago is remembered, want %d", n, left)
		}
	}
	e, err := a.group.Cache().GetLocal(doneKey("of-29-days"))
	if err != nil || string(e.Value) != now.Add(-29*day).Format(time.RFC3339) || !d.Done("of-today") {
		t.Errorf("what is younger: %q, %v", e.Value, err)
	}
}
