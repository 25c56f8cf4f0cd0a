package secret

import (
	"errors"
	"fmt"
	"io"
)

// hidden is what is shown instead.
const hidden = "***"

// Secret is a password, a key, a token. The zero value is the empty secret.
type Secret struct {
	p *string // a pointer, because fmt shows unexported fields within other values and stops at pointers
}

// New hides value.
func New(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{p: &value}
}

// Reveal returns the value. It belongs neither into a log, an error, a file that others can read, nor into the argument
// list of a process.
func (s Secret) Reveal() string {
	if s.p == nil {
		return ""
	}
	return *s.p
}

// IsEmpty tells whether there is nothing to hide.
func (s Secret) IsEmpty() bool { return s.p == nil }

// Equal compares values.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }

// String is *** (nothing for the empty secret).
func (s Secret) String() string {
	if s.p == nil {
		return ""
	}
	return hidden
}

// Format makes every verb print String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is String: JSON and YAML documents and logs never hold the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is refused: what was printed is not what it was.
func (s *Secret) UnmarshalText([]byte) error {
	return errors.New("a printed secret has lost its value")
}

// MarshalBinary is refused: binary forms are made to be read back.
func (s Secret) MarshalBinary() ([]byte, error) {
	return nil, errors.New("a secret is not written in binary form")
}

// UnmarshalBinary is refused, as MarshalBinary is.
func (s *Secret) UnmarshalBinary([]byte) error {
	return errors.New("a secret is not read from a binary form")
}
