package pipeline

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	"github.com/fencepost/fencepost/pipeline/retention"
	"github.com/fencepost/fencepost/pipeline/schedule"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// runs starts a runner for a node, and stops it with the test.
func (n *node) runs(cfg component.Config) *component.Runner {
	n.r.Helper()
	cfg.Node, cfg.Locks, cfg.Claims, cfg.Gate = n.name, n, n, n
	r, err := component.New(cfg)
	n.r.must(err)
	n.r.must(r.Start(n.r.Context()))
	r.Wake()
	n.r.stops = append(n.r.stops, func() { n.r.must(r.Stop(n.r.Context())) })
	return r
}

func (n *node) items() component.Items {
	return embedded.NewItems(n.r.led, func() string { return n.run })
}

func (n *node) schedules(jobs ...Job) *Scheduler {
	n.r.Helper()
	s, err := NewScheduler(n.r.planner(nil), n.items(), jobs, time.Now)
	n.r.must(err)
	n.r.must(s.Begin(n.r.Context()))
	return s
}

func minutely(name string) Job {
	return Job{Database: "shop", Schedule: schedule.Config{Name: name, Cron: "* * * * *", Overlap: schedule.Queue, MaxQueued: 1000}}
}

func (r *rig) ofSchedule(name string) (out []ledger.Task) {
	r.Helper()
	all, err := r.led.Tasks(r.Context(), ledger.TaskFilter{})
	r.must(err)
	for _, t := range all {
		if t.Schedule == name {
			out = append(out, t)
		}
	}
	return out
}

// Two nodes and one schedule: 100 occurrences give exactly 100 tasks, though nodes die, and lose their leases, meanwhile.
func TestHundredTicksHundredTasks(t *testing.T) {
	inRig(t, func(r *rig) {
		start := func(name string) *node {
			n := r.node(name, nil, nil)
			n.runs(n.schedules(minutely("each")).Component())
			return n
		}
		a, b := start("n1"), start("n2")
		synctest.Wait()
		began := time.Now()
		for i := range 100 {
			r.must(pause(r.Context(), time.Minute))
			if i == 33 {
				a.kill(0)
				synctest.Wait()
				if token, err := r.store.Adopt(ScheduleComponent, "schedule:each", b.run); err == nil { // it was at it: recovery frees the claim
					r.store.Release(ScheduleComponent, "schedule:each", b.run, token)
				}
			}
			if i == 50 {
				start("n3")
			}
		}
		r.must(pause(r.Context(), 31*time.Second)) // until the last was looked at
		tasks := r.ofSchedule("each")
		if n := int(time.Since(began) / time.Minute); len(tasks) != 100 || n != 100 {
			r.Errorf("%d tasks of %d occurrences", len(tasks), n)
		}
		for _, task := range tasks {
			if task.RunType != ledger.Internal || task.Database != "shop" {
				r.Errorf("task: %+v", task)
			}
		}
	})
}

// What a schedule made is done like any other task, one after the other; disabled it makes nothing, and what was due
// meanwhile is not made up.
func TestScheduleEnableDisable(t *testing.T) {
	inRig(t, func(r *rig) {
		n := r.start("n1", nil, nil)
		s := n.schedules(minutely("each"))
		run := n.runs(s.Component())
		r.must(pause(r.Context(), 3*time.Minute+31*time.Second))
		list, err := s.Schedules(r.Context(), 5)
		r.must(err)
		if len(list) != 1 || len(list[0].Next) != 5 || list[0].Last == nil || list[0].Last.State != ledger.Completed {
			r.Fatalf("schedules: %+v", list)
		}
		r.must(s.Enable(r.Context(), "each", false, "ann"))
		run.Wake()
		synctest.Wait()
		before := len(r.ofSchedule("each"))
		r.must(pause(r.Context(), 5*time.Hour))
		if after := len(r.ofSchedule("each")); after != before || before != 3 {
			r.Errorf("%d tasks before and %d after it was disabled, want 3", before, after)
		}
		if list, err = s.Schedules(r.Context(), 5); err != nil || len(list[0].Next) != 0 || list[0].Planned.By != "ann" {
			r.Errorf("disabled: %+v, %v", list, err)
		}
		kept, err := r.led.Backups(r.Context(), ledger.BackupFilter{State: ledger.BackupCompleted})
		r.must(err)
		all, err := r.led.Tasks(r.Context(), ledger.TaskFilter{})
		r.must(err)
		if len(kept) != before || slices.ContainsFunc(all, func(t ledger.Task) bool { return t.Type == ledger.Delete }) {
			r.Errorf("disabling a schedule has touched its backups: %d are left", len(kept))
		}
		r.must(s.Enable(r.Context(), "each", true, "ann"))
		run.Wake()
		r.must(pause(r.Context(), time.Minute))
		if after := len(r.ofSchedule("each")); after != before+1 {
			r.Errorf("%d tasks after it was enabled again, want %d", after, before+1)
		}
		byHand, err := s.RunNow(r.Context(), "each")
		r.must(err)
		if byHand.RunType != ledger.User || byHand.Schedule != "each" {
			r.Errorf("by hand: %+v", byHand)
		}
		r.awaitState(byHand.ID, ledger.Completed)
		var bad *RequestError
		if _, err := s.RunNow(r.Context(), "nope"); !errors.As(err, &bad) {
			r.Errorf("run of an unknown schedule: %v", err)
		}
	})
}

