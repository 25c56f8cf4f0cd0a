package postgres

import (
	"maps"
	"slices"

	"github.com/fencepost/fencepost/pipeline/secret"
)

// redactor is a list of secrets that must not be seen in any text. It works by value: wherever a secret turns up, as it
// is or encoded, it is replaced.
type redactor []string

// clean returns text without the secrets, see secret.Redactor.
func (r redactor) clean(text string) string {
	secrets := make([]secret.Secret, len(r))
	for i, value := range r {
		secrets[i] = secret.New(value)
	}
	return secret.NewRedactor(secrets...).Text(text)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
