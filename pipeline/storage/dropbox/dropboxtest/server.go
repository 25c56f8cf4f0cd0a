package dropboxtest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// What an emulator accepts when Options do not say otherwise.
const (
	DefaultAppKey       = "app-key"
	DefaultRefreshToken = "refresh-token"
	// Scopes are the rights that a storage needs, with spaces between them.
	Scopes = "account_info.read files.metadata.read files.metadata.write files.content.read files.content.write"
)

// Options say what the emulator is like. Zero values are defaults.
type Options struct {
	Dir          string           // a directory for contents. Required
	AppKey       string           // the only app that is known. Default DefaultAppKey
	RefreshToken string           // the one that is accepted from the start. Default DefaultRefreshToken
	Scopes       string           // what tokens may do. Default Scopes
	TokenLife    time.Duration    // of access tokens. Default 4h
	TokenCalls   int              // requests after which an access token counts as expired. 0: no limit
	PageSize     int              // most entries of a page, whatever is asked for. Default 500
	MaxRequest   int64            // bytes of one request. Default 150 MiB
	Quota        int64            // bytes of the account. Default 2 TiB
	SessionLife  time.Duration    // of upload sessions. Default 168h
	Now          func() time.Time // default time.Now
}

// Request is one request that came, for tests to look at.
type Request struct {
	Route  string // "files/upload_session/start", "oauth2/token", …
	Path   string // the path in its argument, if any
	Status int    // of the answer; 0: there was none
}

// Server is an emulator. It is an http.Handler. Made by New.
type Server struct {
	o Options

	mu       sync.Mutex
	tokens   map[string]*token // access tokens
	grants   map[string]bool   // refresh tokens
	codes    map[string]string // authorization codes and their challenges
	tree     tree
	sessions map[string]*session
	cursors  map[string]*cursor
	faults   []*Fault
	requests []Request
	serial   int64
	changed  chan struct{} // closed and made anew with each request
}

// New makes an empty account.
func New(o Options) (*Server, error) {
	if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
		return nil, errors.Join(errors.New("emulator: Options.Dir is no directory"), err)
	}
	o.AppKey = cmp.Or(o.AppKey, DefaultAppKey)
	o.RefreshToken = cmp.Or(o.RefreshToken, DefaultRefreshToken)
	o.Scopes = cmp.Or(o.Scopes, Scopes)
	o.TokenLife = cmp.Or(o.TokenLife, 4*time.Hour)
	o.PageSize = cmp.Or(o.PageSize, 500)
	o.MaxRequest = cmp.Or(o.MaxRequest, 150<<20)
	o.Quota = cmp.Or(o.Quota, 2<<40)
	o.SessionLife = cmp.Or(o.SessionLife, 7*24*time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Server{
		o: o, tokens: map[string]*token{}, grants: map[string]bool{o.RefreshToken: true}, codes: map[string]string{},
		tree: newTree(), sessions: map[string]*session{}, cursors: map[string]*cursor{}, changed: make(chan struct{}),
	}, nil
}

// Inject adds faults.
func (s *Server) Inject(faults ...*Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Heal takes all faults away. A request that waits in one goes on waiting.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// String lists the faults, one a line, with how often each was in force.
func (s *Server) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := make([]string, len(s.faults))
	for i, f := range s.faults {
		lines[i] = fmt.Sprintf("%v [%d hits]", f, f.Hits())
	}
	return strings.Join(lines, "\n")
}

// Requests returns what came so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Count returns how many requests of a route came, faults included.
func (s *Server) Count(route string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Route == route {
			n++
		}
	}
	return n
}

// Changed returns a channel that is closed when the next request has been answered.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Files returns the paths of all files, in lower case, in order.
func (s *Server) Files() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.paths()
}

// Content returns what a file holds, whatever the case of path.
func (s *Server) Content(path string) ([]byte, error) {
	s.mu.Lock()
	e := s.tree.entries[fold(path)]
	s.mu.Unlock()
	if e == nil || e.folder {
		return nil, fmt.Errorf("emulator: no file %s", path)
	}
	return os.ReadFile(e.blob)
}

// Add puts a file that no client has put. It panics when it cannot be written.
func (s *Server) Add(path string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, u, err := s.begin()
	if err == nil {
		err = u.take(content)
	}
	if err == nil {
		err = s.commit(&request{answer: &answer{w: nowhere{}, cut: -1}}, u, commitArg{Path: path, Mode: modeArg{Tag: "overwrite"}})
	}
	if err != nil {
		panic(err)
	}
	delete(s.sessions, id)
}

// Open returns the number of upload sessions that are neither finished nor expired, and the bytes in them.
func (s *Server) Open() (sessions int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.sessions {
		if !s.expired(u) {
			sessions, bytes = sessions+1, bytes+u.size
		}
	}
	return sessions, bytes
}

// ExpireSessions makes all upload sessions vanish.
func (s *Server) ExpireSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

// ExpireTokens makes all access tokens expire.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		t.expires = time.Time{}
	}
}

// Revoke makes all tokens worthless, those for refreshing included, as when a user disconnects the app.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
	clear(s.grants)
}

// next returns a number that was not returned before. Under mu.
func (s *Server) next() int64 {
	s.serial++
	return s.serial
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route := strings.TrimPrefix(strings.Trim(r.URL.Path, "/"), "2/")
	a := &answer{w: w, cut: -1}
	req := &request{Request: r, route: route, answer: a}
	defer a.done() // aborts the connection when a fault wants it so
	defer s.note(req)
	for _, f := range s.inForce(req) {
		if f.strike(req); a.over {
			return
		}
	}
	switch {
	case req.late != nil:
		a.abort = true
		late := req.again()
		req.late.whenOpen(func() { s.carryOut(late) })
	case req.unsure:
		s.carryOut(req.again())
		a.text(http.StatusServiceUnavailable, "upstream timed out")
	case req.twice:
		second := req.again()
		s.carryOut(req)
		s.carryOut(second)
	default:
		s.carryOut(req)
	}
}

func (s *Server) inForce(r *request) []*Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hit []*Fault
	for _, f := range s.faults {
		if f.matches(r) {
			hit = append(hit, f)
		}
	}
	return hit
}

// note keeps the request and wakes who waits for Changed.
func (s *Server) note(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{Route: r.route, Path: r.path(), Status: r.answer.status})
	close(s.changed)
	s.changed = make(chan struct{})
}

// request is one request in work, and what faults have made of it.
type request struct {
	*http.Request
	route  string
	answer *answer
	body   []byte // when read
	read   bool

	twice, unsure bool
	late          *Gate
}

// content reads the body, once.
func (r *request) content() ([]byte, error) {
	if !r.read {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.body, r.read = b, true
	}
	return r.body, nil
}

// again is the same request, whose answer goes nowhere.
func (r *request) again() *request {
	_, _ = r.content()
	return &request{Request: r.Request, route: r.route, body: r.body, read: true, answer: &answer{w: nowhere{}, cut: -1}}
}
