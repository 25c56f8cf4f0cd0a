package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/admin"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/overview"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// backend is what the admin handler shows of this node.
func (a *App) backend() admin.Backend {
	return admin.Backend{
		Members: people{a}, Recoveries: people{a}, Operator: people{a}, Drains: people{a}, Keyring: people{a}, Notifier: people{a}, Reloader: people{a}, Usage: jobs{a}, Tasks: jobs{a}, Backups: jobs{a}, Requests: jobs{a}, Keeping: jobs{a}, Recurring: jobs{a}, Autonomous: jobs{a}, Storages: jobs{a}, Settings: groupSettings{a}, Ledgers: ledgers{a}, GroupStates: states{a}, Bindings: bindings{a}, Approvals: secondPersons{a}, Now: a.clock.Now,
		Accounts: a.accounts, Trail: a.trail, Kept: groupStore{a},
		Watch: a.watchAll, Translate: translate, Logger: a.log,
	}
}

// watchAll gives a hint after each entry of the log and each change of the node's own standing.
func (a *App) watchAll(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	go func() { // ends with ctx
		for {
			entry, own := a.group.Cache().Changed(), a.group.Changed()
			select {
			case hints <- struct{}{}:
			default:
			}
			select {
			case <-ctx.Done():
				return
			case <-entry:
			case <-own:
			}
		}
	}()
	return hints
}

// people shows members and recoveries.
type people struct{ a *App }

// syncWithin bounds how long a page waits for a majority before it shows what this node knows, marked as stale.
const syncWithin = 500 * time.Millisecond

func (p people) fresh(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, syncWithin)
	defer cancel()
	return p.a.group.Sync(ctx) == nil
}

func (p people) Status(ctx context.Context) (api.Status, error) {
	g := p.a.group
	node, run := g.Self()
	standing, _ := g.Standing()
	s := api.Status{
		Node: node, Run: run, Epoch: g.Epoch(), Group: g.Name(), Cluster: g.ClusterID(), Leader: g.Leader(), Version: p.a.version, View: g.View().Version,
		State: p.a.stateNow(), Lease: standing.String(), Ready: p.a.stateNow() == "ready", CertificateUntil: p.a.certificateUntil(), Sealed: p.a.abilities().Sealed,
	}
	s.Problems = overview.Judge(p.a.facts(s)).Problems
	return s, nil
}

func (p people) View(ctx context.Context) (api.View, error) {
	stale := !p.fresh(ctx)
	v := p.view()
	v.Stale = stale
	return v, nil
}

// view is the view as this node knows it.
func (p people) view() api.View {
	g := p.a.group
	_, self := g.Self()
	v, distrusted := api.View{Version: g.View().Version, Leader: g.Leader(), Members: []api.Member{}}, p.a.distrusted()
	for _, m := range g.Members() {
		v.Members = append(v.Members, api.Member{
			Node: m.Node, Run: m.Run, Epoch: m.Epoch, Role: string(m.Role), State: p.a.memberState(m), Ready: m.Ready, Suspected: m.Suspected,
			Leader: m.Leader, Voter: m.Voter, Fed: m.Fed, Self: m.Run == self, GossipAddr: m.Gossip, ClusterAddr: m.Cluster, Components: m.Components,
			JoinedAt: p.a.times.of(joined(m.Run)), Version: string(m.Details[versionDetail]), Protocol: m.Protocol, Problem: distrusted[m.Node],
		})
	}
	v.Refused = refused(v.Members, distrusted)
	return v
}

func (a *App) memberState(m gms.MemberDetail) string {
	_, version, drained := a.drainOf(m.Node)
	switch {
	case m.Suspected:
		return "suspected"
	case len(m.Details[stoppingDetail]) > 0:
		return "stopping"
	case drained && a.isDrained(m, version):
		return api.DrainIdle
	case drained:
		return api.DrainBusy
	case m.Ready:
		return "ready"
	}
	return "joined"
}

// jobs shows and plans tasks and backups.
type jobs struct{ a *App }

// now is the work of a node that stands; before that nothing can be shown or planned.
func (j jobs) now() (*work, error) {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	if role := j.a.cfg.Role; role == configs.RoleWitness || role == configs.RoleWatchdog {
		return nil, &api.Error{Code: api.CodeUnavailable, Message: "this node is a " + string(role) + ": it neither shows nor plans work", Hint: "ask a core member or a spectator"}
	}
	if j.a.work == nil {
		return nil, notJoined(j.a.state)
	}
	return j.a.work, nil
}

func (j jobs) Tasks(ctx context.Context, f api.TaskFilter) ([]api.Task, error) {
	w, err := j.now()
	if err != nil {
		return nil, err
	}
	want := ledger.TaskFilter{Active: f.Active, Database: f.Database, RunType: ledger.User, Limit: f.Limit}
	if f.Internal {
		want.RunType = ""
	}
	if f.After != "" { // a page goes on behind the last task of the one before
		last, err := w.ledger.Task(ctx, f.After)
		if err != nil {
			return nil, err
		}
		want.After = ledger.Place{Created: last.Created, ID: last.ID}
	}
	rows, err := w.ledger.Tasks(ctx, want)
	if err != nil {
		return nil, err
	}
	list := []api.Task{}
	for _, t := range rows {
		list = append(list, j.taskOf(t))
	}
	return list, nil
}

