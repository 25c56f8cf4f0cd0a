package web

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/admin"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// sample is a group with something of everything to show; what a test wants otherwise it changes before the first request.
// A change is answered as if it had been made, and counted.
type sample struct {
	now       time.Time
	overview  api.Overview
	members   []api.Member
	refused   []api.Member
	fences    []api.Fence
	recovered []api.Recovery
	tasks     []api.Task
	logs      map[string][]api.LogLine
	backups   []api.Backup
	schedules []api.Schedule
	claims    []api.Claim
	parts     []api.Component
	prune     api.Prune
	settings  []api.Setting
	servers   []api.Server
	databases []api.Database
	usage     api.Usage
	second    map[string]time.Duration // what takes a second person
	bound     map[string][]admin.Bound

	mu     sync.Mutex
	did    []string // changes
	looked int      // overviews that were made
}

func (s *sample) done(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, what)
}

func (s *sample) changes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.did
}

func (s *sample) backend() admin.Backend {
	return admin.Backend{
		Members: s, Recoveries: s, Operator: s, Drains: s, Keyring: s, Notifier: s, Reloader: s, Usage: s, Tasks: s, Backups: s, Requests: s, Keeping: s,
		Storages: s, Recurring: s, Autonomous: s, Settings: s, Approvals: s, Bindings: s, Watch: func(context.Context) <-chan struct{} { return make(chan struct{}) },
	}
}

func (s *sample) ApprovalsNeeded(context.Context) (map[string]time.Duration, error) {
	return s.second, nil
}
func (s *sample) Bound(user string) []admin.Bound { return s.bound[user] }
func (s *sample) LabelsOf(database string) []string {
	return map[string][]string{"shop": {"team-a"}, "warehouse": {"team-b"}}[database]
}
func (s *sample) Status(context.Context) (api.Status, error) { return s.overview.Status, nil }
func (s *sample) View(context.Context) (api.View, error) {
	return api.View{Version: 1764538000000128, Leader: "n1", Members: s.members, Refused: s.refused}, nil
}
func (s *sample) Overview(context.Context) (api.Overview, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked++
	return s.overview, nil
}
func (s *sample) Fences(context.Context) ([]api.Fence, error)        { return s.fences, nil }
func (s *sample) Recoveries(context.Context) ([]api.Recovery, error) { return s.recovered, nil }
func (s *sample) RetryRecovery(_ context.Context, r api.RecoveryName) (api.Recovery, error) {
	s.done("recovery.retry " + r.Component)
	return api.Recovery{Component: r.Component, Run: r.Run}, nil
}
func (s *sample) DropRecovery(_ context.Context, r api.DropRecovery) (api.Recovery, error) {
	s.done("recovery.drop " + r.Why)
	return api.Recovery{Component: r.Component, Run: r.Run}, nil
}
func (s *sample) RaiseFence(context.Context, api.FenceName) (api.Fence, error) {
	return api.Fence{}, nil
}
func (s *sample) LowerFence(context.Context, api.LowerFence) (api.Fence, error) {
	return api.Fence{}, nil
}
func (s *sample) ForgetNode(context.Context, api.NodeName) (api.Node, error) { return api.Node{}, nil }
func (s *sample) Upgrade(context.Context) (api.Upgrade, error)               { return s.overview.Upgrade, nil }
func (s *sample) FinalizeUpgrade(_ context.Context, r api.FinalizeUpgrade) (api.Upgrade, error) {
	s.done(strings.TrimSpace("upgrade.finalize " + strings.Join(r.Without, " ")))
	return s.overview.Upgrade, nil
}
func (s *sample) Rebase(context.Context, api.Rebase) (api.Numbers, error) { return api.Numbers{}, nil }

func (s *sample) ReplaceNode(context.Context, api.NodeName) (api.Node, error) { return api.Node{}, nil }

