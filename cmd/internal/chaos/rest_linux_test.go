package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/schedule"
)

// busy says what is under way, as a node knows it; nil when nothing is, and all nodes agree that so many members are here.
func (w *world) busy(ctx context.Context, by string, members int) error {
	c := w.client(by)
	first, err := c.View(ctx)
	for _, name := range w.nodes[:w.plan.Nodes] {
		v, asked := w.client(name).View(ctx)
		err = errors.Join(err, asked)
		switch {
		case asked != nil:
		case v.Stale, v.Version != first.Version:
			err = errors.Join(err, fmt.Errorf("%s is at view %d (stale: %v), %s at %d", name, v.Version, v.Stale, by, first.Version))
		case len(v.Members) != members:
			err = errors.Join(err, fmt.Errorf("%s sees %d members", name, len(v.Members)))
		}
		for _, m := range v.Members {
			if !m.Ready {
				err = errors.Join(err, fmt.Errorf("%s sees %s, which is %s", name, m.Node, m.State))
			}
		}
	}
	fences, asked := c.Fences(ctx)
	err = errors.Join(err, asked)
	for _, f := range fences {
		err = errors.Join(err, fmt.Errorf("a fence on %s of %s is %s: %s %s", f.Component, f.Node, f.State, f.WaitingFor, f.Problem))
	}
	claims, asked := api.Get[[]api.Claim](ctx, c, api.PathClaims)
	err = errors.Join(err, asked)
	for _, k := range claims {
		if k.State != "quarantined" {
			err = errors.Join(err, fmt.Errorf("%s of %s is claimed by %s: %s", k.Item, k.Component, k.Node, k.State))
		}
	}
	active, asked := c.Tasks(ctx, api.TaskFilter{Active: true, Internal: true})
	err = errors.Join(err, asked)
	for _, t := range active {
		err = errors.Join(err, fmt.Errorf("task %s (%s) is %s, attempt %d: %s", t.ID, t.Type, t.State, t.Attempt, t.Error))
	}
	return err
}

// dispensable tells what a member that leaves would take with it: nothing, when it does not vote or the others are enough.
func (w *world) dispensable(ctx context.Context, by, name string) error {
	voters, err := w.voters(ctx, by)
	if err != nil || !slices.Contains(voters, name) {
		return err
	}
	o, err := w.client(by).Overview(ctx)
	if err == nil && o.Crew.Spare == 0 {
		err = fmt.Errorf("of %d voters %d are here: none may go", o.Crew.Voters, o.Crew.Present)
	}
	return err
}

// leftovers lists what is left on the nodes' hosts when everybody was stopped in order.
func (w *world) leftovers() (list []string) {
	for _, name := range w.everybody() {
		for _, pid := range w.runs(name) {
			list = append(list, fmt.Sprintf("%s still runs, as process %s", name, pid))
		}
		files, _ := filepath.Glob(filepath.Join(w.in(name), "volatile", "*", "*"))
		list = append(list, files...)
	}
	return list
}

// occurrences looks that each minute between two moments has its task, which has completed, with a backup of its own.
func (l *labour) occurrences(by string, from, to time.Time) {
	w := l.w
	s, err := schedule.New(schedule.Config{Name: "minutely", Cron: "@every 1m", Missed: schedule.All, Overlap: schedule.Queue})
	w.must(err)
	backups := map[string]string{}
	var broken []string
	for _, o := range s.Upcoming(from.Add(time.Minute), int(to.Sub(from)/time.Minute)-2) {
		id := pipeline.OccurrenceTask(o.ID)
		t, err := w.client(by).Task(w.ctx, id)
		switch {
		case err != nil:
			broken = append(broken, fmt.Sprintf("the occurrence of %v: %v", o.Due, err))
		case t.State != api.Completed:
			broken = append(broken, fmt.Sprintf("the occurrence of %v is %s: %s", o.Due, t.State, t.Error))
		case backups[t.Backup] != "":
			broken = append(broken, fmt.Sprintf("occurrences %s and %s share the backup %s", backups[t.Backup], o.ID, t.Backup))
		}
		backups[t.Backup] = o.ID
		w.said.counts("occurrences", 1)
	}
	w.verdict("schedules: one completed backup for each occurrence", broken)
}

// judge looks at all that is known, once the group is at rest, and ends it.
func (w *world) judge(l *labour) {
	by := w.nodes[0]
	w.storagesClean(by)
	w.restoresWhole(l)
	w.tasksCounted(by)
	told, err := w.resource.told(w.ctx)
	w.must(err)
	w.said.counts("writes that the resource took", told.Accepted)
	w.said.counts(staleRefused, told.Refused)
	w.said.counts(staleTaken, len(told.Wrong))
	notes := w.noted()
	w.tell(notes)
	w.verdict("stale writes accepted by the resource", told.Wrong)
	w.verdict("views: one history", judgeViews(notes))
	w.verdict("claims, locks and fences: one holder at a time, growing tokens", judgeHolds(notes))
	w.verdict("recoveries: one fence at a time, one release", judgeRecoveries(l.seen, true))
	w.verdict("recoveries: of each run that ended and did not leave", judgeClosed(notes, l.seen))
	w.verdict("restores: at no time there by half", l.halves)
	w.verdict("cache: linearizable", judgeHistory("the cache", cacheModel(), cacheHistory(notes), w.picture("cache")))
	w.verdict("locks: linearizable", judgeHistory("locks", lockModel(), lockHistory(notes), w.picture("locks")))
	w.verdict("fences: linearizable", judgeHistory("fences", lockModel(), fenceHistory(notes), w.picture("fences")))
	if w.plan.Postgres {
		list, err := w.trail()
		w.must(err)
		w.said.counts("writes in the ledger's trail", len(list))
		w.verdict("ledger: no write after a shut-out, no older token", judgeTrail(list))
	}
	requests, err := w.requests()
	w.must(err)
	w.said.counts("requests in the storages' logs", len(requests))
	w.verdict("storages: each manifest made once", judgeStore(requests))
}

