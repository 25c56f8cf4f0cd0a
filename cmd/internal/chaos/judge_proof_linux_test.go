package chaos

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Each judge is shown records as they should be, in which it finds nothing, and others, in which it does.
func TestJudgesSeeWhatIsBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		good, bad []string
	}{
		"a view that differs": {judgeViews(of(view(1, "a"), view(2, "a", "b"))), judgeViews(map[string][]note{"h1": {view(1, "a")}, "h2": {view(1, "b")}})},
		"a view left out": {
			judgeViews(map[string][]note{"h1": {gap(1), view(2), view(3)}, "h2": {gap(2), view(3)}}),
			judgeViews(map[string][]note{"h1": {gap(1), view(2), view(3)}, "h2": {gap(1), view(3)}}),
		},
		"a view that goes back": {judgeViews(of(gap(1), view(2), gap(1), view(2))), judgeViews(of(gap(1), view(2), view(1)))},
		"two holders":           {judgeHolds(of(hold(1, "a", 5), hold(2, "b", 7))), judgeHolds(of(hold(1, "a", 5), hold(2, "b", 7), hold(3, "a", 5)))},
		"a token of two":        {judgeHolds(of(hold(1, "a", 5), hold(2, "a", 5))), judgeHolds(of(hold(1, "a", 5), hold(2, "b", 5)))},
		"two releases":          {judgeRecoveries(recovered(9, "raised 5", "released"), true), judgeRecoveries(recovered(9, "raised 5", "released", "released"), true)},
		"a fence of an old token": {
			judgeRecoveries(recovered(9, "raised 5", "handed over", "raised 6", "released"), true),
			judgeRecoveries(recovered(9, "raised 5", "raised 5", "released"), true),
		},
		"a recovery that never ends": {judgeRecoveries(recovered(0, "raised 5"), false), judgeRecoveries(recovered(0, "raised 5"), true)},
		"two ends": {
			judgeRecoveries(append(recovered(9, "released"), recovered(9, "released")...), true),
			judgeRecoveries(append(recovered(9, "released"), recovered(8, "released")...), true),
		},
		"a stale read":             {cached(put(1, "x", 5), put(3, "y", 6), read(5, "y", 6)), cached(put(1, "x", 5), put(3, "y", 6), read(5, "x", 5))},
		"a lost write":             {cached(put(1, "x", 5), swap(3, 5, "y", 6)), cached(put(1, "x", 5), put(3, "z", 6), swap(5, 5, "y", 7))},
		"a write nobody read":      {cached(put(1, "x", 5), cut(3, "y"), read(5, "x", 5)), cached(cut(1, "y"), read(3, "y", 5), read(5, "", 0))},
		"a lock of two":            {locked(lock(1, 5), unlock(3, 5), lock(5, 6), unlock(7, 6)), locked(lock(1, 5), lock(3, 6), unlock(5, 5), unlock(7, 6))},
		"a lock with old tokens":   {locked(lock(1, 5), lock(3, 6)), locked(lock(1, 5), unlock(3, 5), lock(5, 4))},
		"a fence of two":           {fencesOf(raise(1, 5), raise(3, 6), release(5, 6)), fencesOf(raise(1, 5), raise(3, 6), release(5, 5))},
		"a fence of old tokens":    {fencesOf(raise(1, 5), raise(3, 5), raise(5, 6)), fencesOf(raise(1, 5), raise(3, 4))},
		"a fence raised once more": {fencesOf(raise(1, 5), release(3, 5)), fencesOf(raise(1, 5), release(3, 5), raise(5, 6))},
		"a run that nobody recovered": {
			judgeClosed(of(view(1, "h1/a", "n1/x"), view(2, "h1/b"), note{Kind: "left", Run: "b"}, view(3, "n1/y")), recoveredRun("a", 7)),
			judgeClosed(of(view(1, "h1/a"), view(2, "h1/b")), recoveredRun("a", 0)),
		},
		"a row's old token": {judgeTrail([]trail{task(5, "a"), task(7, "b")}), judgeTrail([]trail{task(5, "a"), task(7, "b"), task(5, "c")})},
		"a late taker":      {judgeTrail([]trail{task(5, "a"), shut("a"), task(7, "b")}), judgeTrail([]trail{task(5, "b"), shut("a"), task(5, "a")})},
		"a late recoverer": {
			judgeTrail([]trail{fenced(5), task(6, "b/"+hashOf("backup/n1/a")+"/5"), fenced(8)}),
			judgeTrail([]trail{fenced(5), fenced(8), task(6, "b/"+hashOf("backup/n1/a")+"/5")}),
		},
		"an old attempt": {
			judgeStore([]request{{"files/upload", "b/5/manifest.json", 200}, {"files/upload", "b/6/manifest.json", 200}, {"files/upload", "b/5/manifest.json", 409}}),
			judgeStore([]request{{"files/upload", "b/6/manifest.json", 200}, {"files/upload", "b/5/manifest.json", 200}}),
		},
		"a second manifest": {
			judgeStore([]request{{"PutObject", "b/5/manifest.json", 200}, {"PutObject", "b/5/manifest.json", 412}, {"DeleteObject", "b/5/manifest.json", 204}, {"PutObject", "b/6/manifest.json", 200}}),
			judgeStore([]request{{"PutObject", "b/5/manifest.json", 200}, {"DeleteObject", "b/5/manifest.json", 204}, {"PutObject", "b/5/manifest.json", 200}}),
		},
		"a manifest in another's place": {
			judgeStore([]request{{"PutObject", "b/5/manifest.json", 200}, {"PutObject", "b/5/manifest.json", 200}, {"DeleteObject", "b/5/data", 204}}),
			judgeStore([]request{{"PutObject", "b/5/manifest.json", 200}, {"DeleteObject", "b/4/data", 204}, {"PutObject", "b/5/manifest.json", 200}}),
		},
		"a manifest again and again": {
			judgeStore([]request{{"PutObject", "b/5/manifest.json", 200}, {"files/upload", "b/5/manifest.json", 409}, {"files/delete_v2", "b/5/data", 200}}),
			judgeStore([]request{{"PutObject", "b/5/manifest.json", 200}, {"PutObject", "b/5/manifest.json", 200}, {"PutObject", "b/5/manifest.json", 200}, {"DeleteObject", "b/5/data", 204}}),
		},
	} {
		if len(c.good) > 0 {
			t.Errorf("%s: where it is not: %q", name, c.good)
		}
		if len(c.bad) == 0 {
			t.Errorf("%s is not seen", name)
		}
	}
	picture := filepath.Join(t.TempDir(), "picture.html")
	if said := judgeHistory("locks", lockModel(), lockHistory(of(join(lock(1, 5), lock(3, 4))...)), picture); len(said) != 1 {
		t.Errorf("%q", said)
	}
	if found, err := filepath.Glob(picture); err != nil || len(found) != 1 {
		t.Error("there is no picture")
	}
}

