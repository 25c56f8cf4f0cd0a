package web

import (
	"net/url"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// storagesData is how the storages are, as the node that answers reaches them.
type storagesData struct {
	Node     string
	Storages []storageLine
	May      bool
}

type storageLine struct {
	api.StorageState
	api.StorageUsage
}

func storages(v *visit) (any, error) {
	o, err := ask[api.Overview](v, api.PathOverview)
	if err != nil {
		return nil, err
	}
	u, err := ask[api.Usage](v, api.PathUsage)
	d := storagesData{Node: o.Node, May: v.may(api.RoleAdmin)}
	for _, s := range o.Storages {
		line := storageLine{StorageState: s}
		for _, x := range u.Storages {
			if x.Storage == s.Name {
				line.StorageUsage = x
			}
		}
		d.Storages = append(d.Storages, line)
	}
	return d, err
}

// findingsData is what a check found.
type findingsData struct {
	Storage  string
	Fixed    bool // what can be removed was
	Findings []api.Finding
}

// checkWithin is as long as the API lets a check take.
const checkWithin = time.Hour

func ofStorages() []Deed {
	return []Deed{tryOne("/storages/{name}/test", "storage.test", api.PathStorages, "/storages"), {Path: "/storages/{name}/check", Action: "storage.check", Fields: []string{"fix"}, Within: checkWithin, again: "/storages", do: func(v *visit) (string, error) {
		name, fix := v.r.PathValue("name"), v.checked("fix")
		found, err := tell[[]api.Finding](v, api.PathStorages+"/"+url.PathEscape(name)+"/check", api.CheckStorage{Fix: fix})
		if err != nil {
			return "", err
		}
		return v.answers(View{Path: "/storages/check", Title: "Check of " + name, sheet: "findings"}, findingsData{name, fix, found})
	}}}
}

// tryOne has a storage or a database be tried, and shows what became of it.
func tryOne(path, action, route, again string) Deed {
	return Deed{Path: path, Action: action, again: again, do: func(v *visit) (string, error) {
		name := v.r.PathValue("name")
		got, err := tell[api.Tried](v, route+"/"+segment(name)+"/test", struct{}{})
		if err != nil {
			return "", err
		}
		return v.answers(View{Path: again + "/tried", Title: "Test of " + name, sheet: "tried"}, triedData{got, again})
	}}
}

// triedData is what became of a try, and the page that it belongs to.
type triedData struct {
	api.Tried
	Up string
}

// Plural names that page.
func (d triedData) Plural() string {
	if d.Up == "/storages" {
		return "Storages"
	}
	return "Databases"
}
