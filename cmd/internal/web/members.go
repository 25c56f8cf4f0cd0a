package web

import "github.com/fencepost/fencepost/cmd/internal/api"

// membersData is who is here, and who would be if their certificates counted.
type membersData struct {
	api.View
	Upgrade api.Upgrade
	Lines   []memberLine
	May     bool
}

// memberLine is a member, and whether it may be restarted now.
type memberLine struct {
	api.Member
	In      bool // it is a member
	Restart api.MayRestart
	Drain   api.Drain
}

// Drained tells whether somebody has asked the node to do nothing.
func (m memberLine) Drained() bool { return m.Drain.State != api.DrainNone && m.Drain.State != "" }

func members(v *visit) (any, error) {
	view, err := ask[api.View](v, api.PathView)
	if err != nil {
		return nil, err
	}
	d := membersData{View: view, May: v.may(api.RoleAdmin)}
	if d.Upgrade, err = ask[api.Upgrade](v, api.PathUpgrade); err != nil {
		return nil, err
	}
	for _, m := range view.Members {
		line := memberLine{Member: m, In: true}
		if line.Restart, err = ask[api.MayRestart](v, api.MayRestartPath(m.Node)); err != nil {
			line.Restart = api.MayRestart{Why: []string{problemOf(err).Message}}
		}
		if line.Drain, err = ask[api.Drain](v, api.DrainPath(m.Node)); err != nil {
			line.Drain = api.Drain{} // the rest of the page is worth showing without
		}
		d.Lines = append(d.Lines, line)
	}
	for _, m := range view.Refused {
		d.Lines = append(d.Lines, memberLine{Member: m})
	}
	return d, nil
}

func ofMembers() []Deed {
	turn := func(verb string) Deed {
		return Deed{Path: "/members/{node}/" + verb, Action: "node." + verb, again: "/members", do: func(v *visit) (string, error) {
			_, err := tell[api.Drain](v, api.PathNodes+"/"+verb, api.NodeName{Node: v.r.PathValue("node")})
			return "/members?done=" + verb, err
		}}
	}
	return []Deed{turn("drain"), turn("undrain")}
}
