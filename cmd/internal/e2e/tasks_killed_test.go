package e2e

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// killings kills nodes at random moments of tasks of each type, and looks after each whether what the ledger says is so.
type killings struct {
	*moments
	kept  map[string][]string // backups of shop that there must be → storages that have them
	lasts map[string]lasting  // by type of task
	met   map[string]int      // what was killed in which state, and how it ended
}

// lasting is how long a task takes that nobody disturbs: until it begins, and from then on.
type lasting struct{ waits, runs time.Duration }

// killed is one type of task: begin plans one and returns how to look at it, and after compares what was done with what
// the ledger says.
type killed struct {
	name  string
	begin func(k *killings, by string) look
	after func(k *killings, by string, done api.Task)
}

// mustBeMet are states in which the long form kills every type of task at least once.
var mustBeMet = []string{
	"create killed while creating", "create killed while uploading", "restore killed while restoring", "delete killed while deleting",
	"verify killed while downloading", "replicate killed while downloading", "prune killed while looked at",
}

// look tells how a task stands, and whether all that was asked for has been done.
type look func(by string) (now api.Task, over bool)

// TestTasksKilledAtRandomMoments: whichever type of task runs, and in whichever ledger, when its node is killed at whatever
// moment: no backup in the ledger that is not in the storages, no object in a storage that no entry counts, and each task
// ends in a state that is true.
func TestTasksKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	kinds := []killed{
		{"create", (*killings).create, (*killings).created},
		{"restore", (*killings).restore, (*killings).restored},
		{"delete", (*killings).delete, (*killings).deleted},
		{"verify", (*killings).verify, (*killings).verified},
		{"replicate", (*killings).replicate, (*killings).replicated},
		{"prune", (*killings).prune, (*killings).pruned},
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rand.New(rand.NewPCG(seed, 4)).Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	each := rounds(1, 30)
	for i, name := range []string{"embedded", "postgres"} {
		mine := kinds[3*i : 3*i+3]
		if each > 1 {
			mine = kinds
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			led, extra := "", ""
			if name == "postgres" {
				led, extra = ledgerIn(t)
			}
			k := newKillings(t, rand.New(rand.NewPCG(seed, uint64(5+i))), extra)
			for _, kind := range mine {
				k.undisturbed(kind)
			}
			for range each {
				for _, kind := range mine {
					k.round(kind)
				}
			}
			said := slices.Sorted(keysOf(k.met))
			for _, line := range said {
				t.Logf("%3d × %s", k.met[line], line)
			}
			for _, state := range mustBeMet {
				if each > 1 && !slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, state+":") }) {
					t.Errorf("in %d rounds no %s", each, state)
				}
			}
			k.nothingLeft()
			if led != "" {
				if twice := entries(t, led, `SELECT count(*) FROM (SELECT task FROM fencepost_ledger.task_states WHERE state = 'completed' GROUP BY task HAVING count(*) > 1) x`); twice != "0" {
					t.Errorf("%s tasks have completed more than once", twice)
				}
			}
		})
	}
}

