package configs

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
)

// DSN is a connection string that keeps its password to itself. It prints as user, host,
// port and database, with *** where a password stands, whatever the verb, in JSON, text
// and logs alike. Resolve is the only way to the secret.
type DSN struct{ raw string }

// NewDSN takes a connection string or a reference (env:NAME, file:PATH, command:PROGRAM) as in the file.
func NewDSN(raw string) DSN { return DSN{raw: raw} }

// Given tells whether there is one at all.
func (d DSN) Given() bool { return d.raw != "" }

// Resolve gives the connection string with its password: the value itself, or that of
// the environment variable, or the first line of the file or of what the command writes. It may
// block, on a command for half a minute. Errors name the reference, never the value. The result must not be
// logged or put into the argument list of a process.
func (d DSN) Resolve() (string, error) {
	value, err := d.fetch()
	if err != nil {
		return "", err
	}
	if problem := shapeProblem(value); problem != "" {
		return "", fmt.Errorf("%s: %s", d, problem)
	}
	return value, nil
}

func (d DSN) fetch() (string, error) { return fetch(d.raw, "connection string") }

// fetch follows a reference, or gives raw itself when it is none. Errors name the
// reference, never a value.
func fetch(raw, what string) (string, error) {
	kind, name := reference(raw)
	switch kind {
	case "env":
		value := os.Getenv(name)
		if value == "" {
			return "", fmt.Errorf("environment variable %s is not set", name)
		}
		return value, nil
	case "file":
		text, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("read the %s: %w", what, err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		return strings.TrimSpace(line), nil
	case "command":
		return runCommand(name, what)
	default:
		return raw, nil
	}
}

// reference splits env:NAME, file:PATH and command:PROGRAM; kind is empty for a value that is none.
func reference(raw string) (kind, name string) {
	if name, ok := strings.CutPrefix(raw, "env:"); ok {
		return "env", name
	}
	if name, ok := strings.CutPrefix(raw, "file:"); ok {
		return "file", name
	}
	if name, ok := strings.CutPrefix(raw, "command:"); ok {
		return "command", strings.TrimSpace(name)
	}
	return "", ""
}

func (d DSN) reference() (kind, name string) { return reference(d.raw) }

// references are all values that may refer to a variable or a file.
func (c *Config) references() []string {
	out := []string{c.Ledger.DSN.raw}
	for _, d := range c.Databases {
		out = append(out, d.DSN.raw)
	}
	for _, s := range c.Storages {
		out = append(out, s.AccessKey.raw, s.SecretKey.raw, s.RefreshToken.raw)
	}
	out = append(out, c.Notify.Heartbeat.URL.raw)
	for _, h := range c.Notify.Hooks {
		out = append(out, h.URL.raw, h.Secret.raw)
	}
	for _, m := range c.Notify.Mails {
		out = append(out, m.Password.raw)
	}
	return out
}

// HandedDSN is a connection that is handed over beside the file, where it may be seen: a reference file:PATH or env:NAME, or a
// connection without a password. Its error does not tell the value.
func HandedDSN(text string) (DSN, error) {
	d := NewDSN(text)
	problem := d.problem()
	switch kind, _ := d.reference(); {
	case problem != "":
	case kind == "command":
		problem = "names a program: write file:PATH or env:NAME"
	case d.holdsPassword():
		problem = "has a password in it: write file:PATH or env:NAME"
	}
	if problem != "" {
		return DSN{}, fmt.Errorf("the connection %s", problem)
	}
	return d, nil
}

// problem is why d cannot be used, in words without its value; empty when it can.
func (d DSN) problem() string {
	switch kind, name := d.reference(); {
	case d.raw == "":
		return "is missing: write postgres://user@host:5432/database, env:NAME or file:PATH"
	case kind != "" && name == "":
		return "refers to nothing: write env:NAME or file:PATH"
	case kind == "file" && !strings.HasPrefix(name, "/"):
		return "refers to a relative path: write file: and an absolute one"
	case kind == "command" && commandProblem(name) != "":
		return commandProblem(name)
	case kind != "":
		return ""
	default:
		return shapeProblem(d.raw)
	}
}

func shapeProblem(value string) string {
	if isURL(value) {
		if _, err := url.Parse(value); err != nil {
			return "is not a valid URL: percent-encode special characters of the password"
		}
		return ""
	}
	if !strings.Contains(value, "=") {
		return "is no connection string: write postgres://user@host:5432/database or host=... dbname=..."
	}
	return ""
}

func isURL(value string) bool {
	return strings.HasPrefix(value, "postgres://") || strings.HasPrefix(value, "postgresql://")
}

// String is the connection without its password, or the reference as it stands.
func (d DSN) String() string {
	kind, _ := d.reference()
	switch {
	case kind != "" || d.raw == "":
		return d.raw
	case isURL(d.raw):
		return redactURL(d.raw)
	default:
		return redactWords(d.raw)
	}
}

// redactURL keeps user, host and path; the query is dropped, it may hold passwords too.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "postgres://***"
	}
	shown := u.Scheme + "://"
	if u.User != nil {
		shown += url.User(u.User.Username()).String()
		if _, has := u.User.Password(); has {
			shown += ":***"
		}
		shown += "@"
	}
	return shown + u.Host + u.EscapedPath()
}

// redactWords keeps the well-known harmless words of the host=... form. A value in quotes
// may contain anything, so it is shown only when it has none.
func redactWords(raw string) string {
	if strings.ContainsAny(raw, `'\`) {
		return "***"
	}
	var shown []string
	for _, word := range strings.Fields(raw) {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case ok && value != "" && slices.Contains([]string{"host", "port", "user", "dbname"}, key):
			shown = append(shown, word)
		case key == "password":
			shown = append(shown, "password=***")
		}
	}
	return strings.Join(shown, " ")
}

// Format makes every verb print String.
func (d DSN) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, d.String()) }

// MarshalText is String: JSON and YAML documents and logs never hold the password.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is refused: what was printed is not what was configured.
func (d *DSN) UnmarshalText([]byte) error {
	return errors.New("a printed dsn has lost its password")
}

func (d *DSN) parse(text string) error {
	*d = NewDSN(text)
	return nil
}

// File is the path of a reference file:PATH; ok is false for what is none.
func (d DSN) File() (path string, ok bool) {
	kind, path := d.reference()
	return path, kind == "file"
}
