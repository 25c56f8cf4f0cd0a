package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// shortest is the length, in bytes, below which a secret is not looked for.
const shortest = 3

// Redactor replaces secrets in texts. The zero value replaces nothing.
type Redactor struct{ r *strings.Replacer }

// NewRedactor returns a redactor of secrets: of each as it is, as part of a URL (path, query, user), quoted for a libpq
// connection string and for JSON, in base64 (both alphabets, with and without padding) and in hex.
func NewRedactor(secrets ...Secret) Redactor {
	var forms []string
	for _, s := range secrets {
		if value := s.Reveal(); len(value) >= shortest {
			forms = append(forms, encodings(value)...)
		}
	}
	if len(forms) == 0 {
		return Redactor{}
	}
	slices.SortFunc(forms, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, hidden)
	}
	return Redactor{r: strings.NewReplacer(pairs...)}
}

func encodings(value string) []string {
	b := []byte(value)
	forms := []string{
		value,
		url.QueryEscape(value), url.PathEscape(value),
		strings.TrimPrefix(url.UserPassword("", value).String(), ":"),
		strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value),
		base64.StdEncoding.EncodeToString(b), base64.RawStdEncoding.EncodeToString(b),
		base64.URLEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b),
		hex.EncodeToString(b),
	}
	if quoted, err := json.Marshal(value); err == nil {
		forms = append(forms, string(quoted[1:len(quoted)-1]))
	}
	return forms
}

// Text returns text without the secrets.
func (r Redactor) Text(text string) string {
	if r.r == nil {
		return text
	}
	return r.r.Replace(text)
}

// Error returns an error with the chain of err and its text without the secrets; nil for nil, and err itself when its
// text holds none.
func (r Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := r.Text(text)
	if clean == text {
		return err
	}
	return &redacted{text: clean, err: err}
}

// redacted is an error with another text. Whoever unwraps it asks for the original on purpose.
type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }
