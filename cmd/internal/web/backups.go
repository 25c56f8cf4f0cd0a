package web

import (
	"net/url"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func segment(s string) string { return url.PathEscape(s) }

// scanned is how many backups a search for a text looks at.
const scanned = 1000

// backupsData is a page of backups.
type backupsData struct {
	Database, Text string
	Databases      []string // that can be chosen
	Own            []string // of which who asks may make one
	Backups        []api.Backup
	After, More    string
	Newest         string
	Cut            bool // there are more than were looked at
	Storages       []string
	Chosen         string          // in the form, when it is shown again
	Picked         map[string]bool // storages, likewise
}

func backups(v *visit) (any, error) {
	q := v.r.URL.Query()
	d := backupsData{After: q.Get("after"), Newest: "/backups?" + api.BackupFilter{Database: q.Get("database")}.Query().Encode(), Database: q.Get("database"), Text: strings.TrimSpace(q.Get("text")), Chosen: v.form.Get("database"), Picked: map[string]bool{}}
	for _, name := range v.picked("storage") {
		d.Picked[name] = true
	}
	f := api.BackupFilter{Database: d.Database, Limit: pageSize, After: q.Get("after")}
	if d.Text != "" {
		f.Limit = scanned
	}
	var err error
	if d.Backups, err = ask[[]api.Backup](v, api.BackupsPath(f)); err != nil {
		return nil, err
	}
	if n := len(d.Backups); n == f.Limit && d.Text == "" {
		d.More = "/backups?" + api.BackupFilter{Database: d.Database, After: d.Backups[n-1].ID}.Query().Encode()
	}
	if d.Text != "" {
		d.Cut = len(d.Backups) == f.Limit
		d.Backups = slices.DeleteFunc(d.Backups, func(b api.Backup) bool { return !mentions(b, d.Text) })
	}
	o, err := ask[api.Overview](v, api.PathOverview)
	for _, x := range o.Databases {
		d.Databases = append(d.Databases, x.Name)
	}
	d.Own = v.operated(d.Databases)
	for _, x := range o.Storages {
		d.Storages = append(d.Storages, x.Name)
	}
	return d, err
}

// mentions tells whether a text is in what people know a backup by.
func mentions(b api.Backup, text string) bool {
	words := []string{b.ID, b.Database, b.State, b.Note, b.SHA256, strings.Join(b.Suspect, " ")}
	for _, c := range b.Storages {
		words = append(words, c.Storage, c.State)
	}
	return strings.Contains(strings.ToLower(strings.Join(words, "\n")), strings.ToLower(text))
}

// backupData is one backup, and what may be done with it.
type backupData struct {
	api.Backup
	May    bool // work with it
	Broken bool // a copy is missing or corrupt
	Kept   bool // it is whole and can be used
	Marks  marks
	AtOnce bool // in the form of a deletion, when it is shown again
}

// marks are what the form for them is filled with.
type marks struct {
	Pinned, Accepted bool
	Note             string
}

func backup(v *visit) (any, error) {
	b, err := ask[api.Backup](v, api.BackupPath(v.r.PathValue("id")))
	d := backupData{Backup: b, May: v.operates([]string{b.Database}, nil), Kept: b.State == api.Completed, AtOnce: v.checked("now")}
	d.Marks = marks{b.Pinned, b.Accepted, b.Note}
	if v.form.Has("note") {
		d.Marks.Note = v.form.Get("note")
		for name, is := range map[string]*bool{"pinned": &d.Marks.Pinned, "accepted": &d.Marks.Accepted} {
			if v.checked(name) != v.checked("was_"+name) { // else it is as somebody else has left it
				*is = v.checked(name)
			}
		}
	}
	d.Broken = slices.ContainsFunc(b.Storages, func(c api.Copy) bool { return c.State != "present" })
	return d, err
}

// manifest is what lies beside a backup in one storage.
func manifest(v *visit) (any, error) {
	return ask[api.Manifest](v, api.ManifestPath(v.r.PathValue("id"), v.r.URL.Query().Get("storage")))
}

func ofBackups() []Deed {
	one := "/backups/{id}"
	planned := func(path, done string, body func(v *visit) any) func(*visit) (string, error) {
		return func(v *visit) (string, error) {
			t, err := tell[api.Task](v, api.BackupPath(v.r.PathValue("id"))+path, body(v))
			return taskPage(t, done), err
		}
	}
	return []Deed{
		{Path: "/backups", Action: "backup.create", Fields: []string{"database", "storage"}, again: "/backups", do: func(v *visit) (string, error) {
			t, err := tell[api.Task](v, api.PathBackups, api.CreateBackup{Database: v.form.Get("database"), Storages: v.picked("storage")})
			return taskPage(t, "backup"), err
		}},
		{Path: one + "/restore", Action: "restore.create", Fields: restoreFields, again: one + "/restore", do: doRestore},
		{Path: one + "/verify", Action: "backup.verify", again: one, do: planned("/verify", "verify", func(*visit) any { return api.VerifyBackup{} })},
		{Path: one + "/replicate", Action: "backup.replicate", again: one, do: planned("/replicate", "replicate", func(*visit) any { return api.ReplicateBackup{} })},
		{Path: one + "/delete", Action: "backup.delete", Fields: []string{"now", "repeat"}, again: one + "/delete", do: doDelete},
		{Path: one + "/undelete", Action: "backup.undelete", again: one, do: func(v *visit) (string, error) {
			b, err := tell[api.Backup](v, api.BackupPath(v.r.PathValue("id"))+"/undelete", struct{}{})
			return "/backups/" + segment(b.ID) + "?done=undelete", err
		}},
		{Path: one + "/mark", Action: "backup.mark", Fields: []string{"pinned", "accepted", "note", "was_pinned", "was_accepted", "was_note"}, again: one, do: doMark},
	}
}

// doMark changes what the form differs in from what it showed: what somebody else has marked meanwhile stays.
func doMark(v *visit) (string, error) {
	id := v.r.PathValue("id")
	b, err := ask[api.Backup](v, api.BackupPath(id))
	if err != nil {
		return "", err
	}
	var change api.MarkBackup
	for name, field := range map[string]**bool{"pinned": &change.Pinned, "accepted": &change.Accepted} {
		if is := v.checked(name); is != v.checked("was_"+name) {
			*field = &is
		}
	}
	if note := v.form.Get("note"); note != v.form.Get("was_note") {
		if b.Note != note && b.Note != v.form.Get("was_note") {
			return "", &api.Error{Code: api.CodeConflict, Message: "somebody has written another note meanwhile: " + b.Note, Hint: "press the button again to have yours take its place"}
		}
		change.Note = &note
	}
	if change == (api.MarkBackup{}) {
		return "/backups/" + segment(id) + "?done=mark", nil
	}
	b, err = tell[api.Backup](v, api.BackupPath(id)+"/mark", change)
	return "/backups/" + segment(b.ID) + "?done=mark", err
}

// doDelete asks for the name of the database: what goes is gone.
func doDelete(v *visit) (string, error) {
	b, err := ask[api.Backup](v, api.BackupPath(v.r.PathValue("id")))
	if err != nil {
		return "", err
	}
	if v.form.Get("repeat") != b.Database {
		return "", &api.Error{Code: api.CodeUsage, Message: "the name of the database is not repeated: nothing was deleted", Hint: "type " + b.Database}
	}
	t, err := tell[api.Task](v, api.BackupPath(b.ID)+"/delete", api.DeleteBackup{Now: v.checked("now")})
	return taskPage(t, "delete"), err
}
