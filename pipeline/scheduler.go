package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/schedule"
)

// ScheduleComponent is the component that makes tasks of occurrences; its items are the schedules.
const ScheduleComponent = "schedule"

// Job is what a schedule has done at each of its occurrences.
type Job struct {
	Schedule schedule.Config
	Verify   bool     // verify the newest backup of Database instead of making one
	Database string   // configured name
	Storages []string // of the backups, or whose copies are verified; none: all
	Scratch  string   // verify: scratch server; empty: only bytes are compared
}

// Planned is what is remembered of a schedule, as the data of its item.
type Planned struct {
	Seen     time.Time `json:"seen,omitzero"`  // schedule.State.Seen
	Wake     time.Time `json:"wake,omitzero"`  // when to look again; zero = at the next tick
	Line     string    `json:"line,omitempty"` // of the schedule by which Wake was found; with another one it is looked at again
	Disabled bool      `json:"disabled,omitempty"`
	By       string    `json:"by,omitempty"`      // who enabled or disabled it
	Skipped  string    `json:"skipped,omitempty"` // why the last occurrence that was skipped was
}

// Scheduler makes a task of each occurrence of the schedules, once whichever nodes look: an occurrence's task has an id of
// its own, and what has been decided is remembered under the claim of the schedule. It is the worker of a component whose
// items the ledger keeps. It decides by Now, which is the group's time and not a node's.
type Scheduler struct {
	planner *Planner
	items   component.Items
	jobs    atomic.Pointer[map[string]scheduled]
	noted   notedItems
	now     func() time.Time
}

type scheduled struct {
	Job
	s    *schedule.Schedule
	line string // what its occurrences depend on
}

// NewScheduler checks the jobs; errors name the schedule and the field.
func NewScheduler(p *Planner, items component.Items, jobs []Job, now func() time.Time) (*Scheduler, error) {
	s := &Scheduler{planner: p, items: items, now: now}
	return s, s.Renew(jobs)
}

