package web

import (
	"bytes"
	"cmp"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/admin"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Config is what the pages stand on.
type Config struct {
	API    *admin.API // required
	Group  string     // name of the group, for titles
	Node   string     // that answers
	Now    func() time.Time
	Logger *slog.Logger // of what could not be shown; default: none
}

// Site serves the pages. It is made once and safe for concurrent use; nothing of it has to be stopped.
type Site struct {
	cfg    Config
	mux    *http.ServeMux
	sheets map[string]*template.Template // by name of the file
	assets assets
	first  overviewKeeper
}

// New makes the site. It panics when an embedded template is wrong, which a test would have seen.
func New(cfg Config) *Site {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Site{cfg: cfg, mux: http.NewServeMux(), assets: loadAssets()}
	s.sheets = s.parse()
	for _, v := range s.Views() {
		s.mux.HandleFunc("GET "+v.Path, s.serveView(v))
	}
	for _, d := range s.Deeds() {
		s.mux.HandleFunc("POST "+d.Path, s.serveDeed(d))
	}
	s.mux.HandleFunc("GET /assets/{name}", s.assets.serve)
	s.mux.HandleFunc("/", s.unknown)
	return s
}

// ServeHTTP implements http.Handler. Who asks comes in the request's context (accounts.With).
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(usualWithin)) // where there is no connection, there is no deadline
	s.mux.ServeHTTP(w, r)
}

const usualWithin = 2 * time.Minute

// visit is one request, and who makes it.
type visit struct {
	*Site
	w     http.ResponseWriter
	r     *http.Request
	who   accounts.Actor // nobody: empty
	token string         // of the session's forms
	key   string         // of a form that makes something; see deed
	form  url.Values     // of a deed; empty for a view
	wrong *api.Error     // why a deed did not work, when its page is shown again
}

func (s *Site) visit(w http.ResponseWriter, r *http.Request) *visit {
	who, _ := accounts.Of(r.Context())
	return &visit{Site: s, w: w, r: r, who: who, token: admin.FormToken(r)}
}

// may tells whether who asks has the role: what they may not do is not offered. Whether it is done, the API decides.
func (v *visit) may(role api.Role) bool { return v.who.Role.May(role) }

// operates tells whether who asks is an operator of these databases, of all or because they are bound to their labels.
func (v *visit) operates(sources, targets []string) bool {
	return v.cfg.API.Operates(v.r, sources, targets)
}

// operated are those of a list of databases whose backups who asks may make and use.
func (v *visit) operated(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !v.operates([]string{name}, nil) })
}

// serveView shows a page to who may see it.
func (s *Site) serveView(page View) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := s.visit(w, r)
		if page.Least != "" {
			if err := admin.Allow(r, page.Least, false); err != nil {
				v.refused(err)
				return
			}
		}
		v.show(page)
	}
}

// show shows a page, or what is wrong with it.
func (v *visit) show(page View) {
	if page.whole != nil {
		page.whole(v)
		return
	}
	data, err := page.data(v)
	if errors.Is(err, errShown) {
		return
	}
	if err != nil {
		v.refused(err)
		return
	}
	status := http.StatusOK
	if v.wrong != nil {
		status = v.wrong.Code.HTTPStatus()
	}
	v.send(status, page, data)
}

// refused shows an error instead of a page. Who is nobody is led to the log-in.
func (v *visit) refused(err error) {
	e := problemOf(err)
	if e.Code == api.CodeUnauthorized && v.r.Method == http.MethodGet {
		v.toLogIn()
		return
	}
	v.send(e.Code.HTTPStatus(), View{Title: e.Problem().Title, sheet: "problem"}, e)
}

// Refuse answers a request that a Front does not let in.
func (s *Site) Refuse(w http.ResponseWriter, r *http.Request, e *api.Error) { s.visit(w, r).refused(e) }

func (s *Site) unknown(w http.ResponseWriter, r *http.Request) {
	v := s.visit(w, r)
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, HEAD, POST")
		v.refused(&api.Error{Code: api.CodeMethod, Message: "pages are not asked for with " + r.Method})
		return
	}
	v.refused(&api.Error{Code: api.CodeNotFound, Message: "there is no such page", Hint: "what you looked for may be in the menu"})
}

// send shows a page.
func (v *visit) send(status int, page View, data any) {
	text, err := v.render(page, data)
	if err != nil {
		v.cfg.Logger.ErrorContext(v.r.Context(), "web: a page was not rendered", "page", page.sheet, "error", err)
		http.Error(v.w, "This page could not be rendered; the node's log says why.", http.StatusInternalServerError)
		return
	}
	v.write(status, text)
}

// render makes a page whole before the first byte of it is sent.
func (v *visit) render(page View, data any) ([]byte, error) {
	var b bytes.Buffer
	err := v.sheets[page.sheet].ExecuteTemplate(&b, "layout", v.frame(page, data))
	return b.Bytes(), err
}

func (v *visit) write(status int, text []byte) {
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(text) // the reader may be gone; there is nobody to tell
}

// lead sends the browser on to a page of ours.
func (v *visit) lead(to string) { http.Redirect(v.w, v.r, to, http.StatusSeeOther) }

// toLogIn leads to the log-in, and back afterwards. A browser that follows a link of another site leaves the session's
// cookie out; asked once more, by a page of ours, it sends it.
func (v *visit) toLogIn() {
	if v.r.Header.Get("Sec-Fetch-Site") == "cross-site" && v.r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		v.send(http.StatusOK, View{Title: "One moment", sheet: "again"}, v.r.URL.RequestURI())
		return
	}
	v.lead(cmp.Or(logInPath(v.r.URL.RequestURI()), pathLogIn))
}
