package admin

import (
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

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
