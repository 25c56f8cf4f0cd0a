package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/settings"
)

// now is when all tests happen.
func now() time.Time { return time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC) }

func before(d time.Duration) *time.Time {
	at := now().Add(-d)
	return &at
}

const runA, runB, runC = "aaaaaaaa00000000aaaaaaaa00000000", "bbbbbbbb11111111bbbbbbbb11111111", "cccccccc22222222cccccccc22222222"

// fake is a daemon's inside: a group of two whose third member died, and some work.
type fake struct {
	mu       sync.Mutex
	tasks    []api.Task
	view     api.View
	watchers []chan struct{}
	watching chan struct{} // receives when a request begins to wait
	settings *settings.Keeper
	removed  string // the node that is removed
}

func newFake() *fake {
	f := &fake{watching: make(chan struct{}, 100)}
	f.view = api.View{Version: 1042, Leader: "n1", Members: []api.Member{
		{Node: "n1", Run: runA, Epoch: 1007, Role: "core", State: "ready", Ready: true, Leader: true, Voter: true, Self: true,
			GossipAddr: "127.0.0.1:7946", ClusterAddr: "127.0.0.1:7947", Components: []string{"backup", "restore"}, JoinedAt: before(26 * time.Hour), Version: "v0.1", Protocol: 2},
		{Node: "n3", Run: runC, Epoch: 1009, Role: "witness", Suspected: true, Fed: true,
			GossipAddr: "127.0.0.1:7966", ClusterAddr: "127.0.0.1:7967", Components: []string{}, JoinedAt: before(3 * time.Minute), Version: "v0.0.9", Protocol: 1},
	}}
	f.view.Refused = []api.Member{{Node: "n2", State: api.MemberRefused, Components: []string{},
		Problem: "no trust: certificate has expired: that of fencepost://shop/n2, on 2026-03-28 10:00 UTC: `fencepost certs renew --node n2`"}}
	f.tasks = []api.Task{
		{ID: "t3", Type: "create", RunType: "user", State: "uploading", Attempt: 2, MaxAttempts: 3, Node: "n1", Run: runA, Token: 77,
			Database: "shop", Backup: "b3", Storages: []string{"disk", "nas"},
			Needs: &api.Needs{Labels: []string{"big", "eu"}, Client: 16}, Begun: before(80 * time.Second),
			Progress: api.Progress{Read: 150 << 20, Estimate: 200 << 20, Processed: 42 << 20, Rate: 10 << 20, LeftMS: 5000, Stored: map[string]int64{"nas": 40 << 20, "disk": 41 << 20}},
			Created:  *before(90 * time.Second), Updated: *before(2 * time.Second)},
		{ID: "t2", Type: "create", RunType: "user", State: "failed", Final: true, Attempt: 3, MaxAttempts: 3, Node: "n3", Run: runC, Token: 70,
			Database: "books", Backup: "b2", Storages: []string{"disk"}, Error: "the password was refused by\x1b[31m the server", Hint: "check databases[1].dsn",
			Created: *before(3 * time.Hour), Updated: *before(2 * time.Hour), Finished: before(2 * time.Hour)},
		{ID: "t1", Type: "create", RunType: "user", State: "completed", Final: true, Attempt: 1, MaxAttempts: 3, Node: "n1", Run: runA, Token: 69,
			Database: "shop", Backup: "b1", Storages: []string{"disk", "nas"}, Progress: api.Progress{Read: 5 << 30},
			Created: *before(73 * time.Hour), Updated: *before(72 * time.Hour), Finished: before(72 * time.Hour)},
	}
	f.tasks = append(f.tasks, api.Task{ID: "t0", Type: "restore", RunType: "user", State: "completed", Final: true, Attempt: 1, MaxAttempts: 3, Node: "n1", Run: runA, Token: 60,
		Database: "shop", Backup: "b1", Target: "shop", Replace: true, Undo: "shop__was_60", Storages: []string{},
		Created: *before(80 * time.Hour), Updated: *before(80 * time.Hour), Finished: before(80 * time.Hour)})
	return f
}

