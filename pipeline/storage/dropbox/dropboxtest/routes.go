package dropboxtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// route is a call of the API.
type route struct {
	scope string
	do    func(s *Server, r *request, a arg) error
}

var routes = map[string]route{
	"files/upload":                   {"files.content.write", (*Server).upload},
	"files/upload_session/start":     {"files.content.write", (*Server).sessionStart},
	"files/upload_session/append_v2": {"files.content.write", (*Server).sessionAppend},
	"files/upload_session/finish":    {"files.content.write", (*Server).sessionFinish},
	"files/download":                 {"files.content.read", (*Server).download},
	"files/get_metadata":             {"files.metadata.read", (*Server).metadata},
	"files/list_folder":              {"files.metadata.read", (*Server).list},
	"files/list_folder/continue":     {"files.metadata.read", (*Server).listContinue},
	"files/delete_v2":                {"files.content.write", (*Server).remove},
	"users/get_space_usage":          {"account_info.read", (*Server).space},
}

// carryOut does what a request asks for.
func (s *Server) carryOut(r *request) {
	switch r.route {
	case "oauth2/token":
		s.giveToken(r)
		return
	case "oauth2/authorize":
		s.authorize(r)
		return
	}
	call, ok := routes[r.route]
	if !ok || r.Method != http.MethodPost {
		r.answer.text(http.StatusNotFound, "unknown route %s", r.route)
		return
	}
	if e := s.allowed(r, call.scope); e != nil {
		r.answer.fail(*e)
		return
	}
	var a arg
	if r.route != "users/get_space_usage" {
		var err error
		if a, err = r.arg(); err != nil {
			r.answer.fail(badRequest("Error in call to API function %q: %v", r.route, err))
			return
		}
	}
	switch err := call.do(s, r, a).(type) {
	case nil:
	case apiErr:
		r.answer.fail(err)
	default:
		if r.answer.status == 0 {
			r.answer.text(http.StatusInternalServerError, "%v", err)
		}
	}
}

// bytes are the content of a request, which fits and has the hash that was named.
func (s *Server) bytes(r *request, a arg) ([]byte, error) {
	b, err := r.content()
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > s.o.MaxRequest {
		return nil, conflict("payload_too_large")
	}
	if a.ContentHash != "" && a.ContentHash != hashOf(b) {
		return nil, conflict("content_hash_mismatch")
	}
	return b, nil
}

