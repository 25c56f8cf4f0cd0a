package admin

import (
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (h *handler) ofDrains() []Route {
	one := api.PathNodes + "/{node}"
	return []Route{
		post(h, api.RoleAdmin, api.PathNodes+"/drain", "node.drain", "Have a node begin nothing new, so that it can be stopped.", h.drainNode).over(h.wasDrain),
		post(h, api.RoleAdmin, api.PathNodes+"/undrain", "node.undrain", "Let a drained node work again.", h.undrainNode).over(h.wasDrain),
		weighed(post(h, api.RoleAdmin, api.PathNodes+"/remove", "node.remove", "Have a node drained, leave the group for good, and forgotten.", h.removeNode).over(h.wasDrain), h.weighNodeRemoval, api.ApproveNode),
		get(h, one+"/removal", "removal.read", "How far a node is on its way out, and which storages nobody else has.", func(r *http.Request) (api.Removal, error) {
			return h.Drains.Removal(r.Context(), r.PathValue("node"))
		}),
		get(h, one+"/drain", "drain.read", "How far a node is on its way to doing nothing.", func(r *http.Request) (api.Drain, error) {
			return h.Drains.Drain(r.Context(), r.PathValue("node"))
		}),
		get(h, one+"/may-restart", "node.mayrestart", "Whether a node may be stopped now without hurting the group, and what stands against it.", func(r *http.Request) (api.MayRestart, error) {
			return h.Drains.MayRestart(r.Context(), r.PathValue("node"))
		}),
	}
}

func (h *handler) drainNode(r *http.Request, want api.NodeName) (api.Drain, error) {
	if err := missing("node", want.Node); err != nil {
		return api.Drain{}, err
	}
	return h.Drains.DrainNode(r.Context(), want)
}

func (h *handler) undrainNode(r *http.Request, want api.NodeName) (api.Drain, error) {
	if err := missing("node", want.Node); err != nil {
		return api.Drain{}, err
	}
	return h.Drains.UndrainNode(r.Context(), want)
}

func (h *handler) removeNode(r *http.Request, want api.NodeName) (api.Removal, error) {
	if err := missing("node", want.Node); err != nil {
		return api.Removal{}, err
	}
	return h.Drains.RemoveNode(r.Context(), want)
}