// A node that is away over occurrences makes up what its schedule says, once, and no node makes them up beside it.
func TestMissedWhileAllWereAway(t *testing.T) {
	inRig(t, func(r *rig) {
		n := r.node("n1", nil, nil)
		job := minutely("each")
		job.Schedule.Cron, job.Schedule.Missed = "30 * * * *", schedule.Once
		first := n.runs(n.schedules(job).Component())
		r.must(pause(r.Context(), 2*time.Hour))
		r.must(first.Stop(r.Context()))
		before := len(r.ofSchedule("each"))
		r.must(pause(r.Context(), 5*time.Hour))
		for _, name := range []string{"n2", "n3"} {
			n := r.node(name, nil, nil)
			n.runs(n.schedules(job).Component())
		}
		r.must(pause(r.Context(), time.Minute))
		if after := len(r.ofSchedule("each")); before != 2 || after != before+1 {
			r.Errorf("%d tasks before and %d for five that were missed, want 2 and one", before, after-before)
		}
	})
}

// pruner starts the prune component beside a worker.
func (r *rig) pruner(n *node, policy retention.Policy) *Pruner {
	r.Helper()
	p, err := NewPruner(r.planner(nil), n.items(), map[string]retention.Policy{"shop": policy}, &r.clock)
	r.must(err)
	r.must(p.Begin(r.Context()))
	return p
}

func (r *rig) left() (ids []string) {
	r.Helper()
	list, err := r.led.Backups(r.Context(), ledger.BackupFilter{State: ledger.BackupCompleted})
	r.must(err)
	for _, b := range list {
		ids = append(ids, b.ID)
	}
	slices.Reverse(ids)
	return ids
}

func TestPrune(t *testing.T) {
	inRig(t, func(r *rig) {
		policy := retention.Policy{Last: 2, Unverified: true, MaxShare: 1}
		n := r.start("keeper", func(c *Config) { c.Retention = map[string]retention.Policy{"shop": policy} }, nil)
		r.server.step = time.Minute // each dump is of a minute later
		var made []string
		for range 4 {
			made = append(made, r.awaitState(r.backup("all").ID, ledger.Completed).Backup)
			r.must(pause(r.Context(), time.Second))
		}
		p := r.pruner(n, policy)
		plan, err := p.Decide(r.Context(), "shop", false)
		r.must(err)
		for _, d := range plan.Decisions {
			if d.Reason == "" {
				r.Errorf("no reason: %+v", d)
			}
		}
		if got := plan.Remove(); !slices.Equal(got, made[:2]) {
			r.Fatalf("dry run removes %q, want %q: %+v", got, made[:2], plan)
		}
		if got := r.left(); len(got) != 4 {
			r.Errorf("a dry run removed something: %q", got)
		}
		n.runs(p.Component())
		r.must(pause(r.Context(), 5*time.Minute))
		if got := r.left(); !slices.Equal(got, made[2:]) {
			r.Errorf("left %q, want %q", got, made[2:])
		}
		next := r.awaitState(r.backup("all").ID, ledger.Completed).Backup
		r.must(pause(r.Context(), 5*time.Minute))
		if got := r.left(); !slices.Equal(got, []string{made[3], next}) {
			r.Errorf("after another backup: %q", got)
		}
	})
}