// step changes the newest task and tells those who wait.
func (f *fake) step(change func(*api.Task)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.tasks[0])
	f.tell()
}

func (f *fake) tell() {
	for _, w := range f.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (f *fake) watch(context.Context) <-chan struct{} {
	w := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers = append(f.watchers, w)
	f.watching <- struct{}{}
	return w
}

func (f *fake) Status(context.Context) (api.Status, error) {
	return api.Status{Node: "n1", Run: runA, Epoch: 1007, Group: "shop", Leader: "n1", Version: "v0.1", View: 1042, State: "ready",
		Lease: "held", Ready: true, Problems: []string{"two members cannot survive the loss of one"}}, nil
}

// Overview is of a group whose third member has died, with one database that is well and three that are not.
func (f *fake) Overview(ctx context.Context) (api.Overview, error) {
	s, _ := f.Status(ctx)
	fences, _ := f.Fences(ctx)
	upgrade, _ := f.Upgrade(ctx)
	return api.Overview{
		Upgrade: upgrade, Status: s, Health: api.HealthAlarmed, Crew: api.Crew{Members: 2, Ready: 1, Suspected: 1, Voters: 3, Present: 2}, Fences: fences, Active: 1, Waiting: 2,
		Alarms: []api.Alarm{
			{Kind: "backup", About: "books", Severity: api.Critical, Text: "the last good backup of books is of 2026-03-27 02:00:00Z, and one is expected every 26h",
				Hint: "check databases[1].dsn", Cause: "the password was refused by\x1b[31m the server", Since: before(32 * time.Hour)},
			{Kind: "voters", About: "shop", Severity: api.Warning, Text: "2 of 3 voters are here: the group does not survive the loss of another", Hint: "start the ones that are down"},
			{Kind: "storage", About: "nas on n3", Severity: api.Warning, Text: "storage nas: connection refused", From: "n3", Local: true, Since: before(5 * time.Minute)},
		},
		Databases: []api.DatabaseState{
			{Name: "books", State: api.BackupsOverdue, Backup: "b0", LastGood: before(58 * time.Hour), Storages: []string{"disk"}, Bytes: 1 << 20, RPOMS: (26 * time.Hour).Milliseconds(),
				Due: before(32 * time.Hour), Failed: "t2", Error: "the password was refused by\x1b[31m the server"},
			{Name: "new", State: api.BackupsNone, RPOMS: (26 * time.Hour).Milliseconds(), Due: before(-26 * time.Hour), Next: before(-90 * time.Minute)},
			{Name: "old", State: api.BackupsUnwatched, Backup: "b7", LastGood: before(400 * 24 * time.Hour), Storages: []string{"nas"}, Bytes: 5 << 30},
			{Name: "shop", State: api.BackupsGood, Backup: "b1", LastGood: before(3 * time.Hour), Storages: []string{"disk", "nas"}, Verified: before(time.Hour), Bytes: 1234567890,
				RPOMS: (26 * time.Hour).Milliseconds(), Due: before(-23 * time.Hour), Next: before(-14 * time.Hour), Running: "t3"},
		},
		Storages: []api.StorageState{{Name: "disk", State: "ready", Since: before(26 * time.Hour)}, {Name: "nas", State: "away", Problem: "connection refused", Since: before(5 * time.Minute)}},
	}, nil
}

func (f *fake) View(context.Context) (api.View, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view, nil
}

func (f *fake) Fences(context.Context) ([]api.Fence, error) {
	return []api.Fence{
		{Component: "backup", Node: "n2", Run: runB, Holder: "n1", HolderRun: runA, Token: 77, State: api.FenceRaised, Index: 1043,
			Tried: []string{}, Evidence: "refused", Since: before(4 * time.Second), WaitingFor: "n1 to finish"},
		{Component: "restore", Node: "n2", Run: runB, State: api.FenceParked, Index: 1050, Attempts: 3, Tried: []string{"n3", "n1"},
			Evidence: "refused", Problem: "target is read-only", Since: before(4 * time.Second), WaitingFor: "an operator: fencepost recoveries retry, or drop"},
	}, nil
}

func (f *fake) Recoveries(context.Context) ([]api.Recovery, error) {
	at := func(d time.Duration) *time.Time { return before(50*time.Hour - d) }
	return []api.Recovery{
		{Component: "restore", Node: "n2", Run: runB, Evidence: "refused", State: api.FenceParked, Attempts: 3, Tried: []string{"n3", "n1"},
			Problem: "target is read-only", Opened: 1040, Since: before(4 * time.Second), Steps: []api.Step{
				{What: "closed", Position: 1040, At: before(4 * time.Second), Node: "n2", Run: runB, Why: "the host refuses"},
				{What: "parked", Position: 1044, At: before(time.Second)},
			}},
		{Component: "backup", Node: "n2", Run: runB, Evidence: "lapsed", State: "released", Recoverer: "n3", Token: 60,
			Attempts: 1, Tried: []string{}, Opened: 900, Ended: 950, Since: at(0), EndedAt: at(1500 * time.Millisecond), Steps: []api.Step{
				{What: "closed", Position: 900, At: at(0), Node: "n2", Run: runB, Why: "no renewal for 3s"},
				{What: "appointed", Position: 900, At: at(0), Node: "n1", Run: runA},
				{What: "raised", Position: 903, At: at(12 * time.Millisecond), Node: "n1", Run: runA, Token: 58},
				{What: "handed over", Position: 940, At: at(time.Second), Node: "n1", Run: runA, Token: 58, Why: "it gives no progress"},
				{What: "appointed", Position: 940, At: at(time.Second), Node: "n3", Run: runC},
				{What: "raised", Position: 941, At: at(1010 * time.Millisecond), Node: "n3", Run: runC, Token: 60},
				{What: "released", Position: 950, At: at(1500 * time.Millisecond), Node: "n3", Run: runC, Token: 60},
			}},
	}, nil
}

// named is the open recovery that a person may decide about.
func (f *fake) named(ctx context.Context, r api.RecoveryName) (api.Recovery, error) {
	all, _ := f.Recoveries(ctx)
	for _, y := range all {
		if y.Component == r.Component && strings.HasPrefix(y.Run, r.Run) && y.Ended == 0 {
			return y, nil
		}
	}
	return api.Recovery{}, &api.Error{Code: api.CodeNotFound, Message: "no recovery of " + r.Component + " of a run " + r.Run + " is open"}
}

func (f *fake) decided(y api.Recovery, state, what, why string) api.Recovery {
	y.State, y.Problem = state, why
	y.Steps = append(y.Steps, api.Step{What: what, Position: 1050, At: before(0), Why: why})
	return y
}

func (f *fake) RetryRecovery(ctx context.Context, r api.RecoveryName) (api.Recovery, error) {
	y, err := f.named(ctx, r)
	if err != nil {
		return y, err
	}
	return f.decided(y, api.FenceAppointed, "retried", ""), nil
}

func (f *fake) DropRecovery(ctx context.Context, r api.DropRecovery) (api.Recovery, error) {
	y, err := f.named(ctx, r.RecoveryName)
	if err != nil {
		return y, err
	}
	return f.decided(y, "dropped", "dropped", r.Why), nil
}

func (f *fake) RaiseFence(_ context.Context, w api.FenceName) (api.Fence, error) {
	if w.Node == "n9" {
		return api.Fence{}, &api.Error{Code: api.CodeNotFound, Message: "node n9 is not in the view", Hint: "only a living node is maintained; see fencepost members"}
	}
	return api.Fence{Component: w.Component, Node: w.Node, Holder: "n1", HolderRun: runA, Token: 80, State: api.FenceMaintenance, Tried: []string{},
		WaitingFor: "n1 to lower it"}, nil
}

func (f *fake) ForgetNode(_ context.Context, n api.NodeName) (api.Node, error) {
	switch n.Node {
	case "n2":
		return api.Node{Node: "n2", State: api.NodeForgotten}, nil
	case "n1":
		return api.Node{}, &api.Error{Code: api.CodeBusy, Message: "forget n1: held by another: a run of the node is open", Hint: "stop the node first"}
	}
	return api.Node{}, &api.Error{Code: api.CodeNotFound, Message: "forget " + n.Node + ": not found: the node is not known"}
}

func (f *fake) Drain(_ context.Context, node string) (api.Drain, error) {
	d := api.Drain{Node: node, State: api.DrainBusy, By: "the operator of n1", Since: before(time.Minute), Here: true, Tasks: []api.DrainTask{}}
	switch node {
	case "n1":
		d.Tasks = []api.DrainTask{{ID: "t1", Type: "create", Database: "shop", LeftMS: 720_000}, {ID: "t2", Type: "verify"}}
		d.Claims = 2
	case "n2":
		d.State = api.DrainIdle
	case "n3":
		d.State, d.Here = api.DrainIdle, false
	default:
		return api.Drain{}, &api.Error{Code: api.CodeNotFound, Message: "the group knows no node " + node, Hint: "fencepost members lists those that run"}
	}
	return d, nil
}

func (f *fake) DrainNode(ctx context.Context, n api.NodeName) (api.Drain, error) {
	return f.Drain(ctx, n.Node)
}

func (f *fake) Removal(ctx context.Context, node string) (api.Removal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.Drain(ctx, node)
	m := api.Removal{Node: node, State: api.RemovalNone, Drain: d, Storages: []api.BoundStorage{}}
	if node == "n2" {
		m.Storages = append(m.Storages, api.BoundStorage{Name: "attic", Backups: 3, Only: 1})
	}
	if f.removed == node && node != "n1" { // it has nothing to do any more
		return m, &api.Error{Code: api.CodeNotFound, Message: "the group knows no node " + node}
	}
	if f.removed == node {
		m.State = api.RemovalDraining
	}
	return m, err
}

func (f *fake) RemoveNode(ctx context.Context, n api.NodeName) (api.Removal, error) {
	m, err := f.Removal(ctx, n.Node)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed, m.State = n.Node, api.RemovalDraining
	if m.Drain.State == api.DrainIdle {
		m.State = api.RemovalLeaving
	}
	return m, err
}

func (f *fake) UndrainNode(_ context.Context, n api.NodeName) (api.Drain, error) {
	return api.Drain{Node: n.Node, State: api.DrainNone, Here: true, Tasks: []api.DrainTask{}}, nil
}

func (f *fake) MayRestart(_ context.Context, node string) (api.MayRestart, error) {
	if node == "n1" {
		return api.MayRestart{Node: node, May: true, Why: []string{}}, nil
	}
	return api.MayRestart{Node: node, Why: []string{"voter n3 is not here", "the fence on backup of n3 is open: fencepost fences"}}, nil
}

func (f *fake) ReplaceNode(_ context.Context, n api.NodeName) (api.Node, error) {
	return api.Node{Node: n.Node, State: api.NodeReplaceable}, nil
}

func (f *fake) Upgrade(context.Context) (api.Upgrade, error) {
	return api.Upgrade{Protocol: 1, Next: 2, Against: []string{"n3 runs v0.0.9, which reads protocols up to 1", "n2 is not here"}, Programs: []api.Program{
		{Node: "n1", Version: "v0.1", Protocol: 2, Here: true}, {Node: "n2"}, {Node: "n3", Version: "v0.0.9", Protocol: 1, Here: true},
	}}, nil
}

func (f *fake) FinalizeUpgrade(ctx context.Context, want api.FinalizeUpgrade) (api.Upgrade, error) {
	u, _ := f.Upgrade(ctx)
	if len(want.Without) == 0 {
		return u, &api.Error{Code: api.CodeBusy, Message: "the upgrade cannot be finalized yet: " + strings.Join(u.Against, "; "), Hint: "upgrade and start these nodes first"}
	}
	u.Protocol, u.Against, u.Programs[2] = 2, []string{}, api.Program{Node: "n3", Version: "v0.1", Protocol: 2, Here: true}
	return u, nil
}

func (f *fake) Rebase(_ context.Context, r api.Rebase) (api.Numbers, error) {
	if r.Above >= 1<<52 {
		return api.Numbers{}, &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("raise the group's numbers above %d: too large", r.Above)}
	}
	base := max(r.Above, 1764000000000000) + 1
	return api.Numbers{Base: base, Position: base + 12, Token: base, Before: 1763000000000000}, nil
}

