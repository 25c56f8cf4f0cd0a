package web

import (
	"crypto/rand"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

const (
	fieldToken = "form_token" // the session's
	fieldKey   = "key"        // drawn for each form that makes something
	maxForm    = 64 << 10
	formWithin = 30 * time.Second // for a form to arrive
)

// Deed is a form that was sent: a change.
type Deed struct {
	Path   string   // of the page that takes it
	Action string   // of the route of the API that carries it out
	Fields []string // that the form may hold, beside token and key
	Within time.Duration

	do    func(v *visit) (to string, err error) // where it leads when it worked
	again string                                // path of the view that shows the form when it did not; empty: the problem alone
}

// serveDeed reads the form and has it carried out.
func (s *Site) serveDeed(d Deed) http.HandlerFunc {
	again := func(v *visit) {
		for _, page := range s.Views() {
			if page.Path == d.again {
				v.show(page)
				return
			}
		}
		v.refused(v.wrong)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		v := s.visit(w, r)
		if d.Within > 0 {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d.Within)) // as in ServeHTTP
		}
		form, err := readForm(w, r, d.Fields)
		if err != nil {
			v.refused(err)
			return
		}
		v.form, v.key = form, form.Get(fieldKey)
		to, err := d.do(v)
		switch {
		case err == nil && to != "":
			v.lead(to)
		case err == nil: // it has shown the answer itself
		default:
			v.wrong = problemOf(err)
			if v.wrong.Code == api.CodeNeedsApproval {
				v.lead(approvalPage(v.wrong.Approval, "ask"))
				return
			}
			if v.who.Name == "" && d.Action != actionLogIn || v.wrong.Code == api.CodeForbidden {
				v.refused(v.wrong)
				return
			}
			again(v)
		}
	}
}

// readForm is strict, as the API is: what is not known is not passed over.
func readForm(w http.ResponseWriter, r *http.Request, fields []string) (url.Values, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, &api.Error{Code: api.CodeUnsupported, Message: "the request is no form of this page"}
	}
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Now().Add(formWithin)) // as in ServeHTTP
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	_ = deadlines.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &api.Error{Code: api.CodeTooLarge, Message: "the form has more than 64 KiB"}
	case err != nil:
		return nil, &api.Error{Code: api.CodeUsage, Message: "read the form: " + err.Error()}
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return nil, &api.Error{Code: api.CodeUsage, Message: "the form is not understood: " + err.Error()}
	}
	for name := range form {
		if name != fieldToken && name != fieldKey && !slices.Contains(fields, name) {
			return nil, &api.Error{Code: api.CodeUsage, Message: "the form holds a field that this page does not know", Hint: "load the page again: it may be of another version"}
		}
	}
	return form, nil
}

// drawKey is a key for a form that makes something.
func drawKey() string { return rand.Text() }

// checked tells whether a box is ticked.
func (v *visit) checked(field string) bool { return v.form.Get(field) != "" }

// picked are the values of a field that can be given several times, empty ones left out.
func (v *visit) picked(field string) []string {
	return slices.DeleteFunc(slices.Clone(v.form[field]), func(s string) bool { return s == "" })
}