// Nothing goes on the back of a failed listing, beside a suspect backup, or when it is too many at once.
func TestPruneStops(t *testing.T) {
	for name, c := range map[string]struct {
		policy retention.Policy
		before func(r *rig, n *node, made []string)
		lift   func(r *rig, p *Pruner, made []string)
		stop   retention.Stop
		fault  bool
	}{
		"listing fails": {policy: retention.Policy{Last: 2, Unverified: true, MaxShare: 1}, stop: retention.ListingFailed, fault: true},
		"suspect": {
			policy: retention.Policy{Last: 2, Unverified: true, MaxShare: 1}, stop: retention.SuspectBackup,
			before: func(r *rig, n *node, made []string) {
				r.server.set("shop", patternOf(1000))
				r.awaitState(r.backup("all").ID, ledger.Completed)
			},
			lift: func(r *rig, p *Pruner, _ []string) {
				list, err := r.led.Backups(r.Context(), ledger.BackupFilter{Limit: 1})
				r.must(err)
				if len(list[0].Suspect) == 0 || !strings.Contains(list[0].Suspect[0], "half of the usual") {
					r.Fatalf("a tiny backup is not suspect: %+v", list[0])
				}
				_, err = r.planner(nil).Mark(r.Context(), list[0].ID, func(m ledger.Mark) ledger.Mark { m.Accepted = true; return m })
				r.must(err)
			},
		},
		"wrong clock": {
			policy: retention.Policy{Last: 2, Unverified: true, MaxShare: 1}, stop: retention.WrongClock,
			before: func(r *rig, _ *node, _ []string) { r.clock.doubt.Store("n3") },
			lift: func(r *rig, _ *Pruner, _ []string) {
				r.clock.doubt.Store("")
				r.must(pause(r.Context(), time.Hour)) // it looks again by itself
			},
		},
		"too many": {
			policy: retention.Policy{Last: 1, Unverified: true}, stop: retention.TooMany,
			lift: func(r *rig, p *Pruner, _ []string) { r.must(p.Confirm(r.Context(), "shop", "ann")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				fs := faults{}
				if c.fault {
					fs["one"] = []*storagetest.Fault{storagetest.Fail(storagetest.Stat, errBoom)}
				}
				n := r.start("keeper", func(k *Config) { k.Retention = map[string]retention.Policy{"shop": c.policy} }, nil)
				r.server.step = time.Minute
				var made []string
				for range 4 {
					made = append(made, r.awaitState(r.backup("all").ID, ledger.Completed).Backup)
					r.must(pause(r.Context(), time.Second))
				}
				if c.before != nil {
					c.before(r, n, made)
				}
				p := r.pruner(n, c.policy)
				if c.fault {
					p.planner.cfg.Catalog.Storages["one"] = storagetest.Inject(r.disks["one"], fs["one"]...)
				}
				plan, err := p.Decide(r.Context(), "shop", false)
				r.must(err)
				if !slices.Contains(plan.Stops, c.stop) {
					r.Fatalf("stops %q, want %s", plan.Stops, c.stop)
				}
				had := len(r.left())
				run := n.runs(p.Component())
				r.must(pause(r.Context(), 10*time.Minute))
				if got := len(r.left()); got != had {
					r.Fatalf("%d of %d are left", got, had)
				}
				if c.lift == nil {
					return
				}
				c.lift(r, p, made)
				run.Wake()
				r.must(pause(r.Context(), 30*time.Second)) // at once, however long the failure has it wait
				if got := len(r.left()); got >= had {
					r.Errorf("%d of %d are left after it was lifted", got, had)
				}
			})
		})
	}
}

// Copies that are not whole are mended without being asked.
func TestMissingCopiesAreMended(t *testing.T) {
	inRig(t, func(r *rig) {
		maker := r.start("maker", nil, faults{"two": {storagetest.Fail(storagetest.Put, errBoom)}})
		b := r.awaitState(r.backup("any").ID, ledger.Completed)
		maker.w.Stop()
		if got := r.wantEntry(b.Backup, ledger.BackupCompleted); len(Lacking(got)) != 1 {
			r.Fatalf("entry: %+v", got)
		}
		n := r.start("n2", nil, nil)
		other := r.node("n3", nil, nil)
		for _, n := range []*node{n, other} {
			n.runs(r.pruner(n, retention.Policy{}).Component())
		}
		r.must(pause(r.Context(), 5*time.Minute))
		if got := r.wantEntry(b.Backup, ledger.BackupCompleted); len(Lacking(got)) != 0 {
			r.Errorf("entry: %+v", got)
		}
		r.wantWhole("two", b.Token)
		all, err := r.led.Tasks(r.Context(), ledger.TaskFilter{Type: ledger.Replicate})
		r.must(err)
		if len(all) != 1 || all[0].RunType != ledger.Internal {
			r.Errorf("replicate tasks: %+v", all)
		}
	})
}