func (j jobs) Task(ctx context.Context, id string) (api.Task, error) {
	w, err := j.now()
	if err != nil {
		return api.Task{}, err
	}
	t, err := w.ledger.Task(ctx, id)
	if err != nil {
		return api.Task{}, noTask(id, err)
	}
	out := j.taskOf(t)
	if t.State == ledger.Planned {
		around, err := j.a.around(ctx, w, t)
		if err != nil {
			return api.Task{}, err
		}
		out.Waits = pipeline.Waits(t, around)
	}
	return out, nil
}

// noTask says of an error that there is no such task, if that is what it says.
func noTask(id string, err error) error {
	if !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no task %q", id), Hint: "fencepost tasks lists them"}
}

func (j jobs) TaskLog(ctx context.Context, id string) (api.TaskLog, error) {
	w, err := j.now()
	if err != nil {
		return api.TaskLog{}, err
	}
	log, err := w.ledger.Log(ctx, id)
	if err != nil {
		return api.TaskLog{}, noTask(id, err)
	}
	out := api.TaskLog{Task: id, Dropped: log.Dropped, Lines: []api.LogLine{}}
	for _, l := range log.Lines {
		out.Lines = append(out.Lines, api.LogLine(l))
	}
	return out, nil
}

func (j jobs) Cancel(ctx context.Context, id string) (api.Task, error) {
	w, err := j.now()
	if err != nil {
		return api.Task{}, err
	}
	if err := w.planner.Cancel(ctx, id, j.asker(ctx)); err != nil {
		return api.Task{}, err
	}
	return j.Task(ctx, id)
}

func (j jobs) Backups(ctx context.Context, f api.BackupFilter) ([]api.Backup, error) {
	w, err := j.now()
	if err != nil {
		return nil, err
	}
	want := ledger.BackupFilter{Database: f.Database, Limit: f.Limit}
	if f.After != "" { // as of tasks
		last, err := w.ledger.Backup(ctx, f.After)
		if err != nil {
			return nil, err
		}
		want.After = ledger.Place{Created: last.Created, ID: last.ID}
	}
	rows, err := w.ledger.Backups(ctx, want)
	if err != nil {
		return nil, err
	}
	list := []api.Backup{}
	for _, b := range rows {
		list = append(list, backupOf(b))
	}
	return list, nil
}

func (j jobs) Backup(ctx context.Context, id string) (api.Backup, error) {
	w, err := j.now()
	if err != nil {
		return api.Backup{}, err
	}
	b, err := w.ledger.Backup(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		err = noBackup(id)
	}
	return backupOf(b), err
}

func noBackup(id string) error {
	return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no backup %q", id), Hint: "fencepost backup list shows them"}
}

func (j jobs) taskOf(t ledger.Task) api.Task {
	out := taskOf(t)
	if t.State == ledger.Completed && j.a.cfg.Restore.KeepOld > 0 {
		out.Undo = t.Prepared.Undo
	}
	return out
}

func taskOf(t ledger.Task) api.Task {
	out := api.Task{
		ID: t.ID, Type: string(t.Type), RunType: string(t.RunType), State: string(t.State), Final: t.State.Final(), Attempt: t.Attempt,
		MaxAttempts: t.MaxAttempts, Node: t.Node, Run: t.Run, Token: t.Token, Database: t.Database, Backup: t.Backup, Target: t.Target,
		Replace: t.Replace, Storages: slices.Concat([]string{}, t.Storages), Error: t.Error, Hint: t.Hint, Created: t.Created, Updated: t.Updated,
		Finished: optional(t.Finished), NotBefore: optional(t.NotBefore), CancelRequested: t.CancelBy != "", CancelBy: t.CancelBy,
		Begun: optional(t.Begun), Progress: progressOf(t),
	}
	if len(t.Needs.Labels) > 0 || t.Needs.Client > 0 {
		out.Needs = &api.Needs{Labels: slices.Concat([]string{}, t.Needs.Labels), Client: t.Needs.Client}
	}
	return out
}

func progressOf(t ledger.Task) api.Progress {
	p := t.Progress
	out := api.Progress{Read: p.Read, Estimate: p.Estimate, Processed: p.Processed, Stored: p.Stored}
	if t.State.Final() || p.Rate <= 0 {
		return out
	}
	out.Rate = p.Rate
	if left := p.Estimate - p.Read; left > 0 {
		out.LeftMS = int64(float64(left) / float64(p.Rate) * 1000)
	}
	return out
}

func backupOf(b ledger.Backup) api.Backup {
	out := api.Backup{
		ID: b.ID, Database: b.Database, State: string(b.State), Token: b.Token, AsOf: optional(b.AsOf), RawBytes: b.RawBytes, SHA256: b.SHA256,
		Created: b.Created, Completed: optional(b.Completed), Storages: []api.Copy{}, Verified: optional(b.Verified),
		Suspect: slices.Concat([]string{}, b.Suspect), Pinned: b.Mark.Pinned, Accepted: b.Mark.Accepted, Note: b.Mark.Note, MarkedBy: b.Mark.By,
		Partial: b.Info.Options.Partial(), Globals: globalsOf(b.Info.Globals),
	}
	for _, c := range b.Copies {
		out.Storages = append(out.Storages, api.Copy{Storage: c.Storage, State: c.State, Bytes: c.Bytes, Error: c.Error})
		out.StoredBytes = max(out.StoredBytes, c.Bytes)
	}
	if !b.Completed.IsZero() {
		out.DurationMS = b.Completed.Sub(b.Created).Milliseconds()
	}
	return out
}

func globalsOf(g *source.Globals) string {
	switch {
	case g == nil:
		return ""
	case g.Lacking != "":
		return "none: " + g.Lacking
	case g.Passwords:
		return "with passwords"
	}
	return "without passwords"
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