func (f *fake) LowerFence(_ context.Context, w api.LowerFence) (api.Fence, error) {
	switch {
	case w.Token == 80:
		return api.Fence{Component: w.Component, Node: w.Node, Holder: "n1", Token: 80, State: api.FenceLowered, Tried: []string{}}, nil
	case w.Token == 77 && w.Force:
		return api.Fence{Component: w.Component, Node: w.Node, Run: runB, Holder: "n3", HolderRun: runC, Token: 77, State: api.FenceAppointed,
			Tried: []string{"n1"}, Problem: w.Why, WaitingFor: "n3 to raise it"}, nil
	}
	return api.Fence{}, &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("no maintenance fence on %s of %s was raised under token %d", w.Component, w.Node, w.Token),
		Hint: "see fencepost fences"}
}

func (f *fake) Tasks(_ context.Context, filter api.TaskFilter) ([]api.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []api.Task
	for _, t := range f.tasks {
		if (filter.Active && t.Final) || (filter.Database != "" && t.Database != filter.Database) {
			continue
		}
		if out = append(out, t); len(out) == filter.Limit {
			break
		}
	}
	return out, nil
}

func (f *fake) TaskLog(_ context.Context, id string) (api.TaskLog, error) {
	if id != "t3" {
		return api.TaskLog{Task: id, Lines: []api.LogLine{}}, nil
	}
	return api.TaskLog{Task: id, Dropped: 7, Lines: []api.LogLine{
		{At: *before(90 * time.Second), Attempt: 1, Token: 70, Node: "n2", Level: "warn", Text: "storage away, storage nas: \x1b[31mtime-out"},
		{At: *before(80 * time.Second), Attempt: 2, Token: 77, Node: "n1", Level: "info", Text: "attempt begins, type create, attempt 2"},
	}}, nil
}