func of(notes ...note) map[string][]note { return map[string][]note{"h1": notes} }

func view(version uint64, runs ...string) note {
	return note{Kind: "view", Version: version, Runs: runs}
}

func gap(version uint64) note { return note{Kind: "view", Version: version, Gap: true} }

func hold(at int, run string, token uint64) note {
	return note{Kind: "hold", T: time.Duration(at), What: "job", Run: run, Token: token}
}

func recovered(ended uint64, steps ...string) []api.Recovery {
	r := api.Recovery{Component: "jobs", Node: "n1", Run: "r", Ended: ended, State: "released"}
	for _, s := range steps {
		step := api.Step{What: s}
		if s == "raised 5" {
			step = api.Step{What: "raised", Token: 5}
		}
		if s == "raised 6" {
			step = api.Step{What: "raised", Token: 6}
		}
		r.Steps = append(r.Steps, step)
	}
	return []api.Recovery{r}
}

// pair is an operation that begins at a time and ends a moment later.
func pair(at int, call, end note) []note {
	call.Kind, call.T, call.ID = "call", time.Duration(at), uint64(at)
	end.Kind, end.T, end.ID, end.Op, end.What = "return", call.T+1, call.ID, call.Op, call.What
	return []note{call, end}
}

func put(at int, value string, version uint64) []note {
	return pair(at, note{Op: "put", Value: value}, note{Outcome: "ok", Version: version})
}

func swap(at int, on uint64, value string, version uint64) []note {
	return pair(at, note{Op: "swap", Value: value, Version: on}, note{Outcome: "ok", Version: version})
}

func read(at int, value string, version uint64) []note {
	end := note{Outcome: "ok", Value: value, Version: version}
	if version == 0 {
		end.Outcome = "none"
	}
	return pair(at, note{Op: "read"}, end)
}

func cut(at int, value string) []note { return pair(at, note{Op: "put", Value: value}, note{})[:1] }

func lock(at int, token uint64) []note {
	return pair(at, note{Op: "lock", What: "l"}, note{Outcome: "ok", Version: token})
}

func raise(at int, token uint64) []note {
	return pair(at, note{Op: "raise", What: "f"}, note{Outcome: "ok", Version: token})
}

func release(at int, token uint64) []note {
	return pair(at, note{Op: "release", What: "f", Version: token}, note{Outcome: "ok"})
}

func fencesOf(list ...[]note) []string {
	return judged(lockModel(), fenceHistory(of(join(list...)...)))
}

func recoveredRun(run string, ended uint64) []api.Recovery {
	return []api.Recovery{{Component: jobs, Node: "h1", Run: run, Ended: ended}}
}

func unlock(at int, token uint64) []note {
	return pair(at, note{Op: "unlock", What: "l", Version: token}, note{Outcome: "ok", Version: token})
}

func join(list ...[]note) (all []note) {
	for _, l := range list {
		all = append(all, l...)
	}
	return all
}

func judged(m porcupine.Model, history []porcupine.Operation) []string {
	if porcupine.CheckOperations(m, history) {
		return nil
	}
	return []string{"not linearizable"}
}

func cached(list ...[]note) []string {
	return judged(cacheModel(), cacheHistory(of(join(list...)...)))
}

func locked(list ...[]note) []string { return judged(lockModel(), lockHistory(of(join(list...)...))) }

func task(token uint64, writer string) trail {
	return trail{Table: "tasks", Row: "t", Token: token, Writer: "fencepost/" + writer}
}

func shut(run string) trail { return trail{Table: "runs", Row: run, Shut: true} }

func fenced(token uint64) trail { return trail{Table: "fences", Row: "backup/n1/a", Token: token} }
