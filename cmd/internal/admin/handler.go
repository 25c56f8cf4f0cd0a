package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/approvals"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

const (
	maxBody    = 1 << 20          // of a request
	bodyWithin = 30 * time.Second // for a request's body to arrive
)

// API answers the whole API, guarded: who asks comes in the request's context (accounts.With), and nobody is nobody.
type API struct {
	h      *handler
	mux    *http.ServeMux
	routes []Route
}

// NewHandler makes the handler of the whole API.
func NewHandler(b Backend) *API {
	if b.Logger == nil {
		b.Logger = slog.New(slog.DiscardHandler)
	}
	if b.Kept == nil || b.Accounts == nil || b.Trail == nil {
		panic("admin: a backend without Accounts, Trail or Kept")
	}
	if b.Now == nil {
		b.Now = time.Now
	}
	h := &handler{Backend: b, tags: newTags(), repeats: repeats{store: b.Kept, now: time.Now}, desk: approvals.New(b.Kept, b.Now)}
	a := &API{h: h, mux: http.NewServeMux()}
	a.routes = h.table()
	h.routes, h.inner = a.routes, a.mux
	h.description = describe(a.routes)
	for _, route := range a.routes {
		a.mux.HandleFunc(route.pattern(), h.guard(route))
	}
	a.mux.HandleFunc("/", a.unknown)
	return a
}

// Routes are all that it answers.
func (a *API) Routes() []Route { return a.routes }

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// unknown answers what no route is for.
func (a *API) unknown(w http.ResponseWriter, r *http.Request) {
	if allowed := a.methods(r); allowed != "" {
		w.Header().Set("Allow", allowed)
		a.h.fail(w, r, &api.Error{Code: api.CodeMethod, Message: "there is no " + r.Method + " " + r.URL.Path, Hint: "there is: " + allowed})
		return
	}
	a.h.fail(w, r, &api.Error{Code: api.CodeNotFound, Message: "the daemon does not know " + r.Method + " " + r.URL.Path,
		Hint: "the command and the daemon may be of different versions: compare fencepost version with fencepost status"})
}

// methods are those with which there is such a path, with commas between them.
func (a *API) methods(r *http.Request) string {
	allowed := ""
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := a.mux.Handler(other); pattern != "/" {
			if allowed != "" {
				allowed += ", "
			}
			allowed += method
		}
	}
	return allowed
}

type handler struct {
	Backend
	tags        *tags
	repeats     repeats
	limiter     accounts.Limiter
	desk        *approvals.Desk
	routes      []Route
	inner       http.Handler // answers all routes, guarded
	description []byte       // of the API, as OpenAPI
}

func (h *handler) members(r *http.Request) ([]api.Member, error) {
	v, err := h.Members.View(r.Context())
	return slices.Concat(v.Members, v.Refused), err
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
		return api.Task{}, &api.Error{Code: api.CodeUsage, Message: "no database was named", Hint: "see databases in the configuration"}
	}
	return h.Requests.CreateBackup(r.Context(), want)
}

func (h *handler) restore(r *http.Request, want api.RestoreBackup) (api.Task, error) {
	want, err := restoreOf(r, want)
	if err != nil {
		return api.Task{}, err
	}
	return h.Requests.Restore(r.Context(), want)
}

// restoreOf is a wish whose backup the path names.
func restoreOf(r *http.Request, want api.RestoreBackup) (api.RestoreBackup, error) {
	id := r.PathValue("id")
	if want.Backup != "" && want.Backup != id {
		return want, &api.Error{Code: api.CodeUsage, Message: "path and body name different backups"}
	}
	want.Backup = id
	return want, nil
}

// told is the handler of a request with a body that changes nothing.
func told[Q, A any](h *handler, do func(*http.Request, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var want Q
		if err := readBody(w, r, &want); err != nil {
			h.fail(w, r, err)
			return
		}
		got, err := do(r, want)
		answer(h, w, r, http.StatusOK, got, err)
	}
}

// write is the handler of a request that changes something: it is in the audit trail before it is tried, and again when it
// is known what became of it.
func write[Q, A any](h *handler, action string, do func(*http.Request, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var want Q
		if err := readBody(w, r, &want); err != nil {
			h.fail(w, r, err)
			return
		}
		got, err := recorded(h, r, action, want, func(r *http.Request) (A, error) { return do(r, want) })
		answer(h, w, r, http.StatusAccepted, got, err)
	}
}

// answer sends what was got, or the error.
func answer[A any](h *handler, w http.ResponseWriter, r *http.Request, status int, got A, err error) {
	if err != nil {
		h.fail(w, r, err)
		return
	}
	body, err := encode(got)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	sendBytes(w, status, body)
}

// readBody is strict: a wish that this version does not know must not be passed over.
func readBody(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := wholeBody(w, r)
	if err != nil {
		return err
	}
	return understood(r, body, into)
}

// understood takes a request's body apart.
func understood(r *http.Request, body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return &api.Error{Code: api.CodeUnsupported, Message: "the request is not said to be JSON", Hint: "set the header Content-Type to application/json"}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &api.Error{Code: api.CodeUsage, Message: "the request is not understood: " + err.Error(),
			Hint: "the command and the daemon may be of different versions"}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &api.Error{Code: api.CodeUsage, Message: "the request is not understood: there is more than one JSON value in it"}
	}
	return nil
}

func sendBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the reader may be gone; there is nobody to tell
}

// fail is the one way out for errors.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := h.translate(err)
	if e.Code == api.CodeFailed {
		h.Logger.WarnContext(r.Context(), "admin request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	SendProblem(w, e)
}

// SendProblem answers with an error.
func SendProblem(w http.ResponseWriter, e *api.Error) {
	body, err := json.Marshal(e)
	if err != nil {
		body = []byte(`{"code":"failed","detail":"the error could not be encoded"}`)
	}
	switch e.Code {
	case api.CodeUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="fencepost"`)
	case api.CodeUnavailable, api.CodeLeaseLost, api.CodeBusy:
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", api.ProblemType)
	w.WriteHeader(e.Code.HTTPStatus())
	_, _ = w.Write(append(body, '\n')) // as in sendBytes
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
	if errors.Is(err, kept.ErrConflict) { // others were faster each time
		return &api.Error{Code: api.CodeBusy, Message: err.Error(), Hint: "many change something at the same time; nothing was done: try again"}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &api.Error{Code: api.CodeUnavailable, Message: "the daemon could not answer in time: " + err.Error(), Hint: "try again"}
	}
	return &api.Error{Code: api.CodeFailed, Message: err.Error()}
}
