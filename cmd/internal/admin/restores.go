package admin

import (
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// routeRestores adds what is asked about a restore before it, and after it.
func (h *handler) routeRestores(mux *http.ServeMux) {
	mux.HandleFunc("POST "+api.PathPreview, write(h, func(r *http.Request, want api.RestoreBackup) (api.RestorePlan, error) {
		return h.Requests.PreviewRestore(r.Context(), want)
	}))
	mux.HandleFunc("POST "+api.PathTasks+"/{id}/undo", write(h, func(r *http.Request, _ struct{}) (api.Task, error) {
		return h.Requests.Undo(r.Context(), r.PathValue("id"))
	}))
}