func (s *sample) Drain(_ context.Context, node string) (api.Drain, error) {
	if node == "n3" {
		return api.Drain{Node: node, State: api.DrainBusy, By: "ann", Here: true, Claims: 1, Tasks: []api.DrainTask{{ID: "t1"}}}, nil
	}
	return api.Drain{Node: node, State: api.DrainNone}, nil
}
func (s *sample) DrainNode(_ context.Context, n api.NodeName) (api.Drain, error) {
	s.done("node.drain " + n.Node)
	return api.Drain{Node: n.Node}, nil
}
func (s *sample) Removal(_ context.Context, node string) (api.Removal, error) {
	return api.Removal{Node: node, State: api.RemovalNone}, nil
}

func (s *sample) RemoveNode(_ context.Context, n api.NodeName) (api.Removal, error) {
	s.done("node.remove " + n.Node)
	return api.Removal{Node: n.Node, State: api.RemovalDraining}, nil
}

func (s *sample) UndrainNode(_ context.Context, n api.NodeName) (api.Drain, error) {
	s.done("node.undrain " + n.Node)
	return api.Drain{Node: n.Node}, nil
}
func (s *sample) MayRestart(_ context.Context, node string) (api.MayRestart, error) {
	if node == "n1" {
		return api.MayRestart{Node: node, Why: []string{"it leads: drain it first"}}, nil
	}
	return api.MayRestart{Node: node, May: true}, nil
}

