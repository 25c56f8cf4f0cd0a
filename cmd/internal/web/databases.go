package web

import (
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// databasesData is how the backups of each database are.
type databasesData struct {
	Databases []api.DatabaseState
	Usage     map[string]api.DatabaseUsage
}

func databases(v *visit) (any, error) {
	o, err := ask[api.Overview](v, api.PathOverview)
	if err != nil {
		return nil, err
	}
	d := databasesData{Databases: o.Databases, Usage: map[string]api.DatabaseUsage{}}
	u, err := ask[api.Usage](v, api.PathUsage)
	for _, x := range u.Databases {
		d.Usage[x.Database] = x
	}
	return d, err
}

// databaseData is one of them, with what retention thinks of its backups.
type databaseData struct {
	api.DatabaseState
	Usage    api.DatabaseUsage
	Backups  []api.Backup
	Prune    *api.Prune // nil: Untold
	Untold   *api.Error // why retention says nothing
	Storages []string
	May      bool
}

func database(v *visit) (any, error) {
	name := v.r.PathValue("name")
	o, err := ask[api.Overview](v, api.PathOverview)
	if err != nil {
		return nil, err
	}
	d := databaseData{May: v.operates([]string{name}, nil)}
	if d.DatabaseState, err = v.stateOf(name, o.Databases); err != nil {
		return nil, err
	}
	for _, s := range o.Storages {
		d.Storages = append(d.Storages, s.Name)
	}
	if d.Backups, err = ask[[]api.Backup](v, api.BackupsPath(api.BackupFilter{Database: name, Limit: 20})); err != nil {
		return nil, err
	}
	u, err := ask[api.Usage](v, api.PathUsage)
	for _, x := range u.Databases {
		if x.Database == name {
			d.Usage = x
		}
	}
	if err != nil {
		return nil, err
	}
	prune, err := ask[api.Prune](v, api.RetentionPath(name))
	if err != nil {
		d.Untold = problemOf(err)
		return d, nil
	}
	d.Prune = &prune
	return d, nil
}

// stateOf is how the backups of a database are, also of one that is gone from its server and never had one.
func (v *visit) stateOf(name string, list []api.DatabaseState) (api.DatabaseState, error) {
	if i := slices.IndexFunc(list, func(d api.DatabaseState) bool { return d.Name == name }); i >= 0 {
		return list[i], nil
	}
	known, err := ask[[]api.Database](v, api.PathDatabases)
	if err != nil {
		return api.DatabaseState{}, err
	}
	if slices.ContainsFunc(known, func(d api.Database) bool { return d.Name == name }) {
		return api.DatabaseState{Name: name, State: api.BackupsUnwatched}, nil
	}
	return api.DatabaseState{}, &api.Error{Code: api.CodeNotFound, Message: "there is no such database, and no backup of one", Hint: "the page Group says which there are"}
}

func ofDatabases() []Deed {
	one := "/databases/{name}"
	return []Deed{tryOne(one+"/test", "database.test", api.PathDatabases, "/databases"), {Path: one + "/confirm", Action: "retention.confirm", again: one, do: func(v *visit) (string, error) {
		name := v.r.PathValue("name")
		_, err := tell[api.Prune](v, api.RetentionPath(name)+"/confirm", struct{}{})
		return "/databases/" + segment(name) + "?done=confirm", err
	}}}
}
