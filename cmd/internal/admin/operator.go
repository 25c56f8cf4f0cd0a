package admin

import (
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// missing is what a request lacks, the first of pairs of a field and its value that is empty.
func missing(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return &api.Error{Code: api.CodeUsage, Message: "the request names no " + pairs[i]}
		}
	}
	return nil
}

func (h *handler) retryRecovery(r *http.Request, want api.RecoveryName) (api.Recovery, error) {
	if err := missing("component", want.Component, "run", want.Run); err != nil {
		return api.Recovery{}, err
	}
	return h.Operator.RetryRecovery(r.Context(), want)
}

func (h *handler) dropRecovery(r *http.Request, want api.DropRecovery) (api.Recovery, error) {
	if err := missing("component", want.Component, "run", want.Run, "why", want.Why); err != nil {
		return api.Recovery{}, err
	}
	return h.Operator.DropRecovery(r.Context(), want)
}

func (h *handler) raiseFence(r *http.Request, want api.FenceName) (api.Fence, error) {
	if err := missing("component", want.Component, "node", want.Node); err != nil {
		return api.Fence{}, err
	}
	return h.Operator.RaiseFence(r.Context(), want)
}

func (h *handler) lowerFence(r *http.Request, want api.LowerFence) (api.Fence, error) {
	if err := missing("component", want.Component, "node", want.Node); err != nil {
		return api.Fence{}, err
	}
	if want.Token == 0 {
		return api.Fence{}, &api.Error{Code: api.CodeUsage, Message: "the request names no token", Hint: "fencepost fences shows it: it says which fence is meant"}
	}
	return h.Operator.LowerFence(r.Context(), want)
}

func (h *handler) forgetNode(r *http.Request, want api.NodeName) (api.Node, error) {
	if err := missing("node", want.Node); err != nil {
		return api.Node{}, err
	}
	return h.Operator.ForgetNode(r.Context(), want)
}

func (h *handler) replaceNode(r *http.Request, want api.NodeName) (api.Node, error) {
	if err := missing("node", want.Node); err != nil {
		return api.Node{}, err
	}
	return h.Operator.ReplaceNode(r.Context(), want)
}

func (h *handler) rebase(r *http.Request, want api.Rebase) (api.Numbers, error) {
	if err := missing("why", want.Why); err != nil {
		return api.Numbers{}, err
	}
	return h.Operator.Rebase(r.Context(), want)
}
