package configs

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Secret is a key or password of the file: a reference env:NAME, file:PATH or command:PROGRAM, or the value
// itself where that is allowed. It prints as the reference, or as ***, whatever the verb,
// in JSON, text and logs alike. Resolve is the only way to the value.
type Secret struct{ raw string }

// NewSecret takes a reference or a value as in the file.
func NewSecret(raw string) Secret { return Secret{raw: raw} }

// Resolve gives the value: that of the environment variable, the first line of the file or of
// what the command writes, or what was written. It may block, on a command for half a minute. Errors name the reference, never
// the value; an empty value is one.
func (s Secret) Resolve() (string, error) {
	value, err := fetch(s.raw, "secret")
	if err == nil && value == "" {
		err = fmt.Errorf("the secret %q is empty", s.String())
	}
	return value, err
}

// File is the path of a reference file:PATH; ok is false for what is none.
func (s Secret) File() (path string, ok bool) {
	kind, path := reference(s.raw)
	return path, kind == "file"
}

// problem is why s cannot be used, in words without its value; empty when it can.
func (s Secret) problem(literal bool) string {
	switch kind, name := reference(s.raw); {
	case s.raw == "":
		return "is missing: write env:NAME or file:PATH"
	case kind != "" && name == "":
		return "refers to nothing: write env:NAME or file:PATH"
	case kind == "file" && !strings.HasPrefix(name, "/"):
		return "refers to a relative path: write file: and an absolute one"
	case kind == "command" && commandProblem(name) != "":
		return commandProblem(name)
	case kind == "" && !literal:
		return "holds the secret itself: write env:NAME or file:PATH"
	}
	return ""
}

// String is the reference, or *** for a value.
func (s Secret) String() string {
	if kind, _ := reference(s.raw); kind != "" || s.raw == "" {
		return s.raw
	}
	return "***"
}

// Format makes every verb print String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is String: JSON and YAML documents and logs never hold the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is refused: what was printed is not what was configured.
func (s *Secret) UnmarshalText([]byte) error {
	return errors.New("a printed secret has lost its value")
}

func (s *Secret) parse(text string) error {
	*s = NewSecret(text)
	return nil
}