// noted is what all host apps have written down.
func (w *world) noted() map[string][]note {
	notes := map[string][]note{}
	for _, name := range w.guests {
		list, err := readNotes(w.in(name + ".notes"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.t.Fatal(err)
		}
		notes[name] = list
	}
	return notes
}

// verdict fails the test for what is broken, and notes what was looked at.
func (w *world) verdict(what string, broken []string) {
	w.t.Helper()
	for _, b := range broken {
		w.t.Errorf("%s: %s", what, b)
	}
	w.said.verdict(what, broken)
}

// storagesClean has the group compare its storages with the ledger.
func (w *world) storagesClean(by string) {
	var broken []string
	for _, name := range []string{"disk", "cloud", "box"} {
		out, err := exec.CommandContext(w.ctx, command, "storage", "check", name, "--socket", w.socket(by)).CombinedOutput()
		if err != nil {
			broken = append(broken, fmt.Sprintf("%s: %s%v", name, out, err))
		}
	}
	w.verdict("storages: whole backups and nothing else", broken)
}

// restoresWhole looks that what was restored is there as a whole, and that nothing else is. Restores whose request was not
// answered are among them: the ledger knows them all.
func (w *world) restoresWhole(l *labour) {
	var broken []string
	tasks, err := w.client(w.nodes[0]).Tasks(w.ctx, api.TaskFilter{})
	w.must(err)
	for _, t := range tasks {
		if t.Type == "restore" && l.restores[t.ID] == "" {
			l.restores[t.ID] = t.Target
			w.said.counts("restores whose request was not answered", 1)
		}
	}
	made := map[string]bool{"postgres": true, "shop": true, "ledger": true, "place": true}
	for id, target := range l.restores {
		t, err := w.client(w.nodes[0]).Task(w.ctx, id)
		if err != nil {
			broken = append(broken, err.Error())
			continue
		}
		w.said.counts("restores "+t.State, 1)
		if t.State != api.Completed {
			w.said.add(work, "restore of %s is %s: %s", target, t.State, t.Error)
			continue
		}
		made[target] = true
		if got, err := w.text(w.ctx, w.base.dsn(target), entire); err != nil || got != isEntire {
			broken = append(broken, fmt.Sprintf("%s of task %s, which has completed: %q, %v", target, id, got, err))
		}
	}
	there, err := w.text(w.ctx, w.base.dsn("postgres"), "SELECT string_agg(datname, ' ') FROM pg_database WHERE NOT datistemplate")
	w.must(err)
	for _, name := range strings.Fields(there) {
		if !made[name] {
			broken = append(broken, "no restore has completed that made database "+name)
		}
	}
	w.verdict("restores: whole or not there", broken)
}

// tasksCounted tells what became of all tasks.
func (w *world) tasksCounted(by string) {
	tasks, err := w.client(by).Tasks(w.ctx, api.TaskFilter{Internal: true})
	w.must(err)
	for _, t := range tasks {
		w.said.counts(fmt.Sprintf("tasks: %s %s", t.Type, t.State), 1)
		if t.Attempt > 1 && t.State == api.Completed {
			w.said.counts("tasks that another attempt completed", 1)
		}
		if t.Begun != nil && t.Finished != nil {
			start := w.said.start
			w.said.span(work, t.Begun.Sub(start), t.Finished.Sub(start), fmt.Sprintf("%s %s: %s on %s, attempt %d %s", t.Type, t.ID, t.State, t.Node, t.Attempt, t.Error))
		}
	}
}

// tell counts what host apps wrote down, and has the chronicle show the views.
func (w *world) tell(notes map[string][]note) {
	begun := monotonic() - w.said.now()
	known := map[uint64]bool{}
	for _, name := range slices.Sorted(maps.Keys(notes)) {
		for _, n := range notes[name] {
			w.said.counts("notes of host apps: "+n.Kind, 1)
			if n.Kind == "view" && !known[n.Version] {
				known[n.Version] = true
				var names []string
				for _, r := range n.Runs {
					names = append(names, strings.SplitN(r, "/", 2)[0])
				}
				w.said.span(views, n.T-begun, 0, "view "+fmt.Sprint(n.Version)+": "+strings.Join(names, " "))
			}
		}
	}
}

// picture is where the picture of a history goes.
func (w *world) picture(what string) string {
	return filepath.Join(reportDir(), fmt.Sprintf("chaos-%d-%s.html", w.plan.Seed, what))
}

// saveLogs keeps logs and notes of a run that went wrong.
func (w *world) saveLogs() string {
	keep, err := os.MkdirTemp("", fmt.Sprintf("fencepost-chaos-logs-%d-", w.plan.Seed))
	if err != nil {
		return err.Error()
	}
	for _, pattern := range []string{"*.log", "*.notes", "*.requests", "*.yaml"} {
		files, _ := filepath.Glob(w.in(pattern))
		for _, file := range files {
			if from, err := os.Open(file); err == nil {
				if to, err := os.Create(filepath.Join(keep, filepath.Base(file))); err == nil {
					_, _ = io.Copy(to, from)
					to.Close()
				}
				from.Close()
			}
		}
	}
	return keep
}
