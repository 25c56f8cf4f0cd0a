package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// maxBody bounds a request.
const maxBody = 1 << 20

// NewHandler makes the handler of the whole API.
func NewHandler(b Backend) http.Handler {
	if b.Logger == nil {
		b.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handler{Backend: b}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+api.PathStatus, read(h, func(r *http.Request) (api.Status, error) { return b.Members.Status(r.Context()) }))
	mux.HandleFunc("GET "+api.PathOverview, read(h, func(r *http.Request) (api.Overview, error) { return b.Members.Overview(r.Context()) }))
	mux.HandleFunc("GET "+api.PathView, read(h, func(r *http.Request) (api.View, error) { return b.Members.View(r.Context()) }))
	mux.HandleFunc("GET "+api.PathMembers, read(h, h.members))
	mux.HandleFunc("GET "+api.PathFences, read(h, func(r *http.Request) ([]api.Fence, error) { return b.Recoveries.Fences(r.Context()) }))
	mux.HandleFunc("GET "+api.PathRecoveries, read(h, func(r *http.Request) ([]api.Recovery, error) { return b.Recoveries.Recoveries(r.Context()) }))
	mux.HandleFunc("POST "+api.PathRecoveries+"/retry", write(h, h.retryRecovery))
	mux.HandleFunc("POST "+api.PathRecoveries+"/drop", write(h, h.dropRecovery))
	mux.HandleFunc("POST "+api.PathFences, write(h, h.raiseFence))
	mux.HandleFunc("POST "+api.PathFences+"/lower", write(h, h.lowerFence))
	mux.HandleFunc("POST "+api.PathNodes+"/forget", write(h, h.forgetNode))
	mux.HandleFunc("POST "+api.PathNodes+"/replace", write(h, h.replaceNode))
	mux.HandleFunc("GET "+api.PathTasks, read(h, h.tasks))
	mux.HandleFunc("GET "+api.PathTasks+"/{id}", read(h, func(r *http.Request) (api.Task, error) { return b.Tasks.Task(r.Context(), r.PathValue("id")) }))
	mux.HandleFunc("GET "+api.PathTasks+"/{id}/log", read(h, func(r *http.Request) (api.TaskLog, error) { return b.Tasks.TaskLog(r.Context(), r.PathValue("id")) }))
	mux.HandleFunc("POST "+api.PathTasks+"/{id}/cancel", write(h, h.cancel))
	mux.HandleFunc("GET "+api.PathBackups, read(h, h.backups))
	mux.HandleFunc("GET "+api.PathBackups+"/{id}", read(h, func(r *http.Request) (api.Backup, error) { return b.Backups.Backup(r.Context(), r.PathValue("id")) }))
	mux.HandleFunc("POST "+api.PathBackups, write(h, h.createBackup))
	mux.HandleFunc("POST "+api.PathBackups+"/{id}/restore", write(h, h.restore))
	h.routeKeeping(mux)
	h.routeRecurring(mux)
	h.routeAutonomous(mux)
	h.routeStorages(mux)
	h.keyringRoutes(mux)
	h.routeRestores(mux)
	h.routeNotify(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, &api.Error{Code: api.CodeNotFound, Message: "the daemon does not know " + r.Method + " " + r.URL.Path,
			Hint: "the command and the daemon may be of different versions: compare fencepost version with fencepost status"})
	})
	return mux
}

type handler struct{ Backend }

func (h *handler) members(r *http.Request) ([]api.Member, error) {
	v, err := h.Members.View(r.Context())
	return v.Members, err
}

func (h *handler) tasks(r *http.Request) ([]api.Task, error) {
	f, err := api.ParseTaskFilter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return h.Tasks.Tasks(r.Context(), f)
}

func (h *handler) backups(r *http.Request) ([]api.Backup, error) {
	f, err := api.ParseBackupFilter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return h.Backups.Backups(r.Context(), f)
}

func (h *handler) cancel(r *http.Request, _ struct{}) (api.Task, error) {
	return h.Tasks.Cancel(r.Context(), r.PathValue("id"))
}

func (h *handler) createBackup(r *http.Request, want api.CreateBackup) (api.Task, error) {
	if want.Database == "" {
		return api.Task{}, &api.Error{Code: api.CodeUsage, Message: "no database was named"}
	}
	return h.Requests.CreateBackup(r.Context(), want)
}

func (h *handler) restore(r *http.Request, want api.RestoreBackup) (api.Task, error) {
	id := r.PathValue("id")
	if want.Backup != "" && want.Backup != id {
		return api.Task{}, &api.Error{Code: api.CodeUsage, Message: "path and body name different backups"}
	}
	want.Backup = id
	return h.Requests.Restore(r.Context(), want)
}

// write is the handler of a request with a body.
func write[Q, A any](h *handler, do func(*http.Request, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var want Q
		if err := readBody(w, r, &want); err != nil {
			h.fail(w, r, err)
			return
		}
		got, err := do(r, want)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		body, err := encode(got)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		sendBytes(w, http.StatusAccepted, body)
	}
}

// readBody is strict: a wish that this version does not know must not be passed over.
func readBody(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return &api.Error{Code: api.CodeUsage, Message: "read the request: " + err.Error()}
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &api.Error{Code: api.CodeUsage, Message: "the request is not understood: " + err.Error(),
			Hint: "the command and the daemon may be of different versions"}
	}
	return nil
}

func sendBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the reader may be gone; there is nobody to tell
}

// fail is the one way out for errors.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := h.translate(err)
	if e.Code == api.CodeFailed {
		h.Logger.WarnContext(r.Context(), "admin request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	body, err := json.Marshal(e)
	if err != nil {
		body = []byte(`{"code":"failed","message":"the error could not be encoded"}`)
	}
	sendBytes(w, e.Code.HTTPStatus(), body)
}

func (h *handler) translate(err error) *api.Error {
	var e *api.Error
	if errors.As(err, &e) {
		return e
	}
	if h.Translate != nil {
		if e := h.Translate(err); e != nil {
			return e
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &api.Error{Code: api.CodeUnavailable, Message: "the daemon could not answer in time: " + err.Error(), Hint: "try again"}
	}
	return &api.Error{Code: api.CodeFailed, Message: err.Error()}
}