func (f *fake) Task(_ context.Context, id string) (api.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.tasks, func(t api.Task) bool { return t.ID == id })
	if i < 0 {
		return api.Task{}, &api.Error{Code: api.CodeNotFound, Message: "there is no task " + id, Hint: "fencepost tasks lists them"}
	}
	if t := &f.tasks[i]; t.Type == "restore" && t.Replace && !t.Final { // it takes no longer than a look
		t.State, t.Final, t.Finished, t.Undo = "completed", true, before(0), "shop__was_77"
	}
	return f.tasks[i], nil
}

func (f *fake) Cancel(ctx context.Context, id string) (api.Task, error) {
	t, err := f.Task(ctx, id)
	if err != nil {
		return t, err
	}
	if t.Final {
		return t, &api.Error{Code: api.CodeConflict, Message: "task " + id + " has ended"}
	}
	f.step(func(t *api.Task) { t.CancelRequested, t.CancelBy = true, "root" })
	return f.Task(ctx, id)
}

func (f *fake) Backups(_ context.Context, filter api.BackupFilter) ([]api.Backup, error) {
	if filter.Database != "" && filter.Database != "shop" {
		return nil, nil
	}
	return []api.Backup{
		{ID: "b4", Database: "shop", State: "creating", Created: *before(time.Minute)},
		{ID: "b1", Database: "shop", State: "completed", Token: 69, AsOf: before(73 * time.Hour), RawBytes: 5 << 30, StoredBytes: 1234567890,
			SHA256: "e3b0c442", Created: *before(73 * time.Hour), Completed: before(72 * time.Hour), DurationMS: 3600000, Globals: "without passwords",
			Storages: []api.Copy{{Storage: "disk", State: "present", Bytes: 1234567890}, {Storage: "nas", State: "missing", Error: "disk full"}}},
	}, nil
}

