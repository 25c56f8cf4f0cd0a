package admin

import (
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// routeRecurring adds the routes of Recurring.
func (h *handler) routeRecurring(mux *http.ServeMux) {
	mux.HandleFunc("GET "+api.PathSchedules, read(h, func(r *http.Request) ([]api.Schedule, error) { return h.Recurring.Schedules(r.Context()) }))
	one := "POST " + api.PathSchedules + "/{name}/"
	mux.HandleFunc(one+"run", write(h, func(r *http.Request, _ struct{}) (api.Task, error) {
		return h.Recurring.RunSchedule(r.Context(), r.PathValue("name"))
	}))
	for verb, on := range map[string]bool{"enable": true, "disable": false} {
		mux.HandleFunc(one+verb, write(h, func(r *http.Request, _ struct{}) (api.Schedule, error) {
			return h.Recurring.EnableSchedule(r.Context(), r.PathValue("name"), on)
		}))
	}
	mux.HandleFunc("GET "+api.PathRetention+"/{database}", read(h, func(r *http.Request) (api.Prune, error) {
		return h.Recurring.Prune(r.Context(), r.PathValue("database"))
	}))
	mux.HandleFunc("POST "+api.PathRetention+"/{database}/confirm", write(h, func(r *http.Request, _ struct{}) (api.Prune, error) {
		return h.Recurring.ConfirmPrune(r.Context(), r.PathValue("database"))
	}))
}