// Renew has other jobs count from now on; nothing is changed when one of them is wrong. What a job that has another line now
// has missed by it is for its schedule to say.
func (s *Scheduler) Renew(jobs []Job) error {
	next := make(map[string]scheduled, len(jobs))
	for _, j := range jobs {
		made, err := schedule.New(j.Schedule)
		if err != nil {
			return fmt.Errorf("schedule %s: %w", j.Schedule.Name, err)
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%+v", j.Schedule))
		next[j.Schedule.Name] = scheduled{j, made, hex.EncodeToString(sum[:8])}
	}
	s.jobs.Store(&next)
	return nil
}

func (s *Scheduler) job(name string) (scheduled, bool) {
	j, ok := s.known()[name]
	return j, ok
}

func (s *Scheduler) known() map[string]scheduled { return *s.jobs.Load() }

// itemID is the item of a schedule.
func itemID(name string) string { return "schedule:" + name }

// Component fills in what is the scheduler's of the configuration of its component; the caller adds the group's side.
func (s *Scheduler) Component() component.Config {
	return component.Config{
		Component: ScheduleComponent, Trigger: component.Trigger{Types: []string{ScheduleComponent}},
		NoEvent: true, SimultaneousProcesses: 4, Peek: true, Every: 30 * time.Second, Limit: time.Minute,
		Able:   func(it component.Item) bool { _, ok := s.job(nameOf(it)); return ok },
		Worker: component.Func(s.work), Index: due{s}, Store: s.items,
		Fairness: component.Fairness{BackOff: 10 * time.Second, MaxBackOff: 10 * time.Minute, QuarantineAfter: -1},
		Now:      s.now,
	}
}

func nameOf(it component.Item) string {
	if it.Type != ScheduleComponent {
		return ""
	}
	return it.ID[len("schedule:"):]
}

// Begin makes the items of the schedules that nobody knew yet. Called before the component starts, and after Renew.
func (s *Scheduler) Begin(ctx context.Context) error {
	for name := range s.known() {
		if err := s.noted.put(ctx, s.items, component.Item{Type: ScheduleComponent, ID: itemID(name)}); err != nil {
			return fmt.Errorf("note schedule %s: %w", name, err)
		}
	}
	return nil
}

// due is the index: schedules whose time to be looked at has come.
type due struct{ s *Scheduler }

func (d due) Query(ctx context.Context, q component.Query) ([]component.Item, error) {
	all, err := d.s.items.All(ctx, q.Component, ScheduleComponent)
	if err != nil {
		return nil, err
	}
	var out []component.Item
	for _, it := range all {
		if ok, _ := component.MatchAny(q.Triggers, it); !ok {
			continue
		}
		job, known := d.s.job(nameOf(it))
		if p, err := plannedOf(it); err == nil && p.Wake.After(it.Record.NotBefore) && (!known || p.Line == job.line) {
			it.Record.NotBefore = p.Wake
		}
		out = append(out, it)
	}
	return out, nil
}

func plannedOf(it component.Item) (p Planned, err error) {
	if len(it.Data) > 0 {
		err = json.Unmarshal(it.Data, &p)
	}
	return p, err
}

// work looks at one schedule.
func (s *Scheduler) work(ctx context.Context, j component.Job) (report component.Report, err error) {
	job, ok := s.job(nameOf(j.Item))
	if !ok {
		return report, fmt.Errorf("schedule %s is not configured here", nameOf(j.Item))
	}
	p, err := plannedOf(j.Item)
	if err != nil {
		return report, fmt.Errorf("read what is remembered: %w", err)
	}
	running, waiting, err := s.count(ctx, job.Schedule.Name)
	if err != nil {
		return report, err
	}
	plan := job.s
	if p.Disabled && !job.Schedule.Disabled {
		off := job.Schedule
		off.Disabled = true
		if plan, err = schedule.New(off); err != nil {
			return report, err
		}
	}
	d := plan.Decide(schedule.State{Seen: p.Seen, Running: running, Waiting: waiting}, s.now())
	for _, o := range d.Make {
		if _, err := s.make(ctx, job, o.ID, false); err != nil {
			return report, fmt.Errorf("plan the occurrence of %s: %w", o.Due.Format(time.RFC3339), err)
		}
	}
	p.Line = job.line
	if p.Seen, p.Wake = d.Seen, d.Wake; p.Wake.IsZero() {
		p.Wake = s.now().Add(time.Hour)
	}
	if n := len(d.Skipped); n > 0 {
		p.Skipped = fmt.Sprintf("%s: %s", d.Skipped[n-1].Due.Format(time.RFC3339), d.Skipped[n-1].Why)
	}
	report.Data, err = json.Marshal(p)
	return report, err
}

// count tells how many tasks of a schedule go on, and how many wait.
func (s *Scheduler) count(ctx context.Context, name string) (running, waiting int, err error) {
	list, err := s.planner.cfg.Ledger.Tasks(ctx, ledger.TaskFilter{Active: true})
	if err != nil {
		return 0, 0, fmt.Errorf("list tasks: %w", err)
	}
	for _, t := range list {
		switch {
		case t.Schedule != name:
		case t.State == ledger.Planned && t.Attempt == 0:
			waiting++
		default:
			running++
		}
	}
	return running, waiting, nil
}

// make plans the task of an occurrence; one that exists already is well.
func (s *Scheduler) make(ctx context.Context, job scheduled, occurrence string, byHand bool) (t ledger.Task, err error) {
	id := ""
	if !byHand {
		id = OccurrenceTask(occurrence)
	}
	if job.Verify {
		t, err = s.planner.PlanVerify(ctx, CheckRequest{Database: job.Database, Storages: job.Storages, Scratch: job.Scratch, Internal: !byHand, ID: id, Schedule: job.Schedule.Name})
		if errors.Is(err, ledger.ErrNotFound) && !byHand {
			return t, nil // there is no backup yet: nothing to verify
		}
	} else {
		t, err = s.planner.PlanBackup(ctx, BackupRequest{Database: job.Database, Storages: job.Storages, Internal: !byHand, ID: id, Schedule: job.Schedule.Name})
	}
	if errors.Is(err, ledger.ErrExists) {
		return t, nil
	}
	return t, err
}

// OccurrenceTask is the id of an occurrence's task: the same whoever makes it, and when.
func OccurrenceTask(occurrence string) string {
	sum := sha256.Sum256([]byte(occurrence))
	return "s" + hex.EncodeToString(sum[:15])
}

// ScheduleState is a schedule for people.
type ScheduleState struct {
	Job     Job
	Planned Planned
	Next    []schedule.Occurrence // the next ones, while it is enabled
	Last    *ledger.Task          // its newest task; nil = none
}

// Schedules tells of all schedules of this node's configuration, by name, each with its next n occurrences.
func (s *Scheduler) Schedules(ctx context.Context, n int) ([]ScheduleState, error) {
	tasks, err := s.planner.cfg.Ledger.Tasks(ctx, ledger.TaskFilter{Limit: 1000})
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	kept, err := s.items.All(ctx, ScheduleComponent, ScheduleComponent)
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	noted := make(map[string]component.Item, len(kept))
	for _, it := range kept {
		noted[it.ID] = it
	}
	out, jobs := []ScheduleState{}, s.known()
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		st := ScheduleState{Job: jobs[name].Job}
		if st.Planned, err = plannedOf(noted[itemID(name)]); err != nil { // one that is not noted yet is as if new
			return nil, fmt.Errorf("read schedule %s: %w", name, err)
		}
		if !st.Planned.Disabled && !st.Job.Schedule.Disabled {
			st.Next = jobs[name].s.Upcoming(s.now(), n)
		}
		if i := slices.IndexFunc(tasks, func(t ledger.Task) bool { return t.Schedule == name }); i >= 0 {
			st.Last = &tasks[i]
		}
		out = append(out, st)
	}
	return out, nil
}

