package admin

import (
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// routeKeeping adds the routes of Keeping.
func (h *handler) routeKeeping(mux *http.ServeMux) {
	backup := "POST " + api.PathBackups + "/{id}/"
	mux.HandleFunc(backup+"delete", write(h, func(r *http.Request, want api.DeleteBackup) (api.Task, error) {
		return h.Keeping.DeleteBackup(r.Context(), r.PathValue("id"), want)
	}))
	mux.HandleFunc(backup+"undelete", write(h, func(r *http.Request, _ struct{}) (api.Backup, error) {
		return h.Keeping.UndeleteBackup(r.Context(), r.PathValue("id"))
	}))
	mux.HandleFunc(backup+"mark", write(h, h.markBackup))
	mux.HandleFunc(backup+"verify", write(h, func(r *http.Request, want api.VerifyBackup) (api.Task, error) {
		return h.Keeping.VerifyBackup(r.Context(), r.PathValue("id"), want)
	}))
	mux.HandleFunc(backup+"replicate", write(h, func(r *http.Request, want api.ReplicateBackup) (api.Task, error) {
		return h.Keeping.ReplicateBackup(r.Context(), r.PathValue("id"), want)
	}))
}

// maxNote bounds a note, in bytes.
const maxNote = 1024

func (h *handler) markBackup(r *http.Request, want api.MarkBackup) (api.Backup, error) {
	switch {
	case want.Pinned == nil && want.Accepted == nil && want.Note == nil:
		return api.Backup{}, &api.Error{Code: api.CodeUsage, Message: "the request changes nothing: give pinned, accepted or note"}
	case want.Note != nil && len(*want.Note) > maxNote:
		return api.Backup{}, &api.Error{Code: api.CodeUsage, Message: "note: it is too long: at most 1024 bytes"}
	}
	return h.Keeping.MarkBackup(r.Context(), r.PathValue("id"), want)
}
