package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/pipeline/secret"
)

type outer struct {
	Shown  secret.Secret
	hidden secret.Secret
	List   []secret.Secret
	Map    map[string]secret.Secret
	Ptr    *secret.Secret
}

// TestNothingShowsIt prints and marshals a secret, alone and within other values, in every way we can think of.
func TestNothingShowsIt(t *testing.T) {
	const value = "hunter2hunter2"
	s := secret.New(value)
	o := outer{Shown: s, hidden: s, List: []secret.Secret{s}, Map: map[string]secret.Secret{"k": s}, Ptr: &s}
	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%t", "%10s", "%T"} {
		for _, v := range []any{s, &s, o, &o, []any{s, o}, errors.Join(fmt.Errorf("wrapped: %v", s))} {
			shown = append(shown, fmt.Sprintf(verb, v))
		}
	}
	shown = append(shown, fmt.Sprint(s), fmt.Sprintln(o), s.String())
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, xml.Marshal} {
		for _, v := range []any{s, &s, o, []secret.Secret{s}} {
			b, err := marshal(v)
			shown = append(shown, string(b), fmt.Sprint(err))
		}
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "secret", s, "outer", o, "pointer", &s, slog.Group("g", "s", s))
	}
	var binary bytes.Buffer
	if err := gob.NewEncoder(&binary).Encode(s); err == nil {
		t.Error("gob takes a secret")
	}
	shown = append(shown, log.String(), binary.String())
	for _, text := range shown {
		if strings.Contains(text, "hunter") || strings.Contains(strings.ToLower(text), hex.EncodeToString([]byte("hunter"))) {
			t.Errorf("shown: %q", text)
		}
	}
}

func TestReveal(t *testing.T) {
	s := secret.New("value")
	if s.Reveal() != "value" || s.IsEmpty() || s.String() != "***" {
		t.Errorf("%q, empty %v, shown as %q", s.Reveal(), s.IsEmpty(), s)
	}
	if !s.Equal(secret.New("value")) || s.Equal(secret.New("other")) || s.Equal(secret.Secret{}) {
		t.Error("Equal does not compare values")
	}
	for _, empty := range []secret.Secret{{}, secret.New("")} {
		if empty.Reveal() != "" || !empty.IsEmpty() || empty.String() != "" || !empty.Equal(secret.Secret{}) {
			t.Errorf("the empty secret is %q, shown as %q", empty.Reveal(), empty)
		}
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); err == nil {
		t.Error("a printed secret was read back")
	}
}

func TestRedactorFindsEveryForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringN(3, 40, -1).Draw(t, "value")
		r := secret.NewRedactor(secret.New("another-one"), secret.New(value))
		b := []byte(value)
		for _, form := range []string{
			value, url.QueryEscape(value), url.PathEscape(value), url.UserPassword("u", value).String()[2:],
			base64.StdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b), hex.EncodeToString(b),
			"another-one",
		} {
			if got := r.Text("<" + form + ">"); got != "<***>" && !strings.Contains("<>", value) {
				t.Fatalf("%q in the form %q became %q", value, form, got)
			}
		}
	})
}

func TestRedactorLeavesTheRest(t *testing.T) {
	r := secret.NewRedactor(secret.New("abc"), secret.New("abcdef"), secret.New("x"), secret.New(""), secret.Secret{})
	for text, want := range map[string]string{
		"":                  "",
		"x marks the spot":  "x marks the spot",
		"abcdef, abc, abcd": "***, ***, ***d",
		"ABC":               "ABC",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := (secret.Redactor{}).Text("abc"); got != "abc" {
		t.Errorf("without secrets: %q", got)
	}
}

func TestRedactedErrorsKeepTheirKind(t *testing.T) {
	r := secret.NewRedactor(secret.New("hunter2"))
	err := r.Error(fmt.Errorf("connect as u:hunter2: %w", io.ErrUnexpectedEOF))
	if err == nil || err.Error() != "connect as u:***: unexpected EOF" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if err := r.Error(io.EOF); err != io.EOF {
		t.Errorf("an error without a secret became %#v", err)
	}
	if r.Error(nil) != nil {
		t.Error("nil became an error")
	}
}
