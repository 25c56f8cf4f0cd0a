package admin

import (
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Route is one request that the API answers. The table of them is all that is served, described and guarded by.
type Route struct {
	Method  string
	Path    string   // with {name} for a part that says which one is meant
	Action  string   // what it does, unique: backup.create; the audit trail's word for it
	Summary string   // one sentence
	Role    api.Role // least that may; empty: anybody, without log-in
	Query   []Param
	In, Out reflect.Type  // of the bodies of request and answer; nil: none, or not JSON
	Answers string        // media type of a good answer
	Audited bool          // it changes something
	Creates bool          // it takes an Idempotency-Key
	Within  time.Duration // how long an answer may take to be written

	serve http.HandlerFunc
	about about // nil: it is about no database
	weigh weigh // nil: it never needs a second person
	was   was   // nil: there was nothing before, or serve notes it

	operations []string // that it can be, for weigh
}

// Param is one parameter of a query.
type Param struct {
	Name, Type, Meaning string // Type as in JSON Schema
}

const (
	jsonType     = "application/json"
	usualWithin  = 2 * time.Minute
	longestParam = 1024 // bytes of a path's or a query's part
)

// get is a route that reads; it can be waited for.
func get[A any](h *handler, path, action, summary string, do func(*http.Request) (A, error), query ...Param) Route {
	return reading(path, action, summary, query, read(h, do, nil), reflect.TypeFor[A]())
}

// list is a route that reads a list, which comes in pages when a limit is asked for; id names a thing for the next page.
func list[A any](h *handler, path, action, summary string, do func(*http.Request) ([]A, error), id func(A) string, query ...Param) Route {
	next := func(header http.Header, r *http.Request, got []A) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit")) // do has read it, too
		if limit > 0 && len(got) >= limit {
			header.Set("Link", nextPage(r, id(got[len(got)-1])))
		}
	}
	return reading(path, action, summary, query, read(h, do, next), reflect.TypeFor[[]A]())
}

func reading(path, action, summary string, query []Param, serve http.HandlerFunc, out reflect.Type) Route {
	wait := Param{"wait", "string", "a duration such as 20s: with If-None-Match, how long to wait for an answer with another tag"}
	return Route{
		Method: http.MethodGet, Path: path, Action: action, Summary: summary, Role: api.RoleViewer, Query: append(query, wait), Out: out,
		Answers: jsonType, Within: usualWithin, serve: serve,
	}
}

// nextPage is a header Link: the list goes on behind last.
func nextPage(r *http.Request, last string) string {
	q := r.URL.Query()
	q.Set("after", last)
	q.Del("wait")
	return "<" + (&url.URL{Path: r.URL.Path, RawQuery: q.Encode()}).String() + `>; rel="next"`
}

// post is a route that changes something.
func post[Q, A any](h *handler, role api.Role, path, action, summary string, do func(*http.Request, Q) (A, error)) Route {
	r := Route{
		Method: http.MethodPost, Path: path, Action: action, Summary: summary, Role: role, In: reflect.TypeFor[Q](), Out: reflect.TypeFor[A](),
		Answers: jsonType, Audited: true, Within: usualWithin,
	}
	r.serve = write(h, action, do)
	return r
}

// remove is a route that ends something.
func remove(h *handler, role api.Role, path, action, summary string, do func(*http.Request) (api.Ended, error)) Route {
	r := post(h, role, path, action, summary, func(r *http.Request, _ struct{}) (api.Ended, error) { return do(r) })
	r.Method = http.MethodDelete
	return r
}

// by is r for those of that role.
func (r Route) by(role api.Role) Route {
	r.Role = role
	return r
}

// creating is r when it makes something: a repeat with the same key makes nothing again.
func (r Route) creating() Route {
	r.Creates = true
	return r
}

// taking is r when it takes up to within.
func (r Route) taking(within time.Duration) Route {
	r.Within = within
	return r
}

// ask is a route that is told something, and changes nothing.
func ask[Q, A any](h *handler, role api.Role, path, action, summary string, do func(*http.Request, Q) (A, error)) Route {
	r := post(h, role, path, action, summary, do)
	r.Audited, r.serve = false, told(h, do)
	return r
}

// pattern is what a ServeMux knows the route by.
func (r Route) pattern() string { return r.Method + " " + r.Path }

// names are the parts of the path that say which one is meant.
func (r Route) names() (list []string) {
	for part := range strings.SplitSeq(r.Path, "/") {
		if strings.HasPrefix(part, "{") {
			list = append(list, strings.Trim(part, "{}"))
		}
	}
	return list
}

// pages are the parameters of a list that comes in pages.
func pages(of string) []Param {
	return []Param{{"limit", "integer", "at most so many; 0 or none: all"}, {"after", "string", "the page behind this " + of}}
}
