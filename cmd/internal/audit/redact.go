package audit

import (
	"bytes"
	"encoding/json"
	"strings"
)

// MaxText bounds a request, and what was before and after, in bytes of JSON.
const MaxText = 1024

// hidden stands for a secret.
const hidden = "***"

// secretWords are parts of names whose texts are not recorded.
var secretWords = []string{"password", "passphrase", "secret", "token", "key", "credential", "dsn", "cookie"}

// plainNames sound like a secret and are none.
var plainNames = map[string]bool{"fingerprint": true, "token_id": true}

// Redact is JSON without secrets, in at most MaxText bytes: what is longer, or no JSON, becomes a text that says so.
func Redact(text []byte) json.RawMessage {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // tokens stay whole
	var v any
	if d.Decode(&v) != nil {
		return json.RawMessage(`"not JSON"`)
	}
	out, err := json.Marshal(redact(v, false))
	switch {
	case err != nil:
		return json.RawMessage(`"not JSON"`)
	case len(out) > MaxText:
		return json.RawMessage(`"too long to be recorded"`)
	case string(out) == "{}" || string(out) == "null":
		return nil
	}
	return out
}

// Value is Redact of what v is as JSON.
func Value(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`"not JSON"`)
	}
	return Redact(text)
}

func redact(v any, secret bool) any {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			v[name] = redact(below, secret || isSecret(name))
		}
	case []any:
		for i, below := range v {
			v[i] = redact(below, secret)
		}
	case string:
		if secret && v != "" {
			return hidden
		}
	}
	return v
}

func isSecret(name string) bool {
	name = strings.ToLower(name)
	if plainNames[name] {
		return false
	}
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
