package web

import (
	"maps"
	"net/url"
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// restoreFields are those of the form of a restore.
var restoreFields = []string{"database", "target", "replace", "storage", "disconnect", "in_place", "no_owner", "no_privileges", "schema_only", "accept_foreign", "jobs", "repeat"}

// restoreData is a restore that is being thought about: the choice first, then the plan with what it would meet, and the
// name of its target to be repeated.
type restoreData struct {
	Backup    api.Backup
	Plan      *api.RestorePlan // nil: nothing was chosen yet, or Problem
	Problem   *api.Error       // why it cannot be done so
	Asked     url.Values
	Databases []string
	Storages  []string
	May       bool
}

// Carried are the fields of the choice, which the last form brings along.
func (d restoreData) Carried() []string {
	return slices.DeleteFunc(slices.Clone(restoreFields), func(name string) bool { return name == "repeat" || !d.Asked.Has(name) })
}

// restore shows the choice, and when it was made (?target= and so on) what would happen. Looking changes nothing.
func restore(v *visit) (any, error) {
	b, err := ask[api.Backup](v, api.BackupPath(v.r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	d := restoreData{Backup: b, Asked: v.r.URL.Query(), May: v.operates([]string{b.Database}, nil)}
	if len(v.form) > 0 {
		d.Asked = v.form
	}
	o, err := ask[api.Overview](v, api.PathOverview)
	if err != nil {
		return nil, err
	}
	for _, x := range o.Databases {
		if v.operates(nil, []string{x.Name}) {
			d.Databases = append(d.Databases, x.Name)
		}
	}
	for _, c := range b.Storages {
		if c.State == "present" {
			d.Storages = append(d.Storages, c.Storage)
		}
	}
	if !d.May || !d.Asked.Has("target") {
		return d, nil
	}
	looking := *v // as if the form had been sent: looking changes nothing
	looking.form, looking.key = maps.Clone(d.Asked), ""
	looking.form.Set(fieldToken, v.token)
	_, plan, err := looking.planned()
	if err != nil {
		d.Problem = problemOf(err)
		return d, nil
	}
	d.Plan = &plan
	return d, nil
}

// planned is what the form asks for, and what that would do.
func (v *visit) planned() (api.RestoreBackup, api.RestorePlan, error) {
	want, err := v.wantedRestore()
	if err != nil {
		return want, api.RestorePlan{}, err
	}
	asking := *v
	asking.key = "" // the restore's
	plan, err := tell[api.RestorePlan](&asking, api.PathPreview, want)
	return want, plan, err
}

// wantedRestore is what the form asks for.
func (v *visit) wantedRestore() (api.RestoreBackup, error) {
	jobs, err := v.whole("jobs")
	return api.RestoreBackup{
		Backup: v.r.PathValue("id"), Database: v.form.Get("database"), Target: v.form.Get("target"), Storage: v.form.Get("storage"),
		Replace: v.checked("replace"), Disconnect: v.checked("disconnect"), InPlace: v.checked("in_place"), NoOwner: v.checked("no_owner"),
		NoPrivileges: v.checked("no_privileges"), SchemaOnly: v.checked("schema_only"), AcceptForeign: v.checked("accept_foreign"), Jobs: jobs,
	}, err
}

// doRestore plans it, when the name of the database that is made is repeated as it stands in the plan.
func doRestore(v *visit) (string, error) {
	want, plan, err := v.planned()
	if err != nil {
		return "", err
	}
	if v.form.Get("repeat") != plan.Target {
		return "", &api.Error{Code: api.CodeUsage, Message: "the name of the target is not repeated: nothing was restored", Hint: "type " + plan.Target}
	}
	t, err := tell[api.Task](v, api.BackupPath(v.r.PathValue("id"))+"/restore", want)
	return taskPage(t, "restore"), err
}
