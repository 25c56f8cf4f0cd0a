package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/retention"
)

// shownOccurrences is how many coming runs of a schedule are shown.
const shownOccurrences = 5

// Schedules implements admin.Recurring.
func (j jobs) Schedules(ctx context.Context) ([]api.Schedule, error) {
	w, err := j.now()
	if err != nil {
		return nil, err
	}
	states, err := w.scheduler.Schedules(ctx, shownOccurrences)
	if err != nil {
		return nil, err
	}
	list := []api.Schedule{}
	for _, s := range states {
		list = append(list, scheduleOf(s))
	}
	return list, nil
}

func scheduleOf(s pipeline.ScheduleState) api.Schedule {
	c := s.Job.Schedule
	out := api.Schedule{
		Name: c.Name, Kind: "backup", Database: s.Job.Database, Cron: c.Cron, Zone: c.Zone, Disabled: c.Disabled || s.Planned.Disabled,
		By: s.Planned.By, Skipped: s.Planned.Skipped, Next: []api.Occurrence{},
	}
	if s.Job.Verify {
		out.Kind = "verify"
	}
	if out.Zone == "" {
		out.Zone = "UTC"
	}
	for _, o := range s.Next {
		out.Next = append(out.Next, api.Occurrence{Due: o.Due, Start: o.Start})
	}
	if s.Last != nil {
		t := taskOf(*s.Last)
		out.Last = &t
	}
	return out
}

// RunSchedule implements admin.Recurring.
func (j jobs) RunSchedule(ctx context.Context, name string) (api.Task, error) {
	w, err := j.now()
	if err != nil {
		return api.Task{}, err
	}
	t, err := w.scheduler.RunNow(ctx, name)
	return taskOf(t), err
}

// EnableSchedule implements admin.Recurring.
func (j jobs) EnableSchedule(ctx context.Context, name string, on bool) (api.Schedule, error) {
	w, err := j.now()
	if err != nil {
		return api.Schedule{}, err
	}
	if err := w.scheduler.Enable(ctx, name, on, j.asker(ctx)); err != nil {
		return api.Schedule{}, err
	}
	j.a.touchState(ctx)
	all, err := j.Schedules(ctx)
	if i := slices.IndexFunc(all, func(s api.Schedule) bool { return s.Name == name }); i >= 0 {
		return all[i], err
	}
	return api.Schedule{}, err
}

// Prune implements admin.Recurring.
func (j jobs) Prune(ctx context.Context, database string) (api.Prune, error) {
	w, err := j.now()
	if err != nil {
		return api.Prune{}, err
	}
	plan, err := w.pruner.Decide(ctx, database, false)
	return pruneOf(database, plan), err
}

// ConfirmPrune implements admin.Recurring.
func (j jobs) ConfirmPrune(ctx context.Context, database string) (api.Prune, error) {
	w, err := j.now()
	if err != nil {
		return api.Prune{}, err
	}
	plan, err := w.pruner.Decide(ctx, database, true)
	if err != nil {
		return api.Prune{}, err
	}
	if err := w.pruner.Confirm(ctx, database, j.asker(ctx)); err != nil {
		return api.Prune{}, err
	}
	w.runners[pipeline.PruneComponent].Wake()
	return pruneOf(database, plan), nil
}

func pruneOf(database string, plan retention.Plan) api.Prune {
	out := api.Prune{Database: database, Decisions: []api.PruneDecision{}, Stops: []string{}}
	for _, d := range plan.Decisions {
		out.Decisions = append(out.Decisions, api.PruneDecision{Backup: d.ID, Action: string(d.Action), Reason: d.Reason, Rules: slices.Concat([]string{}, d.Rules)})
	}
	for i, s := range plan.Stops {
		out.Stops = append(out.Stops, fmt.Sprintf("%s: %s", s, plan.Details[i]))
	}
	return out
}
