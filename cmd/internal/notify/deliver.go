package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"text/template"
	"time"
)

// A Receiver is one place that messages go to.
type Receiver interface {
	// Name is unique among the receivers.
	Name() string
	// Deliver hands m over, or says why not; it may block until ctx ends. No secret is in the error.
	Deliver(ctx context.Context, m Message) error
}

// HookConfig is a web hook.
type HookConfig struct {
	Name     string
	URL      func() (string, error) // it may be a secret, and is asked for each time
	Secret   func() (string, error) // nil: not signed
	Template string                 // Go text/template of the body; empty: the message as JSON
	Type     string                 // of the body; default application/json
	Now      func() time.Time       // default time.Now
}

type hook struct {
	HookConfig
	body   *template.Template
	client *http.Client
}

// NewHook makes a web hook: each message is a POST. With a secret it carries the header
//
//	Fencepost-Signature: t=<seconds since 1970>,v1=<hex of HMAC-SHA-256(secret, t + "." + body)>
//
// Redirects are not followed: they would carry the message to a place that nobody has configured.
func NewHook(c HookConfig) (Receiver, error) {
	h := &hook{HookConfig: c, client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.Type == "" {
		h.Type = "application/json"
	}
	if c.Template != "" {
		t, err := template.New(c.Name).Funcs(template.FuncMap{"json": toJSON}).Option("missingkey=error").Parse(c.Template)
		if err != nil {
			return nil, fmt.Errorf("template of %s: %w", c.Name, err)
		}
		if err := t.Execute(io.Discard, sample()); err != nil {
			return nil, fmt.Errorf("template of %s: %w", c.Name, err)
		}
		h.body = t
	}
	return h, nil
}

// toJSON is v as JSON, so that a template can put any text between quotes of its own.
func toJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

func (h *hook) Name() string { return h.HookConfig.Name }

func (h *hook) Deliver(ctx context.Context, m Message) error {
	body, err := h.render(m)
	if err != nil {
		return err
	}
	address, err := h.URL()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the url of the hook is none")
	}
	request.Header.Set("Content-Type", h.Type)
	request.Header.Set("User-Agent", "fencepost")
	request.Header.Set("Fencepost-Message", m.ID)
	if h.Secret != nil {
		secret, err := h.Secret()
		if err != nil {
			return err
		}
		request.Header.Set("Fencepost-Signature", sign(secret, h.Now(), body))
	}
	return send(h.client, request)
}

func (h *hook) render(m Message) ([]byte, error) {
	if h.body == nil {
		return json.Marshal(m)
	}
	var out bytes.Buffer
	err := h.body.Execute(&out, m)
	return out.Bytes(), err
}

// sign is the value of the header Fencepost-Signature.
func sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// send wants an answer of 200 to 299. The address is in no error: it may be a secret.
func send(client *http.Client, request *http.Request) error {
	response, err := client.Do(request)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return fmt.Errorf("%s %s: %w", request.Method, request.URL.Host, err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection can be used again
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("%s %s: answered %s", request.Method, request.URL.Host, response.Status)
	}
	return nil
}
