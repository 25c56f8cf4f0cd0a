package dropbox

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

// A 429 without a reason, with one of null, or that is no JSON, is one all the same: it is waited for, and nothing panics.
func TestRateLimitsOfAnyForm(t *testing.T) {
	for _, body := range []string{"", "{}", "null", `{"error": null}`, `{"error": {"reason": null}}`, `{"error": "too many"}`, "<html>slow down</html>"} {
		b := newBox(t, dropboxtest.Options{})
		f := dropboxtest.Refuse(429, body, "Retry-After", "7").On("upload_session/finish").Times(2)
		b.Inject(f)
		a, w := b.account(t)
		store(t, opened(t, Options{Account: a, PartSize: MinPart}), "o", content(smallObject))
		if got := w.longest().Seconds(); f.Hits() != 2 || got < 7 || got > 8 {
			t.Errorf("%q: refused %d times, waited %v s", body, f.Hits(), got)
		}
	}
}

// A full account is said in two ways, by a tag and by a status alone; neither is tried again at once.
func TestTheAccountIsFull(t *testing.T) {
	for _, f := range []*dropboxtest.Fault{dropboxtest.Refuse(507, "no room"), dropboxtest.Tagged(409, "path/insufficient_space")} {
		b := newBox(t, dropboxtest.Options{})
		b.Inject(f.On("upload_session/finish"))
		_, err := b.open(t).Put(t.Context(), "o", strings.NewReader("x"), storage.Condition{})
		wantErr(t, f.String(), err, storage.ErrPermanent, "the account is full")
		wantErr(t, f.String(), err, storage.ErrFull, "the account is full")
		if f.Hits() != 1 {
			t.Errorf("%v: tried %d times", f, f.Hits())
		}
	}
}

// No request is longer than a part, and none is of the kind that has a limit for the whole object.
func TestNoRequestIsLongerThanAPart(t *testing.T) {
	b := newBox(t, dropboxtest.Options{MaxRequest: MinPart})
	s := b.open(t)
	for name, size := range map[string]int{"empty": 0, "small": smallObject, "one": MinPart, "many": 3*MinPart + 1} {
		store(t, s, name, content(size))
		if got := read(t, s, name); !bytes.Equal(got, content(size)) {
			t.Errorf("%s: %d bytes came back", name, len(got))
		}
	}
	if n := b.Count("files/upload"); n > 0 {
		t.Errorf("%d uploads in one request", n)
	}
}

// What the SDK says of its own version is not what it is: nothing here asks.
func TestNothingAsksForTheVersionOfTheSDK(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Version" {
				if of, ok := s.X.(*ast.Ident); ok && of.Name == "dropbox" {
					t.Errorf("%s asks", file.Name())
				}
			}
			return true
		})
	}
}
