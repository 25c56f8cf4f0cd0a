package app

import (
	"context"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/source"
)

func (j jobs) CreateBackup(ctx context.Context, r api.CreateBackup) (api.Task, error) {
	w, err := j.now()
	if err != nil {
		return api.Task{}, err
	}
	t, err := w.planner.PlanBackup(ctx, pipeline.BackupRequest{Database: r.Database, Storages: r.Storages, Dump: dumpOptions(r), Labels: r.Needs})
	return taskOf(t), err
}

func (j jobs) Restore(ctx context.Context, r api.RestoreBackup) (api.Task, error) {
	w, err := j.now()
	if err != nil {
		return api.Task{}, err
	}
	t, err := w.planner.PlanRestore(ctx, restoreRequest(r))
	return taskOf(t), err
}

func (j jobs) PreviewRestore(ctx context.Context, r api.RestoreBackup) (api.RestorePlan, error) {
	w, err := j.now()
	if err != nil {
		return api.RestorePlan{}, err
	}
	p, err := w.planner.PreviewRestore(ctx, restoreRequest(r))
	if err != nil {
		return api.RestorePlan{}, err
	}
	out := api.RestorePlan{
		Backup: backupOf(p.Backup), Database: p.Task.Database, Target: p.Task.Target, Storage: p.Storage, Server: p.Preview.Server,
		Exists: p.Preview.Exists, Bytes: p.Preview.Bytes, Clients: append([]string{}, p.Preview.Clients...), More: p.Preview.More, InPlace: r.InPlace,
	}
	if p.Preview.Exists && !r.InPlace {
		out.KeepOldMS = j.a.cfg.Restore.KeepOld.Milliseconds()
	}
	return out, nil
}

func (j jobs) Undo(ctx context.Context, task string) (api.Task, error) {
	w, err := j.now()
	if err != nil {
		return api.Task{}, err
	}
	if err := w.planner.Undo(ctx, task, j.a.cfg.Restore.KeepOld); err != nil {
		return api.Task{}, err
	}
	j.a.log.InfoContext(ctx, "app: a restore was undone by the operator", "task", task)
	return j.Task(ctx, task)
}

func restoreRequest(r api.RestoreBackup) pipeline.RestoreRequest {
	return pipeline.RestoreRequest{
		Backup: r.Backup, Database: r.Database, Target: r.Target, Replace: r.Replace, Storage: r.Storage, Foreign: r.AcceptForeign, Choices: restoreChoices(r),
		Labels: r.Needs,
	}
}

func dumpOptions(r api.CreateBackup) source.DumpOptions {
	return source.DumpOptions{
		Format: r.Format, Schemas: r.Schemas, Tables: r.Tables, ExcludeSchemas: r.ExcludeSchemas, ExcludeTables: r.ExcludeTables,
		SchemaOnly: r.SchemaOnly, NoLargeObjects: r.NoLargeObjects, NoGlobals: r.NoGlobals, RolePasswords: r.RolePasswords, Jobs: r.Jobs,
	}
}

func restoreChoices(r api.RestoreBackup) source.RestoreChoices {
	return source.RestoreChoices{
		InPlace: r.InPlace, Disconnect: r.Disconnect, NoOwner: r.NoOwner, NoPrivileges: r.NoPrivileges, NoSubscriptions: r.NoSubscriptions, NoTablespaces: r.NoTablespaces,
		NoEventTriggers: r.NoEventTriggers, SchemaOnly: r.SchemaOnly, Schemas: r.Schemas, Tables: r.Tables, Jobs: r.Jobs,
	}
}
