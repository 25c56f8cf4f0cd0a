package overview

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

var now = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

func at(before time.Duration) *time.Time {
	t := now.Add(-before)
	return &t
}

// well is a group of three with nothing wrong.
func well() Facts {
	f := Facts{Now: now, Status: api.Status{Node: "n1", Run: "aa", Group: "shop", Leader: "n1", Lease: "held"}, Voters: []string{"n1", "n2", "n3"}}
	for _, n := range f.Voters {
		f.View.Members = append(f.View.Members, api.Member{Node: n, Ready: true})
	}
	return f
}

// shelf is a good backup of so long ago.
func shelf(id string, age time.Duration, change ...func(*api.Backup)) *api.Backup {
	b := &api.Backup{ID: id, State: "completed", AsOf: at(age), Created: *at(age), Storages: []api.Copy{{Storage: "a", State: "present"}, {Storage: "b", State: "missing"}}}
	for _, c := range change {
		c(b)
	}
	return b
}

func task(id, state string, created time.Duration) api.Task {
	t := api.Task{ID: id, Type: "create", State: state, Created: *at(created), Final: slices.Contains([]string{"completed", "failed", "cancelled", "reverted"}, state)}
	if state == "failed" {
		t.Error = "disk full"
	}
	return t
}

// alarms is what a test compares: severity, name, text.
func alarms(o api.Overview) (list []string) {
	for _, a := range o.Alarms {
		list = append(list, fmt.Sprintf("%s %s", a.Severity, a.Key()))
	}
	return list
}

