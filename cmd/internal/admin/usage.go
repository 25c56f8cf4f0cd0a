package admin

import (
	"context"
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Users tells what lies in the storages.
type Users interface {
	Usage(ctx context.Context) (api.Usage, error)
}

// ofUsage are the routes of what lies in the storages.
func (h *handler) ofUsage() []Route {
	return []Route{
		get(h, api.PathUsage, "usage.read", "What lies in the storages, how it grows, and when they are full.", func(r *http.Request) (api.Usage, error) { return h.Usage.Usage(r.Context()) }),
	}
}
