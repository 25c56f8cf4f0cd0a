package web

import (
	"github.com/fencepost/fencepost/cmd/internal/api"
)

const pathVersions = "/members/versions"

// versionsData is which programs the nodes run, and how far a rolling upgrade is.
type versionsData struct {
	api.Upgrade
	Group   string
	May     bool
	Without map[string]bool // nodes that may be away, in the form, when it is shown again
}

func versions(v *visit) (any, error) {
	u, err := ask[api.Upgrade](v, api.PathUpgrade)
	d := versionsData{Upgrade: u, Group: v.cfg.Group, May: v.may(api.RoleAdmin), Without: map[string]bool{}}
	for _, node := range v.picked("without") {
		d.Without[node] = true
	}
	return d, err
}

// Old are nodes that are here and do not read the next protocol: while there is one, nothing is finalized.
func (d versionsData) Old() (list []string) {
	for _, p := range d.Programs {
		if p.Here && p.Protocol < d.Next {
			list = append(list, p.Node)
		}
	}
	return list
}

// Away are nodes that are not here, and of which a person has to say that they need not be.
func (d versionsData) Away() (list []string) {
	for _, p := range d.Programs {
		if !p.Here {
			list = append(list, p.Node)
		}
	}
	return list
}

func ofVersions() []Deed {
	return []Deed{{Path: pathVersions + "/finalize", Action: "upgrade.finalize", Fields: []string{"without", "repeat"}, again: pathVersions, do: func(v *visit) (string, error) {
		if v.form.Get("repeat") != v.cfg.Group {
			return "", &api.Error{Code: api.CodeUsage, Message: "the name of the group is not repeated: nothing was done", Hint: "type " + v.cfg.Group}
		}
		_, err := tell[api.Upgrade](v, api.PathUpgradeFinalize, api.FinalizeUpgrade{Without: v.picked("without")})
		return pathVersions + "?done=finalize", err
	}}}
}
