package web

import (
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Views are all pages, in the order of the menu.
func (s *Site) Views() []View {
	viewer, admin := api.RoleViewer, api.RoleAdmin
	return []View{
		s.logInPage(),
		s.overviewPage(),
		{Path: "/backups", Title: "Backups", Least: viewer, menu: "Backups", sheet: "backups", data: backups},
		{Path: "/backups/{id}", Title: "Backup", Least: viewer, sheet: "backup", data: backup},
		{Path: "/backups/{id}/manifest", Title: "Manifest", Least: viewer, sheet: "manifest", data: manifest},
		{Path: "/backups/{id}/restore", Title: "Restore", Least: viewer, sheet: "restore", data: restore},
		{Path: "/backups/{id}/delete", Title: "Delete a backup", Least: viewer, sheet: "delete", data: backup},
		{Path: "/tasks", Title: "Tasks", Least: viewer, menu: "Tasks", live: true, sheet: "tasks", data: tasks},
		{Path: "/tasks/{id}", Title: "Task", Least: viewer, live: true, sheet: "task", data: task},
		{Path: "/schedules", Title: "Schedules", Least: viewer, menu: "Schedules", sheet: "schedules", data: schedules},
		{Path: "/databases", Title: "Databases", Least: viewer, menu: "Databases", sheet: "databases", data: databases},
		{Path: "/databases/{name}", Title: "Database", Least: viewer, sheet: "database", data: database},
		{Path: "/storages", Title: "Storages", Least: viewer, menu: "Storages", sheet: "storages", data: storages},
		{Path: "/recoveries", Title: "Recoveries", Least: viewer, menu: "Recoveries", live: true, sheet: "recoveries", data: recoveries},
		{Path: "/recoveries/{component}/{run}", Title: "Recovery", Least: viewer, live: true, sheet: "recovery", data: recovery},
		{Path: "/components", Title: "Components and claims", Least: viewer, menu: "Components", live: true, sheet: "components", data: components},
		{Path: "/members", Title: "Members", Least: viewer, menu: "Members", live: true, sheet: "members", data: members},
		{Path: pathVersions, Title: "Versions", Least: viewer, sheet: "versions", data: versions},
		{Path: "/setup", Title: "Group", Least: viewer, menu: "Group", sheet: "setup", data: setup},
		{Path: "/setup/{kind}", Title: "Add a setting", Least: viewer, sheet: "setting", data: setting},
		{Path: "/setup/{kind}/{name}", Title: "Setting", Least: viewer, sheet: "setting", data: setting},
		{Path: "/approvals", Title: "Approvals", Least: viewer, menu: "Approvals", live: true, sheet: "approvals", data: waiting},
		{Path: "/approvals/{id}", Title: "Approval", Least: viewer, sheet: "approval", data: approval},
		{Path: "/audit", Title: "Audit trail", Least: admin, menu: "Audit", sheet: "audit", data: auditTrail},
		{Path: "/settings", Title: "Settings", Least: viewer, menu: "Settings", sheet: "settings", data: settings},
	}
}

// Deeds are all forms.
func (s *Site) Deeds() []Deed {
	return slices.Concat(s.ofSession(), ofBackups(), ofTasks(), ofSchedules(), ofDatabases(), ofStorages(), ofRecoveries(), ofComponents(), ofMembers(), ofVersions(), ofSetup(), ofApprovals(), ofSettings())
}