func (s *Server) upload(r *request, a arg) error {
	b, err := s.bytes(r, a)
	if err != nil {
		return err
	}
	var c commitArg
	if err := json.Unmarshal([]byte(r.Header.Get("Dropbox-API-Arg")), &c); err != nil {
		return badRequest("%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, u, err := s.begin()
	if err != nil {
		return err
	}
	defer delete(s.sessions, id)
	if err := u.take(b); err != nil {
		return err
	}
	return s.commit(r, u, c)
}

func (s *Server) sessionStart(r *request, a arg) error {
	b, err := s.bytes(r, a)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, u, err := s.begin()
	if err != nil {
		return err
	}
	u.closed = a.Close
	if err := u.take(b); err != nil {
		return err
	}
	r.answer.json(http.StatusOK, map[string]any{"session_id": id})
	return nil
}

func (s *Server) sessionAppend(r *request, a arg) error {
	b, err := s.bytes(r, a)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, e := s.lookup(a.Cursor.session)
	switch {
	case e != nil:
		return *e
	case u.closed:
		return conflict("closed")
	}
	u.closed = a.Close
	if err := u.take(b); err != nil {
		return err
	}
	r.answer.json(http.StatusOK, nil)
	return nil
}

func (s *Server) sessionFinish(r *request, a arg) error {
	b, err := s.bytes(r, a)
	if err != nil {
		return err
	}
	if a.Commit == nil {
		return badRequest("finish without commit")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, e := s.lookup(a.Cursor.session)
	if e != nil {
		inner := e.body.(map[string]any)
		return tagged(http.StatusConflict, "lookup_failed/"+inner[".tag"].(string), inner)
	}
	if len(b) > 0 {
		if err := u.take(b); err != nil {
			return err
		}
	}
	if err := s.commit(r, u, *a.Commit); err != nil {
		return err
	}
	delete(s.sessions, a.Cursor.session.SessionID)
	return nil
}

// commit makes a session a file. Under mu.
func (s *Server) commit(r *request, u *session, c commitArg) error {
	switch {
	case malformed(c.Path):
		return conflict("path/malformed_path")
	case disallowed(c.Path):
		return conflict("path/disallowed_name")
	case c.Autorename:
		return badRequest("the emulator renames nothing")
	}
	n, now := s.next(), s.o.Now().UTC()
	e := &entry{
		path: c.Path, id: fmt.Sprintf("id:%d", n), rev: fmt.Sprintf("%015x", n), size: u.size, hash: u.hash.sum(), blob: u.blob,
		client: c.ClientModified, modified: now, seq: n,
	}
	if e.client.IsZero() {
		e.client = now
	}
	made, tags := s.tree.put(e, mode{tag: cmp.Or(c.Mode.Tag, "add"), rev: c.Mode.Update, strict: c.StrictConflict}, s.o.Quota)
	if tags != "" {
		u.hash = rehash(u) // sum has ended it, and the session may be committed again
		return conflict("path/" + tags)
	}
	r.answer.json(http.StatusOK, made.file(false))
	return nil
}

// rehash is the hash of what a session holds, anew.
func rehash(u *session) *contentHash {
	h := newContentHash()
	b, err := os.ReadFile(u.blob)
	if err != nil {
		panic(err) // the emulator's own file
	}
	h.write(b)
	return h
}

func (s *Server) download(r *request, a arg) error {
	s.mu.Lock()
	e := s.tree.find(a.Path)
	s.mu.Unlock()
	switch {
	case e == nil:
		return conflict("path/not_found")
	case e.folder:
		return conflict("path/not_file")
	}
	from := int64(0)
	if h := r.Header.Get("Range"); h != "" {
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(h, "bytes="), "-"), 10, 64)
		if err != nil || n < 0 || n >= e.size {
			r.answer.text(http.StatusRequestedRangeNotSatisfiable, "range %s of %d bytes", h, e.size)
			return nil
		}
		from = n
	}
	f, err := os.Open(e.blob)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	result, err := json.Marshal(e.file(false))
	if err != nil {
		return err
	}
	h := r.answer.header()
	h.Set("Dropbox-API-Result", string(result))
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(e.size-from, 10))
	status := http.StatusOK
	if r.Header.Get("Range") != "" {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, e.size-1, e.size))
		status = http.StatusPartialContent
	}
	r.answer.start(status)
	_, err = io.CopyN(r.answer, f, e.size-from)
	return err
}

func (s *Server) metadata(r *request, a arg) error {
	if a.Path == "" {
		return badRequest("Error in call to API function \"files/get_metadata\": request body: path: The root folder is unsupported.")
	}
	if !strings.HasPrefix(a.Path, "rev:") && malformed(a.Path) {
		return conflict("path/malformed_path")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.tree.find(a.Path)
	if e == nil {
		return conflict("path/not_found")
	}
	r.answer.json(http.StatusOK, e.file(true))
	return nil
}

func (s *Server) remove(r *request, a arg) error {
	if malformed(a.Path) {
		return conflict("path_lookup/malformed_path")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.tree.entries[fold(a.Path)]
	switch {
	case e == nil:
		return conflict("path_lookup/not_found")
	case a.ParentRev != "" && a.ParentRev != e.rev:
		return conflict("path_write/conflict/file")
	}
	s.tree.remove(fold(a.Path), s.next())
	r.answer.json(http.StatusOK, map[string]any{"metadata": e.file(true)})
	return nil
}

func (s *Server) space(r *request, _ arg) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.answer.json(http.StatusOK, map[string]any{"used": s.tree.used, "allocation": map[string]any{".tag": "individual", "allocated": s.o.Quota}})
	return nil
}

// file describes an entry as the API does. Unions carry a tag.
func (e *entry) file(union bool) map[string]any {
	m := map[string]any{"name": base(e.path), "path_lower": fold(e.path), "path_display": e.path, "id": e.id}
	tag := "folder"
	if !e.folder {
		tag = "file"
		m["client_modified"] = e.client.UTC().Format(timeFormat)
		m["server_modified"] = e.modified.Format(timeFormat)
		m["rev"], m["size"], m["is_downloadable"], m["content_hash"] = e.rev, e.size, true, e.hash
	}
	if union {
		m[".tag"] = tag
	}
	return m
}

const timeFormat = "2006-01-02T15:04:05Z"

// shuffle brings entries into an order that means nothing.
func shuffle(e []*entry) {
	rand.Shuffle(len(e), func(i, j int) { e[i], e[j] = e[j], e[i] })
}
