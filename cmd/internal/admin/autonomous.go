package admin

import (
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// ofAutonomous are the routes of components, items and claims.
func (h *handler) ofAutonomous() []Route {
	a := h.Autonomous
	component, item := api.PathComponents+"/{name}", api.PathItems+"/{id}"
	tick := get(h, component+"/ticks/{id}", "tick.read", "One tick of a component on the node that answers.", func(r *http.Request) (api.Tick, error) {
		return a.Tick(r.Context(), r.PathValue("name"), r.PathValue("id"))
	})
	seenBy := []Param{{"component", "string", "as this component sees it: with the reasons why it would not work on it"}}
	for _, part := range []string{"past", "past_failed", "future", "old", "type"} {
		seenBy = append(seenBy, Param{part, "array", "of a trigger of one's own, in the place of the component's"})
	}
	return []Route{
		get(h, api.PathComponents, "components.read", "The autonomous components on the node that answers.", func(r *http.Request) ([]api.Component, error) { return a.Components(r.Context()) }),
		post(h, api.RoleOperator, component+"/run", "component.run", "Begin a tick of a component on the node that answers.", func(r *http.Request, _ struct{}) (api.Tick, error) {
			return a.RunComponent(r.Context(), r.PathValue("name"))
		}),
		post(h, api.RoleOperator, component+"/pause", "component.pause", "Have no member claim anything new for a component.", h.pause(true)).over(h.wasComponent),
		post(h, api.RoleOperator, component+"/resume", "component.resume", "Let members claim for a component again.", h.pause(false)).over(h.wasComponent),
		get(h, api.PathItems, "items.read", "The items of components.", func(r *http.Request) ([]api.Item, error) {
			return a.Items(r.Context(), api.ParseItemQuery(r.URL.Query()))
		}, seenBy...),
		get(h, item, "item.read", "One item.", func(r *http.Request) (api.Item, error) {
			return a.Item(r.Context(), api.ParseItemQuery(r.URL.Query()), r.PathValue("id"))
		}, seenBy...),
		tick,
		post(h, api.RoleOperator, api.PathItems, "item.put", "Make an item, or say that it has changed.", h.putItem).over(h.wasItem),
		post(h, api.RoleOperator, item+"/events", "item.event", "Add an event to an item by hand.", h.appendEvent).over(h.wasItem),
		post(h, api.RoleOperator, item+"/forget", "item.forget", "Take the events of a type away from an item.", h.forgetEvents).over(h.wasItem),
		get(h, api.PathClaims, "claims.read", "Who works on what.", func(r *http.Request) ([]api.Claim, error) { return a.Claims(r.Context()) }),
		post(h, api.RoleOperator, api.PathClaims+"/free", "claim.free", "Have a claim end, whoever holds it, and the item be for whoever comes next.", h.endClaim(false)).over(h.wasClaim),
		post(h, api.RoleOperator, api.PathClaims+"/quarantine", "claim.quarantine", "Have a claim end, whoever holds it, and its item be set aside.", h.endClaim(true)).over(h.wasClaim),
	}
}

func (h *handler) pause(on bool) func(*http.Request, struct{}) (api.Component, error) {
	return func(r *http.Request, _ struct{}) (api.Component, error) {
		return h.Autonomous.PauseComponent(r.Context(), r.PathValue("name"), on)
	}
}

func (h *handler) putItem(r *http.Request, want api.PutItem) (api.Item, error) {
	if err := missing("id", want.ID, "type", want.Type); err != nil {
		return api.Item{}, err
	}
	return h.Autonomous.PutItem(r.Context(), want)
}

func (h *handler) appendEvent(r *http.Request, want api.AppendEvent) (api.Item, error) {
	if err := missing("type", want.Type); err != nil {
		return api.Item{}, err
	}
	return h.Autonomous.AppendEvent(r.Context(), r.PathValue("id"), want)
}

func (h *handler) forgetEvents(r *http.Request, want api.ForgetEvents) (api.Forgotten, error) {
	if err := missing("type", want.Type); err != nil {
		return api.Forgotten{}, err
	}
	return h.Autonomous.ForgetEvents(r.Context(), r.PathValue("id"), want)
}

func (h *handler) endClaim(quarantine bool) func(*http.Request, api.ClaimName) (api.Claim, error) {
	return func(r *http.Request, want api.ClaimName) (api.Claim, error) {
		if err := missing("component", want.Component, "item", want.Item); err != nil {
			return api.Claim{}, err
		}
		if want.Token == 0 {
			return api.Claim{}, &api.Error{Code: api.CodeUsage, Message: "the request names no token", Hint: "fencepost claim ls shows it: it says which claim is meant"}
		}
		return h.Autonomous.EndClaim(r.Context(), want, quarantine)
	}
}
