package dropboxtest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// cursor is a place in a listing.
type cursor struct {
	folder    string
	recursive bool
	page      int
	left      []map[string]any
	since     int64 // number of the journal up to which the listing has shown what is
}

func (s *Server) list(r *request, a arg) error {
	if a.Path != "" && malformed(a.Path) {
		return conflict("path/malformed_path")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Path != "" {
		switch e := s.tree.find(a.Path); {
		case e == nil:
			return conflict("path/not_found")
		case !e.folder:
			return conflict("path/not_folder")
		}
	}
	c := &cursor{folder: fold(a.Path), recursive: a.Recursive, since: s.serial}
	c.page = s.o.PageSize
	if a.Limit > 0 {
		c.page = min(c.page, a.Limit)
	}
	found := s.tree.below(a.Path, a.Recursive)
	if a.Recursive && a.Path != "" {
		found = append(found, s.tree.find(a.Path)) // the folder itself is shown too
	}
	shuffle(found)
	for _, e := range found {
		c.left = append(c.left, e.file(true))
	}
	s.page(r, c)
	return nil
}

func (s *Server) listContinue(r *request, a arg) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cursors[a.Cursor.text]
	if c == nil {
		return conflict("reset")
	}
	delete(s.cursors, a.Cursor.text) // a page that was lost is asked for with the same cursor: see page
	again := *c
	again.left = slices.Clone(c.left)
	s.cursors[a.Cursor.text] = &again
	s.page(r, c)
	return nil
}

// page answers the next page. When all is shown, what has changed meanwhile follows.
func (s *Server) page(r *request, c *cursor) {
	if len(c.left) == 0 {
		c.left = s.changes(c)
		c.since = s.serial
	}
	n := min(c.page, len(c.left))
	shown := append([]map[string]any{}, c.left[:n]...)
	next := &cursor{folder: c.folder, recursive: c.recursive, page: c.page, since: c.since, left: c.left[n:]}
	id := fmt.Sprintf("cursor-%d", s.next())
	s.cursors[id] = next
	more := len(next.left) > 0 || len(s.changes(next)) > 0
	r.answer.json(http.StatusOK, map[string]any{"entries": shown, "cursor": id, "has_more": more})
}

// changes are what has become of the folder since the cursor: files that were made or replaced, and deleted ones.
func (s *Server) changes(c *cursor) []map[string]any {
	type change struct {
		seq  int64
		what map[string]any
	}
	var all []change
	for _, e := range s.tree.below(c.folder, c.recursive) {
		if e.seq > c.since {
			all = append(all, change{e.seq, e.file(true)})
		}
	}
	for path, seq := range s.tree.gone {
		if seq > c.since && strings.HasPrefix(path, c.folder+"/") {
			all = append(all, change{seq, map[string]any{".tag": "deleted", "name": base(path), "path_lower": path, "path_display": path}})
		}
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Compare(a.seq, b.seq) })
	out := make([]map[string]any, len(all))
	for i, a := range all {
		out[i] = a.what
	}
	return out
}