// RunNow plans a task of a schedule now, beside its occurrences.
func (s *Scheduler) RunNow(ctx context.Context, name string) (ledger.Task, error) {
	job, ok := s.job(name)
	if !ok {
		return ledger.Task{}, unknown("schedule", "schedule", name, s.known())
	}
	return s.make(ctx, job, "", true)
}

// DisabledBy are the schedules that somebody has disabled, with who did: of all that the group remembers, those included that
// this node's configuration does not have.
func (s *Scheduler) DisabledBy(ctx context.Context) (map[string]string, error) {
	kept, err := s.items.All(ctx, ScheduleComponent, ScheduleComponent)
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	by := map[string]string{}
	for _, it := range kept {
		p, err := plannedOf(it)
		if err != nil {
			return nil, fmt.Errorf("read schedule %s: %w", nameOf(it), err)
		}
		if p.Disabled {
			by[nameOf(it)] = p.By
		}
	}
	return by, nil
}

// Enable lets a schedule make tasks again, or not. What was due while it was disabled does not count as missed.
func (s *Scheduler) Enable(ctx context.Context, name string, on bool, by string) error {
	if _, ok := s.job(name); !ok {
		return unknown("schedule", "schedule", name, s.known())
	}
	_, err := s.items.Edit(ctx, itemID(name), func(it component.Item) (component.Item, error) {
		p, err := plannedOf(it)
		if err != nil {
			return it, err
		}
		if p.Disabled == on { // it changes: what was due until now is settled
			p.Seen = latest(p.Seen, s.now().UTC())
		}
		p.Disabled, p.By, p.Wake = !on, by, time.Time{}
		it.Data, err = json.Marshal(p)
		return it, err
	})
	return err
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
