package postgres

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// redactor is a list of secrets that must not be seen in any text. It works by value: wherever a secret turns up, as it
// is or encoded, it is replaced.
type redactor []string

const redacted = "***"

// clean returns text without the secrets: raw, as part of a URL, quoted for a connection string, and in base64.
func (r redactor) clean(text string) string {
	for _, secret := range r {
		if secret == "" {
			continue
		}
		forms := []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret), strings.TrimPrefix(url.UserPassword("", secret).String(), ":"),
			conninfoEscaper.Replace(secret), base64.StdEncoding.EncodeToString([]byte(secret)),
		}
		for _, form := range forms {
			text = strings.ReplaceAll(text, form, redacted)
		}
	}
	return text
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
