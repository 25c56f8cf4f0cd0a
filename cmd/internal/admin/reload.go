package admin

import (
	"context"
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Reloader reads the node's configuration again.
type Reloader interface {
	Reload(ctx context.Context) (api.Reload, error)
}

// ofReload are the routes of the node's configuration.
func (h *handler) ofReload() []Route {
	return []Route{
		post(h, api.RoleAdmin, api.PathReload, "config.reload", "Have the node read its configuration again, and tell what took effect.", func(r *http.Request, _ struct{}) (api.Reload, error) {
			return h.Reloader.Reload(r.Context())
		}),
	}
}
