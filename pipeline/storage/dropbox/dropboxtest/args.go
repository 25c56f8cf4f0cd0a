package dropboxtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

type cursorArg struct {
	SessionID string `json:"session_id"`
	Offset    int64  `json:"offset"`
}

type commitArg struct {
	Path           string    `json:"path"`
	Mode           modeArg   `json:"mode"`
	Autorename     bool      `json:"autorename"`
	ClientModified time.Time `json:"client_modified"`
	StrictConflict bool      `json:"strict_conflict"`
}

// modeArg is a union: a text, or an object with a tag.
type modeArg struct {
	Tag    string `json:".tag"`
	Update string `json:"update"`
}

func (m *modeArg) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &m.Tag) == nil {
		return nil
	}
	type plain modeArg
	return json.Unmarshal(b, (*plain)(m))
}

// arg is every argument of every route.
type arg struct {
	Path        string     `json:"path"`
	Recursive   bool       `json:"recursive"`
	Limit       int        `json:"limit"`
	Cursor      rawCursor  `json:"cursor"`
	Commit      *commitArg `json:"commit"`
	Close       bool       `json:"close"`
	ContentHash string     `json:"content_hash"`
	ParentRev   string     `json:"parent_rev"`
}

// rawCursor is the cursor of a listing (a text) or of an upload session.
type rawCursor struct {
	text    string
	session cursorArg
}

func (c *rawCursor) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &c.text) == nil {
		return nil
	}
	return json.Unmarshal(b, &c.session)
}

// contentRoutes are those whose argument is in a header.
var contentRoutes = map[string]bool{
	"files/upload": true, "files/download": true,
	"files/upload_session/start": true, "files/upload_session/append_v2": true, "files/upload_session/finish": true,
}

// arg reads the argument of a request.
func (r *request) arg() (arg, error) {
	var a arg
	var text []byte
	if contentRoutes[r.route] {
		header := r.Header.Get("Dropbox-API-Arg")
		if i := strings.IndexFunc(header, func(c rune) bool { return c >= 0x7f || c < ' ' }); i >= 0 {
			return a, fmt.Errorf("HTTP header \"Dropbox-API-Arg\": could not decode input as JSON (byte %d is not ASCII)", i)
		}
		text = []byte(header)
	} else {
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			return a, errors.New("bad HTTP \"Content-Type\" header, expecting \"application/json\"")
		}
		var err error
		if text, err = r.content(); err != nil {
			return a, err
		}
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("request body: could not decode input as JSON: %w", err)
	}
	return a, nil
}

// path is the path in the argument, if there is one, for the record of requests.
func (r *request) path() string {
	if r.Method != http.MethodPost || routes[r.route].do == nil {
		return ""
	}
	a, err := r.arg()
	switch {
	case err != nil:
		return ""
	case a.Commit != nil:
		return a.Commit.Path
	}
	return a.Path
}

// malformed tells whether the API knows no such path.
func malformed(path string) bool {
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return true
	}
	for element := range strings.SplitSeq(path[1:], "/") {
		if element == "" || element == "." || element == ".." || len([]rune(element)) > 255 || strings.ContainsAny(element, "\\\x00\x7f") ||
			strings.TrimRight(element, " .") != element {
			return true
		}
	}
	return false
}

// disallowed are names that the service does not keep.
func disallowed(path string) bool {
	switch name := fold(base(path)); {
	case name == "desktop.ini", name == "thumbs.db", name == ".ds_store", name == "icon\r", name == ".dropbox", name == ".dropbox.attr":
		return true
	case strings.HasPrefix(name, "~$"), strings.HasPrefix(name, ".~"), strings.HasPrefix(name, "~") && strings.HasSuffix(name, ".tmp"):
		return true
	}
	return false
}
