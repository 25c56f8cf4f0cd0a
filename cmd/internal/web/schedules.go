package web

import "github.com/fencepost/fencepost/cmd/internal/api"

// schedulesData is what recurs.
type schedulesData struct {
	Schedules []api.Schedule
	may       func(databases ...string) bool
}

// May tells whether who asks may work with a schedule.
func (d schedulesData) May(s api.Schedule) bool { return d.may(s.Database) }

func schedules(v *visit) (any, error) {
	list, err := ask[[]api.Schedule](v, api.PathSchedules)
	return schedulesData{list, func(databases ...string) bool { return v.operates(databases, nil) }}, err
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
