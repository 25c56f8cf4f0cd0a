package web

import (
	"net/http"
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
	return []Deed{{Path: "/storages/{name}/check", Action: "storage.check", Fields: []string{"fix"}, Within: checkWithin, again: "/storages", do: func(v *visit) (string, error) {
		name, fix := v.r.PathValue("name"), v.checked("fix")
		found, err := tell[[]api.Finding](v, api.PathStorages+"/"+url.PathEscape(name)+"/check", api.CheckStorage{Fix: fix})
		if err != nil {
			return "", err
		}
		v.send(http.StatusOK, View{Path: "/storages/check", Title: "Check of " + name, sheet: "findings"}, findingsData{name, fix, found})
		return "", nil
	}}}
}
