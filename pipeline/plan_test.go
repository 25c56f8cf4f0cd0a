package pipeline

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

func TestPlanBackup(t *testing.T) {
	inRig(t, func(r *rig) {
		p := r.planner(func(c *PlannerConfig) {
			c.Require, c.Catalog.Scratch = "any", map[string]source.Source{"lab": nil}
			c.Catalog.Sources = map[string]source.Source{"shop": choosy{c.Catalog.Sources["shop"]}}
		})
		task, err := p.PlanBackup(r.Context(), BackupRequest{Database: "shop", Internal: true})
		r.must(err)
		row, err := r.led.Task(r.Context(), task.ID)
		r.must(err)
		if row.State != ledger.Planned || row.Type != ledger.Create || row.RunType != ledger.Internal || row.MaxAttempts != 3 ||
			row.OnFailure != "rerun" || row.Require != "any" || strings.Join(row.Storages, " ") != "one two" || row.Backup == row.ID {
			r.Errorf("row: %+v", row)
		}
		for _, c := range []struct {
			req         BackupRequest
			field, hint string
		}{
			{BackupRequest{}, "database", "shop"},
			{BackupRequest{Database: "nope"}, "database", "shop"},
			{BackupRequest{Database: "lab"}, "database", "name one of: shop"},
			{BackupRequest{Database: "shop", Storages: []string{"three"}}, "storages", "one, two"},
			{BackupRequest{Database: "shop", Storages: []string{"one", "one"}}, "storages", "once"},
			{BackupRequest{Database: "shop", Storages: []string{"one"}, Require: "2"}, "require", "all"},
			{BackupRequest{Database: "shop", Require: "most"}, "require", "all"},
			{BackupRequest{Database: "shop", Dump: source.DumpOptions{Format: "tar"}}, "options", "leave out"},
		} {
			_, err := p.PlanBackup(r.Context(), c.req)
			wantRequestError(r, err, c.field, c.hint)
		}
		if list, _ := r.led.Tasks(r.Context(), ledger.TaskFilter{}); len(list) != 1 {
			r.Errorf("a wrong request was planned: %+v", list)
		}
	})
}

// choosy is a source that knows wrong options.
type choosy struct{ source.Source }

func (choosy) CheckOptions(o source.DumpOptions) error {
	if o.Format != "" {
		return errors.New("no such format")
	}
	return nil
}

func wantRequestError(r *rig, err error, field, hint string) {
	r.Helper()
	var bad *RequestError
	if !errors.As(err, &bad) || bad.Field != field || !strings.Contains(bad.Hint, hint) || bad.Hint == "" || bad.Problem == "" {
		r.Errorf("got %#v, want field %s with hint %q", err, field, hint)
	}
}

func TestPlanRestore(t *testing.T) {
	inRig(t, func(r *rig) {
		p := r.planner(func(c *PlannerConfig) { c.Catalog.Scratch = map[string]source.Source{"lab": nil} })
		unfinished := r.backup("all")
		r.must(p.Cancel(r.Context(), unfinished.ID, "ann"))
		r.start("n1", nil, nil)
		r.awaitState(unfinished.ID, ledger.Cancelled)
		_, err := p.PlanRestore(r.Context(), RestoreRequest{Database: "shop"})
		wantRequestError(r, err, "database", "list")
		task := r.awaitState(r.backup("1").ID, ledger.Completed)
		for _, n := range r.nodes {
			n.w.Stop()
		}
		plan, err := p.PlanRestore(r.Context(), RestoreRequest{Database: "shop", Replace: true, Storage: "two"})
		r.must(err)
		if plan.Backup != task.Backup || plan.Target != "shop" || !plan.Replace || plan.StartBy.Sub(plan.Created) != 15*time.Minute || len(plan.Storages) != 1 {
			r.Errorf("plan: %+v", plan)
		}
		for _, c := range []struct {
			req         RestoreRequest
			field, hint string
		}{
			{RestoreRequest{}, "backup", "id"},
			{RestoreRequest{Backup: "nope"}, "backup", "list"},
			{RestoreRequest{Backup: task.Backup, Database: "nope"}, "database", "shop"},
			{RestoreRequest{Backup: task.Backup, Database: "lab"}, "database", "name one of: shop"},
			{RestoreRequest{Backup: task.Backup, Target: strings.Repeat("x", 64)}, "target", "63"},
			{RestoreRequest{Backup: task.Backup, Target: "a\x00b"}, "target", "63"},
			{RestoreRequest{Backup: task.Backup, Storage: "three"}, "storage", "one, two"},
			{RestoreRequest{Backup: task.Backup, Choices: source.RestoreChoices{Jobs: 33}}, "jobs", "32"},
			{RestoreRequest{Backup: task.Backup, Choices: source.RestoreChoices{Jobs: 2, InPlace: true}}, "jobs", "new database"},
		} {
			_, err := p.PlanRestore(r.Context(), c.req)
			wantRequestError(r, err, c.field, c.hint)
		}
		err = p.holds(ledger.Backup{ID: "b", Copies: []ledger.Copy{{Storage: "one", State: "present"}, {Storage: "two", State: "missing"}}}, "two")
		wantRequestError(r, err, "storage", "one")
	})
}

// What cannot be one transaction is refused before a task is made of it.
func TestPlanInPlace(t *testing.T) {
	for _, c := range []struct {
		info  source.Info
		req   RestoreRequest
		field string
	}{
		{source.Info{}, RestoreRequest{Replace: true}, ""},
		{source.Info{Streams: 3}, RestoreRequest{}, ""},
		{source.Info{Streams: 3}, RestoreRequest{Replace: true}, "replace"},
		{source.Info{Format: source.FormatPlain}, RestoreRequest{}, "in_place"},
		{source.Info{}, RestoreRequest{Choices: source.RestoreChoices{Jobs: 2}}, "jobs"},
	} {
		var bad *RequestError
		if errors.As(inPlace(c.info, c.req), &bad) != (c.field != "") || bad != nil && (bad.Field != c.field || bad.Hint == "") {
			t.Errorf("%+v, %+v: %+v, want %q", c.info, c.req, bad, c.field)
		}
	}
}

func TestPlanLedgerAway(t *testing.T) {
	inRig(t, func(r *rig) {
		r.store.SetDown(true)
		p := r.planner(nil)
		if _, err := p.PlanBackup(r.Context(), BackupRequest{Database: "shop"}); !errors.Is(err, ledger.ErrUnavailable) {
			r.Errorf("plan: %v", err)
		}
		if err := p.Cancel(r.Context(), "x", "ann"); !errors.Is(err, ledger.ErrUnavailable) {
			r.Errorf("cancel: %v", err)
		}
	})
}

func TestNewPlannerChecksItsConfig(t *testing.T) {
	inRig(t, func(r *rig) {
		for _, cfg := range []PlannerConfig{{}, {Ledger: r.led, MaxAttempts: -1}, {Ledger: r.led, OnFailure: "shrug"}} {
			if _, err := NewPlanner(cfg); err == nil {
				r.Errorf("accepted %+v", cfg)
			}
		}
	})
}
