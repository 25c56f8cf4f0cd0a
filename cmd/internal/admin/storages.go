package admin

import (
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// routeStorages adds the routes of Storages.
func (h *handler) routeStorages(mux *http.ServeMux) {
	mux.HandleFunc("POST "+api.PathStorages+"/{name}/check", write(h, func(r *http.Request, want api.CheckStorage) ([]api.Finding, error) {
		return h.Storages.CheckStorage(r.Context(), r.PathValue("name"), want)
	}))
	mux.HandleFunc("POST "+api.PathCatalog+"/rebuild", write(h, func(r *http.Request, want api.RebuildCatalog) ([]api.Backup, error) {
		return h.Storages.RebuildCatalog(r.Context(), want)
	}))
}
