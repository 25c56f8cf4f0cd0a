package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Good tells whether b counts as a backup of its database: complete, all of it, not suspect or accepted although it is, and with
// a copy that is there.
func Good(b api.Backup) bool {
	present := slices.ContainsFunc(b.Storages, func(c api.Copy) bool { return c.State == "present" })
	return b.State == "completed" && b.Partial == "" && present && (len(b.Suspect) == 0 || b.Accepted)
}

// SnapshotOf is the moment whose data b holds.
func SnapshotOf(b api.Backup) time.Time {
	if b.AsOf != nil && !b.AsOf.IsZero() {
		return *b.AsOf
	}
	return b.Created
}

// due is when a database becomes overdue; zero: never, or not known yet.
func due(d Database) time.Time {
	switch {
	case d.RPO == 0:
		return time.Time{}
	case d.Good != nil:
		return SnapshotOf(*d.Good).Add(d.RPO)
	case d.Expected.IsZero():
		return time.Time{}
	default:
		return d.Expected.Add(d.RPO)
	}
}

func judge(d Database, now time.Time) api.DatabaseState {
	s := api.DatabaseState{Name: d.Name, State: api.BackupsGood, RPOMS: d.RPO.Milliseconds(), Storages: []string{}, Next: d.Next}
	if d.Good != nil {
		at := SnapshotOf(*d.Good)
		s.Backup, s.LastGood, s.Verified, s.Bytes = d.Good.ID, &at, d.Good.Verified, d.Good.StoredBytes
		for _, c := range d.Good.Storages {
			if c.State == "present" {
				s.Storages = append(s.Storages, c.Storage)
			}
		}
		slices.Sort(s.Storages)
	}
	limit := due(d)
	if !limit.IsZero() {
		s.Due = &limit
	}
	switch {
	case d.RPO == 0:
		s.State = api.BackupsUnwatched
	case !limit.IsZero() && now.After(limit):
		s.State = api.BackupsOverdue
	case d.Good == nil:
		s.State = api.BackupsNone
	}
	if t := failure(d); t != nil {
		s.Failed, s.Error = t.ID, t.Error
	}
	for _, t := range d.Tasks {
		if !t.Final && t.State != "planned" {
			s.Running = t.ID
		}
	}
	return s
}

// failure is the newest ended task, when it made no good backup and nobody cancelled it.
func failure(d Database) *api.Task {
	for i, t := range d.Tasks {
		switch {
		case !t.Final || t.State == "cancelled" || t.Type != "create":
			continue
		case t.State == api.Completed, d.Good != nil && !t.Created.After(d.Good.Created):
			return nil
		}
		return &d.Tasks[i]
	}
	return nil
}

func databaseAlarms(f Facts) (list []api.Alarm) {
	for _, d := range f.Databases {
		failed := failure(d)
		state := judge(d, f.Now)
		if state.State == api.BackupsOverdue || state.State == api.BackupsNone {
			list = append(list, lacking(d, state, failed, f.Now))
		}
		if failed != nil {
			list = append(list, api.Alarm{Kind: kindFailed, About: d.Name, Occurrence: failed.ID, Severity: api.Warning, Cause: failed.Error, Since: failed.Finished,
				Text: "the last backup of " + d.Name + " was " + failed.State + problem(failed.Error), Hint: cmp.Or(failed.Hint, "fencepost tasks "+failed.ID)})
		}
		if n := d.Newest; n != nil && len(n.Suspect) > 0 && !n.Accepted {
			list = append(list, api.Alarm{Kind: kindSuspect, About: d.Name, Occurrence: n.ID, Severity: api.Warning, Since: n.Completed,
				Text: "the newest backup of " + d.Name + " is suspect and does not count: " + strings.Join(n.Suspect, "; "),
				Hint: "look at the database; when it is right: fencepost backup accept " + n.ID})
		}
	}
	return list
}

// lacking is the alarm about a database whose newest good backup is too old, or that has none.
func lacking(d Database, s api.DatabaseState, failed *api.Task, now time.Time) api.Alarm {
	a := api.Alarm{Kind: kindBackup, About: d.Name, Severity: api.Critical, Since: s.Due}
	if s.State == api.BackupsNone {
		a.Severity = api.Warning
	}
	if s.LastGood == nil {
		a.Text = "there is no good backup of " + d.Name
	} else {
		a.Text = fmt.Sprintf("the last good backup of %s is of %s, and one is expected every %s", d.Name, s.LastGood.UTC().Format(time.DateTime+"Z"), plain(d.RPO))
	}
	switch {
	case failed != nil:
		a.Cause, a.Hint = failed.Error, cmp.Or(failed.Hint, "fencepost tasks "+failed.ID)
	case s.Running != "":
		a.Hint = "one is being made: fencepost tasks " + s.Running
	case d.Next == nil:
		a.Cause, a.Hint = "nothing is scheduled", "nothing is scheduled for it: fencepost backup create "+d.Name+", and a schedule"
	case now.After(*d.Next):
		a.Cause, a.Hint = "nobody makes what is scheduled", "what was scheduled has not begun: see fencepost component ls and fencepost tasks --internal"
	default:
		a.Hint = "fencepost backup create " + d.Name
	}
	return a
}

func problem(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// plain is a duration without the units that are zero.
func plain(d time.Duration) string {
	text := d.String()
	if rest, ok := strings.CutSuffix(text, "m0s"); ok {
		text = rest + "m"
	}
	if rest, ok := strings.CutSuffix(text, "h0m"); ok {
		text = rest + "h"
	}
	return text
}
