package web

import (
	"strconv"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// componentsData is what works by itself, and who works on what.
type componentsData struct {
	Components []api.Component
	Claims     []api.Claim
	More       int // claims that are not shown
	May        bool
}

// mostClaims is how many claims are shown.
const mostClaims = 200

func components(v *visit) (any, error) {
	list, err := ask[[]api.Component](v, api.PathComponents)
	if err != nil {
		return nil, err
	}
	claims, err := ask[[]api.Claim](v, api.PathClaims)
	shown := foremost(claims, mostClaims, func(c api.Claim) bool { return c.State != "held" })
	return componentsData{list, shown, len(claims) - len(shown), v.may(api.RoleOperator)}, err
}

func ofComponents() []Deed {
	turn := func(verb string) Deed {
		return Deed{Path: "/components/{name}/" + verb, Action: "component." + verb, again: "/components", do: func(v *visit) (string, error) {
			_, err := tell[api.Component](v, api.ComponentPath(v.r.PathValue("name"))+"/"+verb, struct{}{})
			return "/components?done=" + verb, err
		}}
	}
	end := func(verb string) Deed {
		return Deed{Path: "/claims/" + verb, Action: "claim." + verb, Fields: []string{"component", "item", "token"}, again: "/components", do: func(v *visit) (string, error) {
			token, err := strconv.ParseUint(v.form.Get("token"), 10, 64)
			if err != nil {
				return "", &api.Error{Code: api.CodeUsage, Message: "the form does not say which claim is meant", Hint: "load the page again"}
			}
			_, err = tell[api.Claim](v, api.PathClaims+"/"+verb, api.ClaimName{Component: v.form.Get("component"), Item: v.form.Get("item"), Token: token})
			return "/components?done=" + verb, err
		}}
	}
	return []Deed{
		{Path: "/components/{name}/run", Action: "component.run", again: "/components", do: func(v *visit) (string, error) {
			_, err := tell[api.Tick](v, api.ComponentPath(v.r.PathValue("name"))+"/run", struct{}{})
			return "/components?done=tick", err
		}},
		turn("pause"), turn("resume"), end("free"), end("quarantine"),
	}
}
