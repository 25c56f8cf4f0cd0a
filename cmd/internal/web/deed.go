package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

const (
	fieldToken  = "form_token" // the session's
	fieldKey    = "key"        // drawn for each form
	fieldResume = "resume"     // it is only shown again, behind a log-in
	maxForm     = 64 << 10
	formWithin  = 30 * time.Second // for a form to arrive
)

// Deed is a form that was sent: a change.
type Deed struct {
	Path   string   // of the page that takes it
	Action string   // of the route of the API that carries it out
	Fields []string // that the form may hold, beside token and key
	Within time.Duration

	do    func(v *visit) (to string, err error) // where it leads when it worked; empty: it has made a page (answers)
	again string                                // path of the view that shows the form when it did not; empty: the problem alone
}

// serveDeed reads the form and has it carried out, once.
func (s *Site) serveDeed(d Deed) http.HandlerFunc {
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
		switch {
		case d.Action == actionLogIn:
		case v.who.Name == "":
			v.logInFirst(d)
			return
		case v.token != "" && form.Get(fieldToken) != v.token: // the API would say so, too, but not to people
			v.wrong = &api.Error{Code: api.CodeForbidden, Message: "this form was made before you logged in: nothing was done", Hint: "look at it, and press the button again"}
			v.again(d)
			return
		case form.Has(fieldResume):
			v.note = noteResumed
			v.again(d)
			return
		}
		v.carryOut(d)
	}
}

// carryOut has a deed done, and answers with what became of it.
func (v *visit) carryOut(d Deed) {
	do := func() (answer, error) {
		to, err := d.do(v)
		if err != nil && problemOf(err).Code == api.CodeNeedsApproval {
			return answer{to: approvalPage(problemOf(err).Approval, "ask")}, nil
		}
		return answer{to, v.page}, err
	}
	var got answer
	var err error
	if v.key == "" {
		got, err = do()
	} else {
		ctx, cancel := v.lasting(cmp.Or(d.Within, usualWithin))
		defer cancel()
		v.r = v.r.WithContext(ctx)
		got, err = v.sent.once(ctx, v.sending(), do)
	}
	switch {
	case err == nil && got.to != "":
		v.lead(got.to)
		return
	case err == nil:
		v.write(http.StatusOK, got.page)
		return
	}
	if v.wrong = problemOf(err); v.wrong.Code == api.CodeForbidden {
		v.refused(v.wrong)
		return
	}
	v.again(d)
}

// lasting is a context for what a press of a button has begun: it goes on when the browser has gone, as it has when somebody
// presses twice, and ends with the node.
func (v *visit) lasting(within time.Duration) (context.Context, context.CancelFunc) {
	asked := v.r.Context()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(asked), within)
	stop := context.AfterFunc(asked, func() {
		if context.Cause(asked) != context.Canceled { // it was not the browser
			cancel()
		}
	})
	return ctx, func() { stop(); cancel() }
}

// again shows the page of a deed's form, filled as it was sent.
func (v *visit) again(d Deed) {
	for _, page := range v.Views() {
		if page.Path == d.again {
			v.self = filled(d.again, v.r)
			v.show(page)
			return
		}
	}
	v.refused(v.wrong)
}

// filled is the path of a view with the parts that a deed's request has filled in.
func filled(path string, r *http.Request) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			parts[i] = segment(r.PathValue(strings.TrimSuffix(name, "}")))
		}
	}
	return strings.Join(parts, "/")
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
		if !slices.Contains([]string{fieldToken, fieldKey, fieldResume}, name) && !slices.Contains(fields, name) {
			return nil, &api.Error{Code: api.CodeUsage, Message: "the form holds a field that this page does not know", Hint: "load the page again: it may be of another version"}
		}
	}
	return form, nil
}

// drawKey is a key for a form.
func drawKey() string { return rand.Text() }

// checked tells whether a box is ticked.
func (v *visit) checked(field string) bool { return v.form.Get(field) != "" }

// picked are the values of a field that can be given several times, empty ones left out.
func (v *visit) picked(field string) []string {
	return slices.DeleteFunc(slices.Clone(v.form[field]), func(s string) bool { return s == "" })
}
