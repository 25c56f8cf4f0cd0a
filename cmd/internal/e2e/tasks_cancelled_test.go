package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// cancelling is a type of task in a state in which it stands still.
type cancelling struct {
	name  string
	state string
	// begin plans one by a node; while it stands still until is true. release takes away what holds it up.
	begin func(k *cancels, by string) (task api.Task, until func() bool, release func())
}

// cancels asks for ends of tasks.
type cancels struct {
	*cluster
	dsn, backup, old string
}

var cancellings = []cancelling{
	{"create", "planned", func(k *cancels, by string) (api.Task, func() bool, func()) {
		return k.well(k.client(by).CreateBackup(k.ctx, api.CreateBackup{Database: "shop", Needs: []string{"nobody"}})), nil, nil
	}},
	{"create", "creating", func(k *cancels, by string) (api.Task, func() bool, func()) { // pg_dump waits for a lock
		unlock := pg.Server(k.t).Hold(k.t, nameIn(k.t, k.dsn), "LOCK TABLE goods IN ACCESS EXCLUSIVE MODE")
		return k.well(k.client(by).CreateBackup(k.ctx, api.CreateBackup{Database: "shop"})), func() bool { return k.sessions("wait_event_type = 'Lock'") > 0 }, unlock
	}},
	{"create", "uploading", func(k *cancels, by string) (api.Task, func() bool, func()) {
		return k.well(k.client(by).CreateBackup(k.ctx, api.CreateBackup{Database: "shop"})), nil, nil
	}},
	{"restore", "planned", func(k *cancels, by string) (api.Task, func() bool, func()) {
		return k.restore(by, api.RestoreBackup{Needs: []string{"nobody"}}), nil, nil
	}},
	{"restore", "restoring", func(k *cancels, by string) (api.Task, func() bool, func()) {
		return k.restore(by, api.RestoreBackup{}), func() bool { return len(k.newDatabases()) > 0 }, nil
	}},
	{"verify", "planned", func(k *cancels, by string) (api.Task, func() bool, func()) {
		resume := k.pause(by, "verify")
		return k.well(k.client(by).VerifyBackup(k.ctx, k.backup, api.VerifyBackup{})), nil, resume
	}},
	{"replicate", "planned", func(k *cancels, by string) (api.Task, func() bool, func()) {
		resume := k.pause(by, "replicate")
		return k.well(k.client(by).ReplicateBackup(k.ctx, k.old, api.ReplicateBackup{Storages: []string{"b"}})), nil, resume
	}},
	{"delete", "planned", func(k *cancels, by string) (api.Task, func() bool, func()) {
		return k.well(k.client(by).DeleteBackup(k.ctx, k.old, api.DeleteBackup{})), nil, nil
	}},
}

func (k *cancels) well(t api.Task, err error) api.Task {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
	return t
}

func (k *cancels) restore(by string, how api.RestoreBackup) api.Task {
	k.t.Helper()
	how.Backup, how.Target = k.backup, fmt.Sprintf("%d cancelled", time.Now().UnixNano())
	k.targets = append(k.targets, how.Target)
	return k.well(k.client(by).Restore(k.ctx, how))
}

// pause pauses a component in the whole group.
func (k *cancels) pause(by, component string) (resume func()) {
	k.t.Helper()
	set := func(on bool) {
		if _, err := k.client(by).PauseComponent(k.ctx, component, on); err != nil {
			k.t.Fatal(err)
		}
		for _, node := range k.names {
			k.until(node+" knows of the pause", func() bool {
				list, err := api.Get[[]api.Component](k.ctx, k.client(node), api.PathComponents)
				i := slices.IndexFunc(list, func(c api.Component) bool { return c.Name == component })
				return err == nil && i >= 0 && list[i].Paused == on
			})
		}
	}
	set(true)
	return func() { set(false) }
}

// sessions counts those of the daemons in the database for which something is so.
func (k *cancels) sessions(so string) (n int) {
	k.t.Helper()
	text := pg.Server(k.t).Text(k.t, nameIn(k.t, k.dsn), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'fencepost:%' AND "+so)
	_, err := fmt.Sscan(text, &n)
	if err != nil {
		k.t.Fatal(err)
	}
	return n
}

// TestCancelFromEachNode: a task is cancelled by whichever node, whoever runs it and whatever it is at: the answer says
// that it is on its way, and what was half done is gone, also while pg_dump waits for a lock that stays. In the short form
// each node is asked for some of the states, in the long one for all.
func TestCancelFromEachNode(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"embedded", "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			extra := slowly
			if name == "postgres" {
				_, more := ledgerIn(t)
				extra += more
			}
			k := newCancels(t, extra)
			for j, c := range cancellings {
				askers := []string{k.names[(i+j)%len(k.names)]}
				if rounds(1, 2) > 1 {
					askers = k.names
				}
				for _, by := range askers {
					k.cancel(c, by)
				}
			}
		})
	}
}

func newCancels(t *testing.T, extra string) *cancels {
	t.Helper()
	k := &cancels{dsn: database(t, append([]string{bulk("goods", 1)}, slowCheck...)...)}
	k.cluster = newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": k.dsn}, lasting: 15 * time.Minute, extra: extra})
	k.up()
	one, err := k.client("n1").CreateBackup(k.ctx, api.CreateBackup{Database: "shop", Storages: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	k.old = k.finishes("n1", one.ID).Backup
	k.backup = k.finishes("n1", k.cluster.backup("n1").ID).Backup
	return k
}

// cancel has a task of a kind stand still, and asks one node for its end.
func (k *cancels) cancel(c cancelling, by string) {
	k.t.Helper()
	before := k.lies()
	task, until, release := c.begin(k, k.names[0])
	k.reaches(by, task.ID, c.state, nil)
	if until != nil {
		k.until(c.name+" stands still", until)
	}
	asked := time.Now()
	answer, err := k.client(by).Cancel(k.ctx, task.ID)
	if err != nil || !answer.CancelRequested {
		k.t.Errorf("%s %s, cancel asked of %s: %+v, %v", c.name, c.state, by, answer, err)
	}
	acknowledged := time.Since(asked)
	done := k.reaches(by, task.ID, "cancelled", nil)
	k.t.Logf("%s %s, asked of %s, run by %q: acknowledged after %s, ended after %s", c.name, c.state, by, done.Node, acknowledged.Round(time.Millisecond), time.Since(asked).Round(time.Millisecond))
	if done.CancelBy == "" || done.Error == "" {
		k.t.Errorf("%s %s: %+v", c.name, c.state, done)
	}
	k.until("no session and no database of it is left", func() bool { return k.sessions("true") == 0 && len(k.newDatabases()) == 0 })
	if after := k.lies(); !slices.Equal(before, after) {
		k.t.Errorf("%s %s: the storages hold %q, before %q", c.name, c.state, after, before)
	}
	if release != nil {
		release()
	}
}

// lies is what the storages hold, tombstones aside.
func (k *cancels) lies() (all []string) {
	k.t.Helper()
	for _, name := range []string{"a", "b"} {
		s := k.storage(name)
		all = append(append(all, s.whole...), s.loose...)
	}
	slices.Sort(all)
	return all
}