func (s *sample) Tasks(_ context.Context, f api.TaskFilter) (list []api.Task, err error) {
	for _, t := range s.tasks {
		if (f.Internal || t.RunType == "user") && (!f.Active || !t.Final) && (f.Database == "" || t.Database == f.Database) {
			list = append(list, t)
		}
	}
	return list, nil
}
func (s *sample) Task(_ context.Context, id string) (api.Task, error) {
	for _, t := range s.tasks {
		if t.ID == id {
			return t, nil
		}
	}
	return api.Task{}, &api.Error{Code: api.CodeNotFound, Message: "there is no task \"" + id + "\"", Hint: "fencepost tasks lists them"}
}
func (s *sample) TaskLog(_ context.Context, id string) (api.TaskLog, error) {
	return api.TaskLog{Task: id, Lines: s.logs[id]}, nil
}
func (s *sample) Cancel(_ context.Context, id string) (api.Task, error) {
	s.done("task.cancel " + id)
	return api.Task{ID: id}, nil
}
func (s *sample) Backups(_ context.Context, f api.BackupFilter) (list []api.Backup, err error) {
	for _, b := range s.backups {
		if f.Database == "" || b.Database == f.Database {
			list = append(list, b)
		}
	}
	return list, nil
}
func (s *sample) Backup(_ context.Context, id string) (api.Backup, error) {
	for _, b := range s.backups {
		if b.ID == id {
			return b, nil
		}
	}
	return api.Backup{}, &api.Error{Code: api.CodeNotFound, Message: "there is no backup \"" + id + "\""}
}
func (s *sample) CreateBackup(_ context.Context, r api.CreateBackup) (api.Task, error) {
	s.done("backup.create " + r.Database)
	return api.Task{ID: "t1"}, nil
}
func (s *sample) Restore(_ context.Context, r api.RestoreBackup) (api.Task, error) {
	s.done("restore.create " + r.Target)
	return api.Task{ID: "t1"}, nil
}
func (s *sample) PreviewRestore(_ context.Context, r api.RestoreBackup) (api.RestorePlan, error) {
	p := api.RestorePlan{Database: "shop", Target: r.Target, Storage: "near", Server: "15.14", KeepOldMS: 86400000}
	if p.Target == "" {
		p.Target, p.Exists, p.Bytes, p.Clients = "shop", true, 41<<20, []string{"web/checkout", "ann/psql"}
	}
	if p.Exists && !r.Replace {
		return p, &api.Error{Code: api.CodeConflict, Message: "there is a database \"shop\" already", Hint: "let it be replaced, or choose another name"}
	}
	return p, nil
}
func (s *sample) Undo(_ context.Context, id string) (api.Task, error) {
	s.done("restore.undo " + id)
	return api.Task{ID: id}, nil
}
func (s *sample) DeleteBackup(_ context.Context, id string, r api.DeleteBackup) (api.Task, error) {
	s.done("backup.delete " + id)
	return api.Task{ID: "t1"}, nil
}
func (s *sample) UndeleteBackup(_ context.Context, id string) (api.Backup, error) {
	s.done("backup.undelete " + id)
	return api.Backup{ID: id}, nil
}
func (s *sample) MarkBackup(_ context.Context, id string, r api.MarkBackup) (api.Backup, error) {
	what := "backup.mark " + id
	if r.Pinned != nil {
		what += fmt.Sprint(" pinned ", *r.Pinned)
	}
	if r.Note != nil {
		what += " " + *r.Note
	}
	s.done(what)
	return api.Backup{ID: id}, nil
}
func (s *sample) VerifyBackup(_ context.Context, id string, r api.VerifyBackup) (api.Task, error) {
	s.done("backup.verify " + id)
	return api.Task{ID: "t1"}, nil
}
func (s *sample) ReplicateBackup(_ context.Context, id string, r api.ReplicateBackup) (api.Task, error) {
	s.done("backup.replicate " + id)
	return api.Task{ID: "t1"}, nil
}
func (s *sample) CheckStorage(_ context.Context, name string, r api.CheckStorage) ([]api.Finding, error) {
	s.done("storage.check " + name)
	return []api.Finding{{Storage: name, Kind: "partial", Backup: "b2", Object: "b2/17/data.part", Problem: "an upload that was given up", Fixable: true, Fixed: r.Fix}}, nil
}
func (s *sample) RebuildCatalog(context.Context, api.RebuildCatalog) ([]api.Backup, error) {
	return nil, nil
}
func (s *sample) Schedules(context.Context) ([]api.Schedule, error) { return s.schedules, nil }
func (s *sample) RunSchedule(_ context.Context, name string) (api.Task, error) {
	s.done("schedule.run " + name)
	return api.Task{ID: "t1"}, nil
}
func (s *sample) EnableSchedule(_ context.Context, name string, on bool) (api.Schedule, error) {
	s.done("schedule " + name)
	return api.Schedule{Name: name}, nil
}
func (s *sample) Prune(context.Context, string) (api.Prune, error) { return s.prune, nil }
func (s *sample) ConfirmPrune(_ context.Context, name string) (api.Prune, error) {
	s.done("retention.confirm " + name)
	return s.prune, nil
}
func (s *sample) Components(context.Context) ([]api.Component, error) { return s.parts, nil }
func (s *sample) RunComponent(_ context.Context, name string) (api.Tick, error) {
	s.done("component.run " + name)
	return api.Tick{Component: name}, nil
}
func (s *sample) Tick(context.Context, string, string) (api.Tick, error) { return api.Tick{}, nil }
func (s *sample) PauseComponent(_ context.Context, name string, on bool) (api.Component, error) {
	s.done("component " + name)
	return api.Component{Name: name, Paused: on}, nil
}
func (s *sample) Items(context.Context, api.ItemQuery) ([]api.Item, error) { return nil, nil }
func (s *sample) Item(context.Context, api.ItemQuery, string) (api.Item, error) {
	return api.Item{}, nil
}
func (s *sample) PutItem(context.Context, api.PutItem) (api.Item, error) { return api.Item{}, nil }
func (s *sample) AppendEvent(context.Context, string, api.AppendEvent) (api.Item, error) {
	return api.Item{}, nil
}
func (s *sample) ForgetEvents(context.Context, string, api.ForgetEvents) (api.Forgotten, error) {
	return api.Forgotten{}, nil
}
func (s *sample) Claims(context.Context) ([]api.Claim, error) { return s.claims, nil }
func (s *sample) EndClaim(_ context.Context, r api.ClaimName, quarantine bool) (api.Claim, error) {
	s.done("claim " + r.Item)
	return api.Claim{Component: r.Component, Item: r.Item, Token: r.Token}, nil
}
func (s *sample) Keyring(context.Context) (api.Keyring, error) { return api.Keyring{}, nil }
func (s *sample) AddGossipKey(context.Context, api.AddKey) (api.Keyring, error) {
	return api.Keyring{}, nil
}
func (s *sample) Rekey(ctx context.Context) (api.Keyring, error) {
	return s.UseGossipKey(ctx, api.KeyName{})
}