func keysOf(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

func newKillings(t *testing.T, random *rand.Rand, extra string) *killings {
	shop := database(t, bulk("goods", 2), "CREATE INDEX ON goods (id)", "SELECT lo_from_bytea(0, decode(repeat('ab', 50000), 'hex')) FROM generate_series(1, 5)")
	till := database(t, "CREATE TABLE coins AS SELECT generate_series(1, 100) AS i")
	k := &killings{
		moments: &moments{random: random, dsn: shop},
		kept:    map[string][]string{}, lasts: map[string]lasting{}, met: map[string]int{},
	}
	k.cluster = newCluster(t, options{
		nodes: 3, dsns: map[string]string{"shop": shop, "till": till}, lasting: time.Hour,
		extra: "backup: {delete_delay: 0s, rate_limit: 2MiB}\nretention:\n- {database: till, last: 2, unverified: true, max_percent: 100}\n" + extra,
	})
	k.mustLive = true
	k.up()
	k.backup = k.finishes("n1", k.cluster.backup("n1").ID).Backup
	k.kept[k.backup] = []string{"a", "b"}
	for range 2 {
		k.finishes("n1", k.backUp("n1", api.CreateBackup{Database: "till"}).ID)
	}
	return k
}

// undisturbed does a task of a type without a kill, and notes how long it takes.
func (k *killings) undisturbed(kind killed) {
	k.t.Helper()
	by := k.names[0]
	state := kind.begin(k, by)
	planned := time.Now()
	k.begun(kind, by, state)
	begun := time.Now()
	done := k.over(by, state)
	k.lasts[kind.name] = lasting{waits: begun.Sub(planned), runs: time.Since(begun)}
	k.truthful(by, kind, done)
}

// begun waits until somebody works on it, or nobody any more.
func (k *killings) begun(kind killed, by string, state look) {
	k.t.Helper()
	k.until("the task has begun", func() bool {
		now, over := state(by)
		return over || now.State != "planned" && now.State != "looked at" || kind.name == "prune" && k.pruner(by) != ""
	})
}

// round kills the node that carries a task out: one time in three at a moment between its planning and somewhat after its
// end, else while it works. A task that is done before that is one that nobody has disturbed, and another one is begun.
func (k *killings) round(kind killed) {
	k.t.Helper()
	by := k.names[k.random.IntN(len(k.names))]
	k.noSecretInArguments()
	working := k.random.IntN(3) > 0
	state := kind.begin(k, by)
	now, over := k.moment(kind, by, state, working)
	for tries := 1; working && over && tries < 8; tries++ {
		k.truthful(by, kind, now)
		lasts := k.lasts[kind.name]
		lasts.runs = lasts.runs * 2 / 3 // the one that was measured took long
		k.lasts[kind.name] = lasts
		state = kind.begin(k, by)
		now, over = k.moment(kind, by, state, working)
	}
	victim := now.Node
	if kind.name == "prune" && (victim == "" || now.Final) {
		victim = k.pruner(by)
	}
	if victim == "" {
		victim = k.names[k.random.IntN(len(k.names))]
	}
	k.strike(victim)
	left := k.survivor(victim)
	back := k.random.IntN(2) == 0
	if back {
		k.start(victim)
	}
	done := k.over(left, state)
	if !back {
		k.start(victim)
	}
	k.ready(victim)
	k.recovered(left)
	met := fmt.Sprintf("%s killed while %s: %s in attempt %d", kind.name, now.State, done.State, done.Attempt)
	k.met[met]++
	k.t.Log(met)
	k.truthful(left, kind, done)
}

// moment waits for a random one, and tells how the task stands then.
func (k *killings) moment(kind killed, by string, state look, working bool) (now api.Task, over bool) {
	k.t.Helper()
	lasts := k.lasts[kind.name]
	within := lasts.runs + lasts.waits + lasts.runs/5
	if working {
		k.begun(kind, by, state)
		within = lasts.runs
	}
	at := time.Now().Add(time.Duration(k.random.Float64() * float64(within)))
	k.until("a moment", func() bool { return !time.Now().Before(at) })
	return state(by)
}

// strike kills the process alone, at once; its children are for it to have seen to.
func (k *killings) strike(victim string) {
	k.t.Helper()
	p := k.proc(victim)
	_ = p.cmd.Process.Kill()
	<-p.done
	k.mu.Lock()
	delete(k.procs, victim)
	k.mu.Unlock()
}

// over waits until all that was asked for has been done.
func (k *killings) over(by string, state look) (done api.Task) {
	k.t.Helper()
	k.until("the task has ended", func() (over bool) {
		done, over = state(by)
		return over
	})
	return done
}

// pruner is the node that just looks what is to go, empty when nobody does.
func (k *killings) pruner(by string) string {
	claims, err := api.Get[[]api.Claim](k.ctx, k.client(by), api.PathClaims)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, c := range claims {
		if c.Component == "prune" && c.State == "held" {
			return c.Node
		}
	}
	return ""
}

// truthful compares the ledger with the storages: the backups of shop are those that must be, each is where its entry says
// and nowhere else, and nothing else lies there.
func (k *killings) truthful(by string, kind killed, done api.Task) {
	k.t.Helper()
	if done.State != api.Completed {
		k.t.Errorf("%s: %+v", kind.name, done)
	}
	if done.Attempt > 2 {
		k.t.Errorf("%s: one death cost %d attempts", kind.name, done.Attempt)
	}
	kind.after(k, by, done)
	list, err := k.client(by).Backups(k.ctx, api.BackupFilter{})
	if err != nil {
		k.t.Fatal(err)
	}
	want := map[string][]string{"a": nil, "b": nil}
	shop := map[string]bool{}
	for _, b := range list {
		if b.State != api.Completed {
			k.t.Errorf("after %s: backup %s is %s", kind.name, b.ID, b.State)
		}
		if b.Database == "shop" {
			shop[b.ID] = true
		}
		for _, c := range b.Storages {
			if c.State != "present" {
				k.t.Errorf("after %s: copy %+v of backup %s", kind.name, c, b.ID)
			}
			want[c.Storage] = append(want[c.Storage], filepath.Join(k.dir, c.Storage, b.ID, fmt.Sprint(b.Token)))
		}
	}
	for id, storages := range k.kept {
		if !shop[id] {
			k.t.Errorf("after %s: backup %s, which was completed in %q, is not there any more", kind.name, id, storages)
		}
	}
	if len(shop) != len(k.kept) {
		k.t.Errorf("after %s: %d backups of shop, expected are %d", kind.name, len(shop), len(k.kept))
	}
	for storage, dirs := range want {
		s := k.storage(storage)
		slices.Sort(dirs)
		slices.Sort(s.whole)
		if !slices.Equal(dirs, s.whole) {
			k.t.Errorf("after %s: storage %s has %q, the ledger says %q", kind.name, storage, s.whole, dirs)
		}
		if len(s.loose) > 0 {
			k.t.Errorf("after %s: loose in storage %s: %q", kind.name, storage, s.loose)
		}
	}
	k.clean(by, "a", "b")
}

// task is how to look at one task.
func (k *killings) task(t api.Task, err error) look {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
	return func(by string) (api.Task, bool) {
		if now, err := k.client(by).Task(k.ctx, t.ID); err == nil {
			t = now
		}
		return t, t.Final
	}
}

func (k *killings) backUp(by string, r api.CreateBackup) api.Task {
	k.t.Helper()
	t, err := k.client(by).CreateBackup(k.ctx, r)
	if err != nil {
		k.t.Fatal(err)
	}
	return t
}

// another makes a backup of shop that is for the next task.
func (k *killings) another(by string, storages ...string) string {
	k.t.Helper()
	done := k.finishes(by, k.backUp(by, api.CreateBackup{Database: "shop", Storages: storages}).ID)
	k.kept[done.Backup] = storages
	return done.Backup
}

func (k *killings) create(by string) look {
	return k.task(k.client(by).CreateBackup(k.ctx, api.CreateBackup{Database: "shop", Jobs: 3 * k.random.IntN(2)}))
}

// created: the entry counts the token of the attempt that completed. The backup is deleted later.
func (k *killings) created(by string, done api.Task) {
	k.t.Helper()
	k.kept[done.Backup] = []string{"a", "b"}
	b, err := k.client(by).Backup(k.ctx, done.Backup)
	if err != nil || b.Token > done.Token || done.Attempt == 1 && b.Token != done.Token {
		k.t.Errorf("created by %+v, the entry is %+v, %v", done, b, err)
	}
}

// restore is into a new database, over one that is there, or in place.
func (k *killings) restore(by string) look {
	r := api.RestoreBackup{Backup: k.backup, Target: fmt.Sprintf("%d moment", time.Now().UnixNano())}
	k.targets = append(k.targets, r.Target)
	switch k.random.IntN(3) {
	case 1:
		r.Replace = true
	case 2:
		r.Replace, r.InPlace = true, true
	}
	if r.Replace {
		pg.Server(k.t).Exec(k.t, "postgres", `CREATE DATABASE "`+r.Target+`"`)
		pg.Server(k.t).Exec(k.t, r.Target, "CREATE TABLE goods AS SELECT 1 AS old")
	}
	return k.task(k.client(by).Restore(k.ctx, r))
}

// restored: the target is what was backed up, and the one that it replaced is kept once.
func (k *killings) restored(_ string, done api.Task) {
	k.t.Helper()
	got := print(k.t, pg.Server(k.t).DSN(done.Target))
	want := print(k.t, k.dsn)
	delete(got.Tables, "fencepost.attempt") // of a restore in place
	for table, rows := range want.Tables {
		if got.Tables[table] != rows {
			k.t.Errorf("restored by task %s: table %s is %v, was %v", done.ID, table, got.Tables[table], rows)
		}
	}
	if len(got.Tables) != len(want.Tables) {
		k.t.Errorf("restored by task %s: %v, was %v", done.ID, got.Tables, want.Tables)
	}
	names, err := pg.Server(k.t).Databases(k.ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	was := 0
	for _, name := range names {
		if name != done.Target && strings.HasPrefix(name, done.Target) {
			pg.Server(k.t).Exec(k.t, "postgres", `DROP DATABASE "`+name+`" WITH (FORCE)`)
			was++
		}
	}
	if was > 1 {
		k.t.Errorf("task %s left %d databases beside its target", done.ID, was)
	}
	pg.Server(k.t).Exec(k.t, "postgres", `DROP DATABASE "`+done.Target+`" WITH (FORCE)`)
}

func (k *killings) delete(by string) look {
	for id := range k.kept { // one that a kill has made, if there is one
		if id != k.backup {
			return k.task(k.client(by).DeleteBackup(k.ctx, id, api.DeleteBackup{Now: true}))
		}
	}
	return k.task(k.client(by).DeleteBackup(k.ctx, k.another(by), api.DeleteBackup{Now: true}))
}

// deleted: the entry is gone; that nothing lies in the storages any more is for truthful.
func (k *killings) deleted(by string, done api.Task) {
	k.t.Helper()
	delete(k.kept, done.Backup)
	if b, err := k.client(by).Backup(k.ctx, done.Backup); err == nil && b.State != "gone" {
		k.t.Errorf("deleted by %s, and the backup is %s", done.ID, b.State)
	}
}

func (k *killings) verify(by string) look {
	return k.task(k.client(by).VerifyBackup(k.ctx, k.backup, api.VerifyBackup{}))
}

// verified: the entry says so, since this task.
func (k *killings) verified(by string, done api.Task) {
	k.t.Helper()
	b, err := k.client(by).Backup(k.ctx, done.Backup)
	if err != nil || b.Verified == nil || b.Verified.Before(done.Created) || len(b.Suspect) > 0 {
		k.t.Errorf("verified by %s: %+v, %v", done.ID, b, err)
	}
}

func (k *killings) replicate(by string) look {
	return k.task(k.client(by).ReplicateBackup(k.ctx, k.another(by, "a"), api.ReplicateBackup{Storages: []string{"b"}}))
}

// replicated: there are two copies now.
func (k *killings) replicated(by string, done api.Task) {
	k.t.Helper()
	b, err := k.client(by).Backup(k.ctx, done.Backup)
	if err != nil || len(b.Storages) != 2 {
		k.t.Errorf("replicated by %s: %+v, %v", done.ID, b, err)
	}
	k.kept[done.Backup] = []string{"a", "b"}
}

// prune makes one backup more of till than its retention keeps. What is looked at is the delete that retention plans.
func (k *killings) prune(by string) look {
	k.finishes(by, k.backUp(by, api.CreateBackup{Database: "till"}).ID)
	return func(by string) (now api.Task, over bool) {
		now = api.Task{State: "looked at", Attempt: 1}
		tasks, err := k.client(by).Tasks(k.ctx, api.TaskFilter{Database: "till", Internal: true, Limit: 1})
		if err == nil && len(tasks) == 1 && tasks[0].Type == "delete" {
			now = tasks[0]
		}
		list, err := k.client(by).Backups(k.ctx, api.BackupFilter{Database: "till"})
		return now, err == nil && len(list) == 2 && now.Final
	}
}

// pruned: the newest two are left, and each of the others went by one task.
func (k *killings) pruned(by string, _ api.Task) {
	k.t.Helper()
	tasks, err := k.client(by).Tasks(k.ctx, api.TaskFilter{Database: "till", Internal: true})
	if err != nil {
		k.t.Fatal(err)
	}
	var made []string // newest first
	gone := map[string]int{}
	for _, t := range tasks {
		switch {
		case t.State != api.Completed:
			k.t.Errorf("of till: %+v", t)
		case t.Type == "create":
			made = append(made, t.Backup)
		case t.Type == "delete":
			gone[t.Backup]++
		}
	}
	for i, id := range made {
		if want := min(max(i-1, 0), 1); gone[id] != want {
			k.t.Errorf("backup %d of till, counted from the newest: deleted %d times, want %d", i, gone[id], want)
		}
	}
}
