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
	"strings"
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
	cfg     Config
	mux     *http.ServeMux
	sheets  map[string]*template.Template // by name of the file
	assets  assets
	watched string // the resources whose changes are streamed, with spaces between them
	first   overviewKeeper
	sent    sendings
}

// New makes the site. It panics when an embedded template is wrong, which a test would have seen.
func New(cfg Config) *Site {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Site{cfg: cfg, mux: http.NewServeMux(), assets: loadAssets(), watched: strings.Join(cfg.API.Watched(), " ")}
	s.sheets = s.parse()
	for _, v := range s.Views() {
		s.mux.HandleFunc("GET "+v.Path, s.serveView(v))
	}
	views := s.Views()
	for _, d := range s.Deeds() {
		s.mux.HandleFunc("POST "+d.Path, s.serveDeed(d))
		if d.again != "" && !slices.ContainsFunc(views, func(v View) bool { return v.Path == d.Path }) {
			s.mux.HandleFunc("GET "+d.Path, func(w http.ResponseWriter, r *http.Request) { s.visit(w, r).lead(filled(d.again, r)) }) // a form that did not work is looked at again
		}
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
	key   string         // of the form; see deed
	form  url.Values     // of a deed; empty for a view
	wrong *api.Error     // why a deed did not work, when its page is shown again
	note  string         // that such a page begins with, when nothing went wrong
	self  string         // where such a page is looked at again; empty: where it was asked for
	page  []byte         // that a deed has made, instead of leading to one
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
	if e.Code == api.CodeUnauthorized && v.reads() {
		v.toLogIn()
		return
	}
	v.wrong = nil // the page is about nothing else
	v.send(e.Code.HTTPStatus(), View{Path: v.r.URL.Path, Title: e.Problem().Title, sheet: "problem"}, e)
}

// reads tells whether a page is asked for.
func (v *visit) reads() bool { return v.r.Method == http.MethodGet || v.r.Method == http.MethodHead }

// Refuse answers a request that a Front does not let in.
func (s *Site) Refuse(w http.ResponseWriter, r *http.Request, e *api.Error) { s.visit(w, r).refused(e) }

// unknown answers what is no page, and what is not asked for so.
func (s *Site) unknown(w http.ResponseWriter, r *http.Request) {
	v := s.visit(w, r)
	if allowed := s.methods(r); allowed != "" {
		w.Header().Set("Allow", allowed)
		v.refused(&api.Error{Code: api.CodeMethod, Message: "this page is not asked for with " + r.Method, Hint: "it knows " + allowed})
		return
	}
	v.refused(&api.Error{Code: api.CodeNotFound, Message: "there is no such page", Hint: "what you looked for may be in the menu"})
}

// methods are those with which there is such a page, with commas between them.
func (s *Site) methods(r *http.Request) string {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		if _, pattern := s.mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host}); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	return strings.Join(allowed, ", ")
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

// answers makes a page the answer to a deed.
func (v *visit) answers(page View, data any) (to string, err error) {
	v.page, err = v.render(page, data)
	return "", err
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
