package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// lister is a server with databases.
type lister struct {
	mu    sync.Mutex
	names []string
	err   error
	asked int
}

func (l *lister) Databases(context.Context, source.Attempt) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	return l.names, l.err
}

// times is how often it was asked.
func (l *lister) times() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

func (l *lister) set(err error, names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names, l.err = names, err
}

// TestDiscovery: each server is asked once an hour, whichever nodes there are; one that does not answer sooner again; a new
// one at once; one that nobody knows any more not at all.
func TestDiscovery(t *testing.T) {
	inRig(t, func(r *rig) {
		good, bad := &lister{names: []string{"shop"}}, &lister{err: errors.New("connection refused")}
		var mu sync.Mutex
		told := map[string]int{}
		var all []*Discoverer
		var runners []*component.Runner
		known := map[string]Lister{"good": good, "bad": bad}
		for _, name := range []string{"n1", "n2"} {
			n := r.node(name, nil, nil)
			d := NewDiscoverer(n.items(), time.Now, func(_ context.Context, server string, names []string, problem error) error {
				mu.Lock()
				defer mu.Unlock()
				told[fmt.Sprintf("%s%s %v", server, names, problem)]++
				return nil
			})
			d.Renew(known)
			r.must(d.Begin(r.Context()))
			all, runners = append(all, d), append(runners, n.runs(d.Component()))
		}
		pass := func(d time.Duration) { r.must(pause(r.Context(), d)); synctest.Wait() }
		pass(2*time.Hour + 2*time.Minute)
		toldOf := func(what string) int {
			mu.Lock()
			defer mu.Unlock()
			return told[what]
		}
		if good.times() != 3 || toldOf("good[shop] <nil>") != 3 {
			t.Errorf("asked %d times in two hours, told %v", good.times(), told)
		}
		if bad.times() < 6 || bad.times() > 12 {
			t.Errorf("a server that is away was asked %d times in two hours, want after 1, 2, 4, ... minutes", bad.times())
		}
		bad.set(nil, "books")
		pass(time.Hour + time.Minute)
		if toldOf("bad[books] <nil>") < 1 {
			t.Errorf("what it answers then is not told: %v", told)
		}
		late := &lister{names: []string{"new"}}
		next := maps.Clone(known)
		next["late"] = late
		delete(next, "good")
		was := good.times()
		for i, d := range all {
			d.Renew(next)
			r.must(d.Begin(r.Context()))
			runners[i].Wake()
		}
		pass(2 * time.Minute)
		if late.times() != 1 {
			t.Errorf("a new server was asked %d times", late.times())
		}
		r.must(all[0].LookNow(r.Context(), "late"))
		pass(2 * time.Minute)
		if late.times() != 2 {
			t.Errorf("asked %d times after a person wanted it", late.times())
		}
		pass(2 * time.Hour)
		if good.times() != was {
			t.Error("a server that nobody knows any more was asked")
		}
		var wrong *RequestError
		if err := all[0].LookNow(r.Context(), "good"); !errors.As(err, &wrong) || !strings.Contains(wrong.Hint, "bad, late") {
			t.Error(err)
		}
	})
}

// TestRenewedSchedules: a schedule with another line is looked at again, long before the one that it had would have been; a
// new one is planned too, one that was taken away not.
func TestRenewedSchedules(t *testing.T) {
	inRig(t, func(r *rig) {
		n := r.node("n1", nil, nil)
		yearly := minutely("each")
		yearly.Schedule.Cron = "0 0 1 1 *"
		s := n.schedules(yearly, minutely("old"))
		runner := n.runs(s.Component())
		pass := func(d time.Duration) { r.must(pause(r.Context(), d)); synctest.Wait() }
		pass(3*time.Minute + time.Second)
		if a, b := len(r.ofSchedule("each")), len(r.ofSchedule("old")); a != 0 || b != 3 {
			t.Fatalf("%d and %d tasks, want 0 and 3", a, b)
		}
		bad := minutely("bad")
		bad.Schedule.Cron = "x"
		if err := s.Renew([]Job{bad}); err == nil || !strings.Contains(err.Error(), "schedule bad") {
			t.Error(err)
		}
		r.must(s.Renew([]Job{minutely("each"), minutely("new")}))
		r.must(s.Begin(r.Context()))
		runner.Wake()
		pass(5 * time.Minute)
		if a, b, c := len(r.ofSchedule("each")), len(r.ofSchedule("old")), len(r.ofSchedule("new")); a < 4 || b != 3 || c < 4 {
			t.Errorf("%d, %d and %d tasks", a, b, c)
		}
		if _, err := s.RunNow(r.Context(), "old"); err == nil {
			t.Error("a schedule that is no more was run")
		}
	})
}

// TestRenewedCatalog: a database and a storage that come later are used, and what is taken away is unknown.
func TestRenewedCatalog(t *testing.T) {
	inRig(t, func(r *rig) {
		able := Abilities{Databases: map[string]int{"late": 0}, Storages: []string{"two"}}
		n := r.start("n1", func(c *Config) { c.Abilities = func() Abilities { return able } }, nil)
		p := r.planner(nil)
		cat := n.w.cfg.Catalog
		next := cat
		next.Sources = map[string]source.Source{"late": r.server}
		next.Storages = map[string]storage.Storage{"two": cat.Storages["two"]}
		if _, err := p.PlanBackup(r.Context(), BackupRequest{Database: "late"}); err == nil {
			t.Fatal("planned before it was known")
		}
		p.Renew(next, map[string][]string{"late": {"eu"}}, map[string]int{"late": 3})
		n.w.Renew(next, nil)
		got, err := p.PlanBackup(r.Context(), BackupRequest{Database: "late"})
		r.must(err)
		r.must(p.Cancel(r.Context(), got.ID, "test"))
		if len(got.Storages) != 1 || got.Storages[0] != "two" || len(got.Needs.Labels) != 1 {
			t.Errorf("planned %v %v", got.Storages, got.Needs)
		}
		if _, err := p.PlanBackup(r.Context(), BackupRequest{Database: "shop"}); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("a database that is no more: %v", err)
		}
		p.Renew(next, nil, nil)
		got, err = p.PlanBackup(r.Context(), BackupRequest{Database: "late"})
		r.must(err)
		r.wantWhole("two", r.awaitState(got.ID, ledger.Completed).Token)
	})
}