func (f *fake) Backup(ctx context.Context, id string) (api.Backup, error) {
	all, _ := f.Backups(ctx, api.BackupFilter{})
	for _, b := range all {
		if b.ID == id {
			return b, nil
		}
	}
	return api.Backup{}, &api.Error{Code: api.CodeNotFound, Message: "there is no backup " + id, Hint: "fencepost backup list lists them"}
}

func (f *fake) CreateBackup(_ context.Context, r api.CreateBackup) (api.Task, error) {
	switch r.Database {
	case "shop":
		t := api.Task{Type: "create", Database: r.Database, Storages: r.Storages}
		if len(r.Needs) > 0 {
			t.Needs = &api.Needs{Labels: r.Needs}
			t.Waits = []string{"n1 has no label " + r.Needs[0], "n2 knows no database " + r.Database}
		}
		return f.plan(t), nil
	case "busy":
		return api.Task{}, &api.Error{Code: api.CodeBusy, Message: "a backup of busy is being made", Hint: "fencepost tasks --active"}
	case "lost":
		return api.Task{}, &api.Error{Code: api.CodeLeaseLost, Message: "the lease of n1 has run out"}
	case "running":
		return api.Task{}, &api.Error{Code: api.CodeNotStopped, Message: "the former owner may still run"}
	case "parked":
		return api.Task{}, &api.Error{Code: api.CodeNeedsOperator, Message: "the ledger needs a decision"}
	}
	return api.Task{}, fmt.Errorf("no database is called %s", r.Database)
}

