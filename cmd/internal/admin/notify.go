package admin

import (
	"context"
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Notifier delivers test messages.
type Notifier interface {
	// TestNotify delivers to the receivers at the same time, and takes as long as the slowest.
	TestNotify(ctx context.Context, r api.TestNotify) ([]api.NotifyResult, error)
}

// ofNotify are the routes of notifications.
func (h *handler) ofNotify() []Route {
	return []Route{
		post(h, api.RoleOperator, api.PathNotifyTest, "notify.test", "Deliver a test message, and tell what became of it.", func(r *http.Request, want api.TestNotify) ([]api.NotifyResult, error) {
			return h.Notifier.TestNotify(r.Context(), want)
		}),
	}
}
