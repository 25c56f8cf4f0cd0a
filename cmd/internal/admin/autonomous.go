package admin

import (
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// routeAutonomous adds the routes of Autonomous.
func (h *handler) routeAutonomous(mux *http.ServeMux) {
	a := h.Autonomous
	mux.HandleFunc("GET "+api.PathComponents, read(h, func(r *http.Request) ([]api.Component, error) { return a.Components(r.Context()) }))
	one := "POST " + api.PathComponents + "/{name}/"
	mux.HandleFunc(one+"run", write(h, func(r *http.Request, _ struct{}) (api.Tick, error) {
		return a.RunComponent(r.Context(), r.PathValue("name"))
	}))
	mux.HandleFunc("GET "+api.PathComponents+"/{name}/ticks/{id}", read(h, func(r *http.Request) (api.Tick, error) {
		return a.Tick(r.Context(), r.PathValue("name"), r.PathValue("id"))
	}))
	for verb, on := range map[string]bool{"pause": true, "resume": false} {
		mux.HandleFunc(one+verb, write(h, func(r *http.Request, _ struct{}) (api.Component, error) {
			return a.PauseComponent(r.Context(), r.PathValue("name"), on)
		}))
	}
	mux.HandleFunc("GET "+api.PathItems, read(h, func(r *http.Request) ([]api.Item, error) {
		return a.Items(r.Context(), api.ParseItemQuery(r.URL.Query()))
	}))
	mux.HandleFunc("GET "+api.PathItems+"/{id}", read(h, func(r *http.Request) (api.Item, error) {
		return a.Item(r.Context(), api.ParseItemQuery(r.URL.Query()), r.PathValue("id"))
	}))
	mux.HandleFunc("POST "+api.PathItems, write(h, func(r *http.Request, want api.PutItem) (api.Item, error) {
		if err := missing("id", want.ID, "type", want.Type); err != nil {
			return api.Item{}, err
		}
		return a.PutItem(r.Context(), want)
	}))
	mux.HandleFunc("POST "+api.PathItems+"/{id}/events", write(h, func(r *http.Request, want api.AppendEvent) (api.Item, error) {
		if err := missing("type", want.Type); err != nil {
			return api.Item{}, err
		}
		return a.AppendEvent(r.Context(), r.PathValue("id"), want)
	}))
	mux.HandleFunc("POST "+api.PathItems+"/{id}/forget", write(h, func(r *http.Request, want api.ForgetEvents) (api.Forgotten, error) {
		if err := missing("type", want.Type); err != nil {
			return api.Forgotten{}, err
		}
		return a.ForgetEvents(r.Context(), r.PathValue("id"), want)
	}))
	mux.HandleFunc("GET "+api.PathClaims, read(h, func(r *http.Request) ([]api.Claim, error) { return a.Claims(r.Context()) }))
	for verb, quarantine := range map[string]bool{"free": false, "quarantine": true} {
		mux.HandleFunc("POST "+api.PathClaims+"/"+verb, write(h, func(r *http.Request, want api.ClaimName) (api.Claim, error) {
			if err := missing("component", want.Component, "item", want.Item); err != nil {
				return api.Claim{}, err
			}
			if want.Token == 0 {
				return api.Claim{}, &api.Error{Code: api.CodeUsage, Message: "the request names no token", Hint: "fencepost claim ls shows it: it says which claim is meant"}
			}
			return a.EndClaim(r.Context(), want, quarantine)
		}))
	}
}
