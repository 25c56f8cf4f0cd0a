package admin

import (
	"context"
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Keyring changes the gossip keys of all nodes.
type Keyring interface {
	Keyring(ctx context.Context) (api.Keyring, error)
	AddGossipKey(ctx context.Context, k api.AddKey) (api.Keyring, error)
	// Rekey replaces all keys by one that is drawn; CodeConflict while a node does not take part, and then nothing is changed.
	Rekey(ctx context.Context) (api.Keyring, error)
	UseGossipKey(ctx context.Context, k api.KeyName) (api.Keyring, error)
	RemoveGossipKey(ctx context.Context, k api.KeyName) (api.Keyring, error)
}

func (h *handler) addKey(r *http.Request, want api.AddKey) (api.Keyring, error) {
	if want.Generate == (len(want.Key) > 0) {
		return api.Keyring{}, &api.Error{Code: api.CodeUsage, Message: "the request wants a key to be drawn and brings one, or neither"}
	}
	return h.Keyring.AddGossipKey(r.Context(), want)
}

func (h *handler) rekey(r *http.Request, _ struct{}) (api.Keyring, error) {
	return h.Keyring.Rekey(r.Context())
}

func (h *handler) useKey(r *http.Request, want api.KeyName) (api.Keyring, error) {
	if err := missing("fingerprint", want.Fingerprint); err != nil {
		return api.Keyring{}, err
	}
	return h.Keyring.UseGossipKey(r.Context(), want)
}

func (h *handler) removeKey(r *http.Request, want api.KeyName) (api.Keyring, error) {
	if err := missing("fingerprint", want.Fingerprint); err != nil {
		return api.Keyring{}, err
	}
	return h.Keyring.RemoveGossipKey(r.Context(), want)
}
