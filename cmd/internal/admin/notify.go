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

func (h *handler) routeNotify(mux *http.ServeMux) {
	mux.HandleFunc("POST "+api.PathNotifyTest, write(h, func(r *http.Request, want api.TestNotify) ([]api.NotifyResult, error) {
		return h.Notifier.TestNotify(r.Context(), want)
	}))
}