func TestWhatNeedsAPerson(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Facts)
		health string
		want   []string
	}{
		{"nothing", func(*Facts) {}, api.HealthWell, nil},
		{"no leader", func(f *Facts) { f.Status.Leader = "" }, api.HealthNoQuorum, []string{"critical quorum/shop"}},
		{"stale", func(f *Facts) { f.View.Stale = true }, api.HealthNoQuorum, []string{"critical quorum/shop"}},
		{"a voter is gone", func(f *Facts) { f.View.Members = f.View.Members[:2] }, api.HealthWarned, []string{"warning member/n3", "warning voters/shop"}},
		{"a member is suspected", func(f *Facts) { f.View.Members[2].Suspected = true }, api.HealthWarned, []string{"warning member/n3", "warning voters/shop"}},
		{"one that only follows is suspected", func(f *Facts) {
			f.View.Members = append(f.View.Members, api.Member{Node: "n4", Suspected: true})
		}, api.HealthWarned, []string{"warning member/n4"}},
		{"two members", func(f *Facts) { f.Voters, f.View.Members = f.Voters[:2], f.View.Members[:2] }, api.HealthWarned, []string{"warning voters/shop"}},
		{"alone", func(f *Facts) { f.Voters, f.View.Members = f.Voters[:1], f.View.Members[:1] }, api.HealthWell, nil},
		{"not yet joined", func(f *Facts) { f.View.Members, f.Status.Run, f.Status.Lease = nil, "", "expired" }, api.HealthWell, nil},
		{"the lease", func(f *Facts) { f.Status.Lease = "expired" }, api.HealthAlarmed, []string{"critical lease/n1"}},
		{"the log", func(f *Facts) {
			f.GroupAlarms = []string{"follower n2: it holds index 1 of 9", "recovery: one is open since yesterday"}
		}, api.HealthWarned, []string{"warning recovery/shop", "warning replication/follower n2 by n1"}},
		{"the node", func(f *Facts) {
			f.NodeProblem, f.Waits, f.ClockOff, f.Certificate = errors.New("the disk stalls"), errors.New("no ledger"), "behind", "expires"
			f.Uncopied = errors.New("the disk is full")
		}, api.HealthAlarmed, []string{"critical node/n1", "critical waiting/n1", "warning audit/n1", "warning certificate/n1", "warning clock/n1"}},
		{"its certificate has expired", func(f *Facts) { f.Certificate, f.Uncertified = "expired", true }, api.HealthAlarmed, []string{"critical certificate/n1"}},
		{"another's certificate", func(f *Facts) {
			f.View.Members, f.Distrusted = f.View.Members[:2], map[string]string{"n3": "expired on Monday"}
		}, api.HealthAlarmed, []string{"critical certificate/n3 at n1", "warning member/n3", "warning voters/shop"}},
		{"work that does not end", func(f *Facts) { f.Stuck = []api.Claim{{Component: "export", Item: "b1"}} }, api.HealthAlarmed, []string{"critical stuck/export b1"}},
		{"parked", func(f *Facts) {
			f.Fences = []api.Fence{{Component: "backup", Node: "n9", Run: "0123456789", State: api.FenceParked}, {Component: "verify", State: api.FenceRaised}}
		}, api.HealthAlarmed, []string{"critical parked/backup of n9/01234567"}},
		{"quarantine", func(f *Facts) {
			f.Claims = []api.Claim{{Component: "backup", Item: "t1", State: "quarantined"}, {Component: "backup", Item: "t2", State: "orphan"}}
		}, api.HealthAlarmed, []string{"critical quarantine/backup t1"}},
		{"given up", func(f *Facts) {
			f.Aside = []Aside{{Component: "export", Item: "b7", Failures: 5, Why: "exit code 3"}}
		}, api.HealthAlarmed, []string{"critical quarantine/export b7"}},
		{"storages", func(f *Facts) {
			f.Storages = []api.StorageState{{Name: "a", State: "away"}, {Name: "b", State: "strange"}, {Name: "c", State: "ready"}, {Name: "d", State: "unknown"}}
		}, api.HealthAlarmed, []string{"critical storage/b on n1", "warning storage/a on n1"}},
		{"ledger", func(f *Facts) { f.Ledger = errors.New("connection refused") }, api.HealthAlarmed, []string{"critical ledger/shop"}},
		{"another's", func(f *Facts) {
			f.Others = []api.Alarm{{Kind: "clock", About: "n2", Severity: api.Warning, From: "n2"}}
		}, api.HealthWarned, []string{"warning clock/n2"}},
		{"told twice", func(f *Facts) {
			f.Others = []api.Alarm{{Kind: "clock", About: "n2", Severity: api.Warning}, {Kind: "clock", About: "n2", Severity: api.Warning}}
		}, api.HealthWarned, []string{"warning clock/n2"}},
		{"twice", func(f *Facts) {
			f.Status.Leader, f.View.Stale, f.Status.Lease = "", true, "expired"
		}, api.HealthNoQuorum, []string{"critical quorum/shop", "critical lease/n1"}},
	} {
		f := well()
		test.change(&f)
		o := Judge(f)
		if diff := cmp.Diff(test.want, alarms(o)); diff != "" || o.Health != test.health {
			t.Errorf("%s: health %s, want %s; alarms (-want +got):\n%s", test.name, o.Health, test.health, diff)
		}
		if len(o.Problems) != len(o.Alarms) {
			t.Errorf("%s: problems %q", test.name, o.Problems)
		}
	}
}

