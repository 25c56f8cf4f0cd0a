package admin

import (
	"net/http"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// storageWork bounds what takes as long as a storage has objects.
const storageWork = time.Hour

// table is all that the API answers, by what it is about.
func (h *handler) table() []Route {
	return slices.Concat(h.ofGroup(), h.ofDrains(), h.ofTasks(), h.ofBackups(), h.ofRecurring(), h.ofAutonomous(), h.ofStorages(), h.ofLedger(), h.ofGroupStates(), h.ofSettings(), h.ofKeyring(), h.ofNotify(), h.ofReload(), h.ofUsage(), h.ofAccounts(), h.ofApprovals(), h.ofAudit(), h.ofItself())
}

func (h *handler) ofGroup() []Route {
	return []Route{
		get(h, api.PathStatus, "status.read", "How the node that answers is doing.", func(r *http.Request) (api.Status, error) { return h.Members.Status(r.Context()) }),
		get(h, api.PathOverview, "overview.read", "How the group is, and what needs a person.", func(r *http.Request) (api.Overview, error) { return h.Members.Overview(r.Context()) }),
		get(h, api.PathView, "view.read", "The agreed list of members.", func(r *http.Request) (api.View, error) { return h.Members.View(r.Context()) }),
		get(h, api.PathMembers, "members.read", "The members of the present view, and nodes whose certificates keep them out.", h.members),
		get(h, api.PathFences, "fences.read", "Open recoveries, and fences raised on purpose.", func(r *http.Request) ([]api.Fence, error) { return h.Recoveries.Fences(r.Context()) }),
		get(h, api.PathRecoveries, "recoveries.read", "Open and lately ended recoveries, newest first.", func(r *http.Request) ([]api.Recovery, error) { return h.Recoveries.Recoveries(r.Context()) }),
		post(h, api.RoleOperator, api.PathRecoveries+"/retry", "recovery.retry", "Let everybody try a parked recovery again.", h.retryRecovery).over(h.wasRecovery),
		post(h, api.RoleAdmin, api.PathRecoveries+"/drop", "recovery.drop", "End a recovery for good.", h.dropRecovery).over(h.wasRecovery),
		post(h, api.RoleAdmin, api.PathFences, "fence.raise", "Raise a fence on a component of a living node.", h.raiseFence),
		post(h, api.RoleAdmin, api.PathFences+"/lower", "fence.lower", "Lower a fence, or take it from its holder.", h.lowerFence).over(h.wasFence),
		weighed(post(h, api.RoleAdmin, api.PathNodes+"/forget", "node.forget", "Remove a node for good.", h.forgetNode).over(h.wasMember), weighForgetting, api.ApproveNode),
		post(h, api.RoleAdmin, api.PathNodes+"/replace", "node.replace", "Let a node come back with another home, once.", h.replaceNode).over(h.wasMember),
		post(h, api.RoleAdmin, api.PathRebase, "group.rebase", "Have positions and tokens go on above all that were ever given out.", h.rebase),
		get(h, api.PathUpgrade, "upgrade.read", "Which programs the nodes run, and what stands against finalizing an upgrade.", func(r *http.Request) (api.Upgrade, error) { return h.Members.Upgrade(r.Context()) }),
		post(h, api.RoleAdmin, api.PathUpgradeFinalize, "upgrade.finalize", "Have the group write the next protocol, which older programs do not read.", func(r *http.Request, want api.FinalizeUpgrade) (api.Upgrade, error) {
			return h.Operator.FinalizeUpgrade(r.Context(), want)
		}).over(h.wasUpgrade),
	}
}

func (h *handler) ofTasks() []Route {
	filter := append([]Param{{"active", "boolean", "only those that have not ended"}, {"internal", "boolean", "those that nobody asked for, too"},
		{"database", "string", "only of this one"}}, pages("task's id")...)
	one := api.PathTasks + "/{id}"
	return []Route{
		list(h, api.PathTasks, "tasks.read", "Tasks, newest first.", h.tasks, func(t api.Task) string { return t.ID }, filter...),
		get(h, one, "task.read", "One task.", func(r *http.Request) (api.Task, error) { return h.Tasks.Task(r.Context(), r.PathValue("id")) }),
		get(h, one+"/log", "tasklog.read", "What happened to a task.", func(r *http.Request) (api.TaskLog, error) { return h.Tasks.TaskLog(r.Context(), r.PathValue("id")) }),
		post(h, api.RoleOperator, one+"/cancel", "task.cancel", "Ask for the end of a task.", h.cancel).touching(h.ofTask).over(h.wasTask),
		weighed(post(h, api.RoleOperator, one+"/undo", "restore.undo", "Give the name of a restored database back to the one that it replaced.", func(r *http.Request, _ struct{}) (api.Task, error) {
			return h.Requests.Undo(r.Context(), r.PathValue("id"))
		}).over(h.wasTask), h.weighUndo, api.ApproveRestore),
	}
}

func (h *handler) ofBackups() []Route {
	one := api.PathBackups + "/{id}"
	return []Route{
		list(h, api.PathBackups, "backups.read", "Backups, newest first.", h.backups, func(b api.Backup) string { return b.ID },
			append([]Param{{"database", "string", "only of this one"}}, pages("backup's id")...)...),
		get(h, one, "backup.read", "One backup.", func(r *http.Request) (api.Backup, error) { return h.Backups.Backup(r.Context(), r.PathValue("id")) }),
		post(h, api.RoleOperator, api.PathBackups, "backup.create", "Plan a backup; the answer is its task.", h.createBackup).creating().touching(h.ofNewBackup),
		get(h, one+"/manifest", "manifest.read", "The manifest of a backup as it lies in a storage.", func(r *http.Request) (api.Manifest, error) {
			return h.Backups.Manifest(r.Context(), r.PathValue("id"), r.URL.Query().Get("storage"))
		}, Param{"storage", "string", "that it is read from; none: the first that has a copy"}),
		weighed(post(h, api.RoleOperator, one+"/restore", "restore.create", "Plan a restore; the answer is its task.", h.restore).creating().touching(h.ofRestore), h.weighRestore, api.ApproveRestore),
		ask(h, api.RoleOperator, api.PathPreview, "restore.preview", "What a restore would do, and meet; nothing is planned.", func(r *http.Request, want api.RestoreBackup) (api.RestorePlan, error) {
			return h.Requests.PreviewRestore(r.Context(), want)
		}).touching(h.ofRestore),
		weighed(post(h, api.RoleOperator, one+"/delete", "backup.delete", "Plan the deletion of a backup; the answer is its task.", func(r *http.Request, want api.DeleteBackup) (api.Task, error) {
			return h.Keeping.DeleteBackup(r.Context(), r.PathValue("id"), want)
		}).creating().touching(h.ofBackup).over(h.wasBackup), h.weighDelete, api.ApproveDelete),
		post(h, api.RoleOperator, one+"/undelete", "backup.undelete", "Take a planned deletion back.", func(r *http.Request, _ struct{}) (api.Backup, error) {
			return h.Keeping.UndeleteBackup(r.Context(), r.PathValue("id"))
		}).touching(h.ofBackup).over(h.wasBackup),
		post(h, api.RoleOperator, one+"/mark", "backup.mark", "Pin, accept or note a backup.", h.markBackup).touching(h.ofBackup).over(h.wasBackup),
		post(h, api.RoleOperator, one+"/verify", "backup.verify", "Plan a verification; the answer is its task.", func(r *http.Request, want api.VerifyBackup) (api.Task, error) {
			return h.Keeping.VerifyBackup(r.Context(), r.PathValue("id"), want)
		}).creating().touching(h.ofBackup),
		post(h, api.RoleOperator, one+"/replicate", "backup.replicate", "Plan the making or mending of copies; the answer is its task.", func(r *http.Request, want api.ReplicateBackup) (api.Task, error) {
			return h.Keeping.ReplicateBackup(r.Context(), r.PathValue("id"), want)
		}).creating().touching(h.ofBackup),
	}
}

func (h *handler) ofRecurring() []Route {
	one, kept := api.PathSchedules+"/{name}", api.PathRetention+"/{database}"
	enable := func(on bool) func(*http.Request, struct{}) (api.Schedule, error) {
		return func(r *http.Request, _ struct{}) (api.Schedule, error) {
			return h.Recurring.EnableSchedule(r.Context(), r.PathValue("name"), on)
		}
	}
	return []Route{
		get(h, api.PathSchedules, "schedules.read", "What recurs, with its next five runs.", func(r *http.Request) ([]api.Schedule, error) { return h.Recurring.Schedules(r.Context()) }),
		post(h, api.RoleOperator, one+"/run", "schedule.run", "Plan a task of a schedule now.", func(r *http.Request, _ struct{}) (api.Task, error) {
			return h.Recurring.RunSchedule(r.Context(), r.PathValue("name"))
		}).creating().touching(h.ofSchedule),
		post(h, api.RoleOperator, one+"/enable", "schedule.enable", "Let a schedule make tasks again.", enable(true)).touching(h.ofSchedule).over(h.wasSchedule),
		post(h, api.RoleOperator, one+"/disable", "schedule.disable", "Have a schedule make no tasks.", enable(false)).touching(h.ofSchedule).over(h.wasSchedule),
		get(h, kept, "retention.read", "What retention does with the backups of a database, and why: a dry run.", func(r *http.Request) (api.Prune, error) {
			return h.Recurring.Prune(r.Context(), r.PathValue("database"))
		}),
		weighed(post(h, api.RoleOperator, kept+"/confirm", "retention.confirm", "Let more go at once than the share that needs no word.", func(r *http.Request, _ struct{}) (api.Prune, error) {
			return h.Recurring.ConfirmPrune(r.Context(), r.PathValue("database"))
		}).touching(h.ofRetained).over(h.wasPrune), h.weighConfirm, api.ApproveDelete),
	}
}

func (h *handler) ofStorages() []Route {
	return []Route{
		weighed(post(h, api.RoleAdmin, api.PathStorages+"/{name}/check", "storage.check", "Compare a storage with the ledger; with fix, remove what nothing counts.", func(r *http.Request, want api.CheckStorage) ([]api.Finding, error) {
			return h.Storages.CheckStorage(r.Context(), r.PathValue("name"), want)
		}).taking(storageWork), weighCheck, api.ApproveStorage),
		post(h, api.RoleAdmin, api.PathStorages+"/{name}/test", "storage.test", "Try all that backups need of a storage, from the node that answers, under a name of its own.", func(r *http.Request, _ struct{}) (api.Tried, error) {
			return h.Storages.TryStorage(r.Context(), r.PathValue("name"))
		}),
		post(h, api.RoleAdmin, api.PathCatalog+"/rebuild", "catalog.rebuild", "Have the ledger know whole backups of the storages.", func(r *http.Request, want api.RebuildCatalog) ([]api.Backup, error) {
			return h.Storages.RebuildCatalog(r.Context(), want)
		}).taking(storageWork),
	}
}

func (h *handler) ofKeyring() []Route {
	return []Route{
		get(h, api.PathKeyring, "keyring.read", "The gossip keys of all nodes, by fingerprint.", func(r *http.Request) (api.Keyring, error) { return h.Keyring.Keyring(r.Context()) }).by(api.RoleAdmin),
		post(h, api.RoleAdmin, api.PathKeyring, "keyring.add", "Give all nodes a key.", h.addKey).over(h.wasKeyring),
		post(h, api.RoleAdmin, api.PathKeyring+"/rekey", "keyring.rekey", "Replace all gossip keys by a new one.", h.rekey).over(h.wasKeyring),
		post(h, api.RoleAdmin, api.PathKeyring+"/use", "keyring.use", "Have all nodes encrypt with a key.", h.useKey).over(h.wasKeyring),
		post(h, api.RoleAdmin, api.PathKeyring+"/remove", "keyring.remove", "Take a key away from all nodes.", h.removeKey).over(h.wasKeyring),
	}
}