func (f *fake) Restore(ctx context.Context, r api.RestoreBackup) (api.Task, error) {
	b, err := f.Backup(ctx, r.Backup)
	if err != nil {
		return api.Task{}, err
	}
	target := r.Target
	if target == "" {
		target = b.Database
	}
	if target == "shop" && !r.Replace && !r.InPlace {
		return api.Task{}, &api.Error{Code: api.CodeConflict, Message: "database shop is there", Hint: "--replace replaces it, --as restores under another name"}
	}
	return f.plan(api.Task{Type: "restore", Database: b.Database, Backup: b.ID, Target: target, Replace: r.Replace, Storages: []string{r.Storage}}), nil
}

func (f *fake) PreviewRestore(ctx context.Context, r api.RestoreBackup) (api.RestorePlan, error) {
	if r.Backup == "" {
		r.Backup = "b1"
	}
	b, err := f.Backup(ctx, r.Backup)
	if err != nil {
		return api.RestorePlan{}, err
	}
	p := api.RestorePlan{Backup: b, Database: b.Database, Target: r.Target, Storage: "disk", Server: "15.18", Clients: []string{}, InPlace: r.InPlace}
	if p.Target == "" {
		p.Target = b.Database
	}
	if p.Target == "copy" {
		return p, nil
	}
	if !r.Replace && !r.InPlace {
		return p, &api.Error{Code: api.CodeConflict, Message: "database " + p.Target + " is there", Hint: "--replace replaces it, --as restores under another name"}
	}
	p.Exists, p.Bytes, p.Clients, p.More = true, 6<<30, []string{"ann/till", "bob/psql"}, 3
	if !r.InPlace {
		p.KeepOldMS = (24 * time.Hour).Milliseconds()
	}
	return p, nil
}

func (f *fake) Undo(ctx context.Context, task string) (api.Task, error) {
	t, err := f.Task(ctx, task)
	if err == nil && t.Type != "restore" {
		err = &api.Error{Code: api.CodeUsage, Message: "task " + task + " is no completed restore"}
	}
	return t, err
}

func (f *fake) plan(t api.Task) api.Task {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.ID, t.RunType, t.State, t.MaxAttempts = "t4", "user", "planned", 3
	t.Created, t.Updated = now(), now()
	f.tasks = append([]api.Task{t}, f.tasks...)
	return t
}

