package web

import "github.com/fencepost/fencepost/cmd/internal/api"

// schedulesData is what recurs.
type schedulesData struct {
	Schedules []api.Schedule
	May       bool
}

func schedules(v *visit) (any, error) {
	list, err := ask[[]api.Schedule](v, api.PathSchedules)
	return schedulesData{list, v.may(api.RoleOperator)}, err
}

func ofSchedules() []Deed {
	one := "/schedules/{name}"
	turn := func(verb string) Deed {
		return Deed{Path: one + "/" + verb, Action: "schedule." + verb, again: "/schedules", do: func(v *visit) (string, error) {
			_, err := tell[api.Schedule](v, api.SchedulePath(v.r.PathValue("name"))+"/"+verb, struct{}{})
			return "/schedules?done=" + verb, err
		}}
	}
	return []Deed{
		{Path: one + "/run", Action: "schedule.run", again: "/schedules", do: func(v *visit) (string, error) {
			t, err := tell[api.Task](v, api.SchedulePath(v.r.PathValue("name"))+"/run", struct{}{})
			return taskPage(t, "run"), err
		}},
		turn("enable"), turn("disable"),
	}
}
