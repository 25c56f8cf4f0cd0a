package dropboxtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// answer is what goes back. A fault may cut it short or keep it.
type answer struct {
	w      http.ResponseWriter
	status int
	over   bool  // nothing more is to be done
	abort  bool  // the connection ends without the (rest of the) answer
	lost   bool  // what is written goes nowhere
	cut    int64 // bytes of the body that pass before abort; -1: all
}

// done ends the connection if that was wanted.
func (a *answer) done() {
	if a.abort || a.lost {
		panic(http.ErrAbortHandler)
	}
}

func (a *answer) header() http.Header { return a.w.Header() }

func (a *answer) start(status int) {
	if a.lost {
		return
	}
	a.status = status
	a.w.WriteHeader(status)
}

// Write implements io.Writer for bodies.
func (a *answer) Write(p []byte) (int, error) {
	if a.lost {
		return len(p), nil
	}
	if a.cut >= 0 && int64(len(p)) > a.cut {
		_, _ = a.w.Write(p[:a.cut])
		if f, ok := a.w.(http.Flusher); ok {
			f.Flush()
		}
		a.abort = true
		panic(http.ErrAbortHandler)
	}
	if a.cut >= 0 {
		a.cut -= int64(len(p))
	}
	return a.w.Write(p)
}

func (a *answer) json(status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b, status = []byte(err.Error()), http.StatusInternalServerError
	}
	a.header().Set("Content-Type", "application/json")
	a.start(status)
	_, _ = a.Write(b)
}

func (a *answer) text(status int, format string, args ...any) {
	a.header().Set("Content-Type", "text/plain; charset=utf-8")
	a.start(status)
	_, _ = fmt.Fprintf(a, format, args...)
}

// fail answers an error of the API.
func (a *answer) fail(e apiErr) {
	if e.status == http.StatusBadRequest {
		a.text(e.status, "%s", e.summary)
		return
	}
	a.json(e.status, map[string]any{"error_summary": e.summary, "error": e.body})
}

// apiErr is an error of the API: a status and a union of tags.
type apiErr struct {
	status  int
	summary string
	body    any
}

func (e apiErr) Error() string { return e.summary }

// tagged is an error by its tags, outermost first: "path/not_found" is {".tag": "path", "path": {".tag": "not_found"}}.
// Fields are those of the innermost.
func tagged(status int, tags string, fields map[string]any) apiErr {
	list := strings.Split(tags, "/")
	var body map[string]any
	for i := len(list) - 1; i >= 0; i-- {
		outer := map[string]any{".tag": list[i]}
		if body == nil {
			for k, v := range fields {
				outer[k] = v
			}
		} else {
			outer[list[i]] = body
		}
		body = outer
	}
	return apiErr{status: status, summary: tags + "/" + dots(tags), body: body}
}

// dots are what the real summaries end with: their number varies, so that nobody compares the text.
func dots(tags string) string { return strings.Repeat(".", len(tags)%4) }

func conflict(tags string) apiErr { return tagged(http.StatusConflict, tags, nil) }

func badRequest(format string, args ...any) apiErr {
	return apiErr{status: http.StatusBadRequest, summary: fmt.Sprintf(format, args...)}
}

// nowhere is the answer to a request that nobody waits for.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}