func (f *fake) DeleteBackup(_ context.Context, id string, r api.DeleteBackup) (api.Task, error) {
	return api.Task{ID: "d1", Type: "delete", State: "planned", Backup: id, NotBefore: notBefore(r.Now)}, nil
}

func (f *fake) UndeleteBackup(_ context.Context, id string) (api.Backup, error) {
	return api.Backup{ID: id, State: "completed"}, nil
}

func (f *fake) MarkBackup(_ context.Context, id string, r api.MarkBackup) (api.Backup, error) {
	b := api.Backup{ID: id, State: "completed", MarkedBy: "ann"}
	if r.Pinned != nil {
		b.Pinned = *r.Pinned
	}
	if r.Accepted != nil {
		b.Accepted = *r.Accepted
	}
	if r.Note != nil {
		b.Note = *r.Note
	}
	return b, nil
}

func (f *fake) VerifyBackup(_ context.Context, id string, r api.VerifyBackup) (api.Task, error) {
	return api.Task{ID: "v1", Type: "verify", State: "planned", Backup: id, Storages: r.Storages, Target: r.Scratch}, nil
}

func (f *fake) ReplicateBackup(_ context.Context, id string, r api.ReplicateBackup) (api.Task, error) {
	return api.Task{ID: "r1", Type: "replicate", State: "planned", Backup: id, Storages: r.Storages}, nil
}

// notBefore is when a delete goes.
func notBefore(now bool) *time.Time {
	if now {
		return nil
	}
	at := time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC)
	return &at
}

func (f *fake) CheckStorage(_ context.Context, name string, r api.CheckStorage) ([]api.Finding, error) {
	if name == "nas" {
		return []api.Finding{}, nil
	}
	return []api.Finding{
		{Storage: name, Kind: "partial", Backup: "b9", Token: 71, Problem: "2 objects, 7 bytes, of an attempt that was never committed", Fixable: true, Fixed: r.Fix},
		{Storage: name, Kind: "tombstone", Backup: "b9", Token: 72, Problem: "void since 2026-03-28T00:00:00Z: its node died"},
		{Storage: name, Kind: "wrong size", Backup: "b1", Token: 69, Object: "b1/0000000000000069/data", Problem: "it has 4 bytes, the manifest says 5"},
	}, nil
}

func (f *fake) RebuildCatalog(_ context.Context, r api.RebuildCatalog) ([]api.Backup, error) {
	if len(r.Storages) > 0 {
		return []api.Backup{}, nil
	}
	return []api.Backup{{ID: "b9", Database: "shop", State: "completed", Token: 71, RawBytes: 5 << 20, AsOf: before(26 * time.Hour),
		Storages: []api.Copy{{Storage: "disk", State: "present", Bytes: 1 << 20}}}}, nil
}

func (f *fake) TestNotify(_ context.Context, r api.TestNotify) ([]api.NotifyResult, error) {
	if r.Receiver == "ops" {
		return []api.NotifyResult{{Receiver: "ops"}}, nil
	}
	return []api.NotifyResult{{Receiver: "chat", Problem: "POST chat.example.org: answered 403 Forbidden"}, {Receiver: "ops"}}, nil
}

func (f *fake) Reload(context.Context) (api.Reload, error) {
	return api.Reload{File: "/etc/fencepost/node.yaml", Applied: []string{"log.level"}, Restart: []string{"raft.voters", "databases"}}, nil
}

func (f *fake) Usage(context.Context) (api.Usage, error) {
	free := int64(20 << 30)
	return api.Usage{
		Storages: []api.StorageUsage{
			{Storage: "disk", Bytes: 9 << 30, Backups: 31, PerDay: 1 << 30, Free: &free, Full: before(-20 * 24 * time.Hour)},
			{Storage: "nas", Bytes: 5 << 30, Backups: 2, PerDay: -3 << 20},
		},
		Databases: []api.DatabaseUsage{{Database: "shop", Bytes: 9 << 30, Copies: 31, PerDay: 1 << 30}, {Database: "books", Bytes: 1 << 30, Copies: 2}},
	}, nil
}
