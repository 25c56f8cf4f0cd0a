package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// lookAgain is how often a waiting request looks without having been told to: Watch may
// miss what another node changed.
const lookAgain = 2 * time.Second

// read is the handler of a GET: it answers with a tag, and with If-None-Match and ?wait=
// only when the tag differs, or after that time with 304. head adds to the header what follows from what was got; nil: nothing.
func read[T any](h *handler, get func(*http.Request) (T, error), head func(http.Header, *http.Request, T)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		wait, err := waitOf(r)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		known := r.Header.Get("If-None-Match")
		body, tag, err := await(h.Watch, r, known, wait, func() ([]byte, error) {
			got, err := get(r)
			if err != nil {
				return nil, err
			}
			if head != nil {
				head(w.Header(), r, got)
			}
			return encode(got)
		})
		switch {
		case err != nil:
			h.fail(w, r, err)
		case tag == known:
			w.Header().Set("ETag", tag)
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("ETag", tag)
			sendBytes(w, http.StatusOK, body)
		}
	}
}

func waitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, &api.Error{Code: api.CodeUsage, Message: "query wait: want a duration such as 20s"}
	}
	return min(wait, api.MaxWait), nil
}

// await gets until the tag differs from known, or wait is over, or the request ends. It
// listens before it looks, so that no change falls between.
func await(watch func(context.Context) <-chan struct{}, r *http.Request, known string, wait time.Duration, get func() ([]byte, error)) ([]byte, string, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var changes <-chan struct{}
	if known != "" && wait > 0 {
		changes = watch(ctx)
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		body, err := get()
		if err != nil {
			return nil, "", err
		}
		if tag := tagOf(body); tag != known || wait == 0 {
			return body, tag, nil
		}
		select {
		case _, open := <-changes:
			if !open {
				changes = nil
			}
		case <-again.C:
		case <-over.C:
			wait = 0
		case <-ctx.Done():
			return nil, "", context.Cause(ctx)
		}
	}
}

func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}