func (s *sample) UseGossipKey(context.Context, api.KeyName) (api.Keyring, error) {
	return api.Keyring{}, nil
}
func (s *sample) RemoveGossipKey(context.Context, api.KeyName) (api.Keyring, error) {
	return api.Keyring{}, nil
}
func (s *sample) TestNotify(context.Context, api.TestNotify) ([]api.NotifyResult, error) {
	return nil, nil
}
func (s *sample) Reload(context.Context) (api.Reload, error) {
	s.done("config.reload")
	return api.Reload{File: "/etc/fencepost/n1.yaml", Applied: []string{"log.level"}, Restart: []string{"raft.voters"}}, nil
}
func (s *sample) Usage(context.Context) (api.Usage, error) { return s.usage, nil }

func (s *sample) Settings(context.Context) (api.Settings, error) {
	return api.Settings{Version: 7, Settings: s.settings}, nil
}
func (s *sample) PlanSettings(context.Context, api.ApplySettings) (api.AppliedSettings, error) {
	return api.AppliedSettings{}, nil
}
func (s *sample) ApplySettings(_ context.Context, r api.ApplySettings) (api.AppliedSettings, error) {
	for _, seen := range r.Seen {
		now := api.NoSetting
		for _, x := range s.settings {
			if x.Kind == seen.Kind && x.Name == seen.Name {
				now = api.SpecTag(x.Spec)
			}
		}
		if now != seen.Tag {
			return api.AppliedSettings{}, &api.Error{Code: api.CodeConflict, Message: "somebody has changed " + seen.Kind + " " + seen.Name + " meanwhile"}
		}
	}
	for _, x := range r.Settings {
		if strings.Contains(string(x.Spec), "hush") {
			return api.AppliedSettings{}, &api.Error{Code: api.CodeUsage, Message: "database " + x.Name + ": dsn: holds a password", Hint: "put it into a file of its own"}
		}
		s.done("setting.set " + x.Kind + " " + x.Name + " " + string(x.Spec))
	}
	return api.AppliedSettings{}, nil
}
func (s *sample) RemoveSetting(_ context.Context, kind, name string) (api.AppliedSettings, error) {
	s.done("setting.remove " + kind + " " + name)
	return api.AppliedSettings{}, nil
}
func (s *sample) Servers(context.Context) ([]api.Server, error) { return s.servers, nil }
func (s *sample) LookAtServer(_ context.Context, name string) (api.Server, error) {
	s.done("server.look " + name)
	return api.Server{Name: name}, nil
}
func (s *sample) Databases(context.Context) ([]api.Database, error) { return s.databases, nil }
func (s *sample) ForgetDatabase(_ context.Context, name string) error {
	s.done("database.forget " + name)
	return nil
}
func (s *sample) TryStorage(_ context.Context, name string) (api.Tried, error) {
	s.done("storage.test " + name)
	return api.Tried{Name: name, Node: "n1", Found: "read: input/output error", Hint: "look at the disk", Steps: []api.TryStep{{Step: "write", TookMS: 3}, {Step: "read", TookMS: 12, Problem: "input/output error"}}, Left: []string{"storage-test-1/a"}}, nil
}
func (s *sample) TryDatabase(_ context.Context, name string) (api.Tried, error) {
	s.done("database.test " + name)
	return api.Tried{Name: name, Node: "n1", Good: true, Found: "server 15.18, program 15.18, all of it may be read"}, nil
}
func (s *sample) Manifest(ctx context.Context, id, storage string) (api.Manifest, error) {
	if _, err := s.Backup(ctx, id); err != nil {
		return api.Manifest{}, err
	}
	return api.Manifest{Backup: id, Token: 1764538112345478, Storage: storage, Object: id + "/1764538112345478/manifest.json", Manifest: []byte(`{"format":2,"backup":"b1","database":"shop","objects":[{"name":"data","raw_bytes":432013312}]}`)}, nil
}