func TestCrew(t *testing.T) {
	f := well()
	f.Voters = append(f.Voters, "n4", "n5")
	f.View.Members[1].Suspected = true
	f.View.Members[2].Ready = false
	f.View.Members = append(f.View.Members, api.Member{Node: "n9", Ready: true})
	want := api.Crew{Members: 4, Ready: 2, Suspected: 1, Voters: 5, Present: 2}
	if got := Judge(f).Crew; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestDatabases: what is told of a database's backups, and what is an alarm; a text names the remedy that fits.
func TestDatabases(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		name  string
		d     Database
		state string
		want  []string
		hint  string
	}{
		{"good", Database{RPO: day, Good: shelf("b1", day), Newest: shelf("b1", day)}, "good", nil, ""},
		{"overdue, scheduled", Database{RPO: day, Good: shelf("b1", day+1), Next: at(-time.Hour)}, "overdue", []string{"critical backup/shop"}, "fencepost backup create shop"},
		{"overdue, nothing scheduled", Database{RPO: day, Good: shelf("b1", day+1)}, "overdue", []string{"critical backup/shop"}, "nothing is scheduled"},
		{"overdue, nobody does it", Database{RPO: day, Good: shelf("b1", day+1), Next: at(time.Hour)}, "overdue", []string{"critical backup/shop"}, "has not begun"},
		{"overdue, one runs", Database{RPO: day, Good: shelf("b1", day+1), Tasks: []api.Task{task("t2", "uploading", time.Hour)}}, "overdue",
			[]string{"critical backup/shop"}, "fencepost tasks t2"},
		{"overdue, one failed", Database{RPO: day, Good: shelf("b1", day+1), Tasks: []api.Task{task("t3", "planned", time.Hour), task("t2", "failed", 2*time.Hour)}}, "overdue",
			[]string{"critical backup/shop", "warning failed/shop"}, "fencepost tasks t2"},
		{"failed since", Database{RPO: day, Good: shelf("b1", 3*time.Hour), Tasks: []api.Task{task("t2", "reverted", time.Hour)}}, "good", []string{"warning failed/shop"}, "fencepost tasks t2"},
		{"failed before", Database{RPO: day, Good: shelf("b1", 3*time.Hour), Tasks: []api.Task{task("t2", "failed", 4*time.Hour)}}, "good", nil, ""},
		{"cancelled since", Database{RPO: day, Good: shelf("b1", 3*time.Hour), Tasks: []api.Task{task("t3", "cancelled", time.Hour), task("t2", "completed", 3*time.Hour)}}, "good", nil, ""},
		{"none yet", Database{RPO: day, Expected: now.Add(-day)}, "none", []string{"warning backup/shop"}, "nothing is scheduled"},
		{"never", Database{RPO: day, Expected: now.Add(-day - 1)}, "overdue", []string{"critical backup/shop"}, "nothing is scheduled"},
		{"expected since nobody knows when", Database{RPO: day}, "none", []string{"warning backup/shop"}, "nothing is scheduled"},
		{"unwatched", Database{Good: shelf("b1", 400*day)}, "unwatched", nil, ""},
		{"newest is suspect", Database{RPO: day, Good: shelf("b1", time.Hour), Newest: shelf("b2", 0, func(b *api.Backup) { b.Suspect = []string{"half the size"} })}, "good",
			[]string{"warning suspect/shop"}, "fencepost backup accept b2"},
	} {
		f := well()
		test.d.Name = "shop"
		f.Databases = []Database{test.d}
		o := Judge(f)
		if diff := cmp.Diff(test.want, alarms(o)); diff != "" || o.Databases[0].State != test.state {
			t.Errorf("%s: state %s, want %s; alarms (-want +got):\n%s", test.name, o.Databases[0].State, test.state, diff)
		}
		if len(o.Alarms) > 0 && !strings.Contains(o.Alarms[0].Hint, test.hint) {
			t.Errorf("%s: hint %q, want %q in it", test.name, o.Alarms[0].Hint, test.hint)
		}
	}
}

// TestGood: what counts as a backup.
func TestGood(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*api.Backup)
		want   bool
	}{
		"whole":              {func(*api.Backup) {}, true},
		"being made":         {func(b *api.Backup) { b.State = "creating" }, false},
		"being deleted":      {func(b *api.Backup) { b.State = "deleting" }, false},
		"suspect":            {func(b *api.Backup) { b.Suspect = []string{"x"} }, false},
		"suspect, accepted":  {func(b *api.Backup) { b.Suspect, b.Accepted = []string{"x"}, true }, true},
		"chosen parts":       {func(b *api.Backup) { b.Partial = "only tables x" }, false},
		"no copy is present": {func(b *api.Backup) { b.Storages[0].State = "corrupt" }, false},
	} {
		if got := Good(*shelf("b", 0, test.change)); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := SnapshotOf(api.Backup{Created: now}); !got.Equal(now) {
		t.Error("without a snapshot its making counts:", got)
	}
}

func TestPlainDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{26 * time.Hour: "26h", 90 * time.Minute: "1h30m", time.Minute: "1m", 61 * time.Second: "1m1s"} {
		if got := plain(d); got != want {
			t.Errorf("%v: %q", d, got)
		}
	}
}

type remedy struct{ error }

func (remedy) Hint() string { return "buy a disk" }

func TestHintOfAnError(t *testing.T) {
	f := well()
	f.Ledger = fmt.Errorf("write: %w", remedy{errors.New("full")})
	if got := Judge(f).Alarms[0].Hint; got != "buy a disk" {
		t.Errorf("hint %q", got)
	}
}
