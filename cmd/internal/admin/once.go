package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// Limits of what is remembered of requests with an idempotency key.
const (
	repeatFor      = 24 * time.Hour
	mostRepeats    = 2000
	longestAnswer  = 16 << 10
	longestKey     = 255
	headerReplayed = "Idempotency-Replayed"
)

// repeats remembers the answers to requests with an idempotency key, for the whole group.
type repeats struct {
	store kept.Store
	now   func() time.Time
}

// repeat is what is remembered of one. While it is being answered Status is 0; it stays so when its node dies.
type repeat struct {
	Request string    `json:"request"` // digest of path and body
	At      time.Time `json:"at"`
	Status  int       `json:"status,omitempty"`
	Type    string    `json:"type,omitempty"`
	Body    []byte    `json:"body,omitempty"`
}

// once makes a request with a key happen once: a repeat is answered as the first was. A first one whose outcome is not
// known is not repeated either: who asks has to look. An answer that says "not now" is forgotten, so that it can be tried
// again with the same key.
func (h *handler) once(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get(api.HeaderIdempotencyKey)
		if key == "" {
			serve(w, r)
			return
		}
		body, err := wholeBody(w, r)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		mine, err := h.repeats.begin(r.Context(), r, key, body)
		switch {
		case err != nil:
			h.fail(w, r, err)
		case mine.Status != 0:
			w.Header().Set(headerReplayed, "true")
			w.Header().Set("Content-Type", mine.Type)
			w.WriteHeader(mine.Status)
			_, _ = w.Write(mine.Body) // as in sendBytes
		default:
			seen := &witness{ResponseWriter: w, status: http.StatusOK}
			serve(seen, r)
			if err := h.repeats.end(context.WithoutCancel(r.Context()), r, key, mine, seen); err != nil {
				h.Logger.ErrorContext(r.Context(), "admin: the answer to a request with an idempotency key is not remembered", "error", err)
			}
		}
	}
}

// wholeBody reads the body and puts it back.
func wholeBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Now().Add(bodyWithin)) // where there is no connection, there is no deadline
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = deadlines.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, &api.Error{Code: api.CodeTooLarge, Message: "the request has more than 1 MiB"}
	}
	if err != nil {
		return nil, &api.Error{Code: api.CodeUsage, Message: "read the request: " + err.Error()}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// recordKey is where a key of who asks is remembered.
func (p repeats) recordKey(r *http.Request, key string) string {
	actor, _ := accounts.Of(r.Context())
	sum := sha256.Sum256([]byte(actor.Via + "\x00" + actor.Name + "\x00" + key))
	return "repeat/" + hex.EncodeToString(sum[:])
}

func requestDigest(r *http.Request, body []byte) string {
	sum := sha256.Sum256([]byte(r.Method + "\x00" + r.URL.Path + "\x00" + string(body)))
	return hex.EncodeToString(sum[:])
}

// begin finds the answer that was given before, or notes that one is being made.
func (p repeats) begin(ctx context.Context, r *http.Request, key string, body []byte) (repeat, error) {
	if !printable(key) {
		return repeat{}, &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("%s: want 1 to %d printable characters without spaces", api.HeaderIdempotencyKey, longestKey)}
	}
	mine := repeat{Request: requestDigest(r, body), At: p.now().UTC()}
	err := kept.Update(ctx, p.store, p.recordKey(r, key), func(rec kept.Record) ([]kept.Change, error) {
		if rec.Version != 0 {
			var old repeat
			if err := json.Unmarshal(rec.Value, &old); err != nil {
				return nil, fmt.Errorf("read what is remembered of a request: %w", err)
			}
			if p.now().Sub(old.At) < repeatFor {
				answered, err := old.answer(mine.Request)
				mine = answered
				return nil, err
			}
		}
		changes, err := p.forget(ctx, rec.Key)
		return append(changes, kept.Put(rec.Key, mine, rec.Version)), err
	})
	return mine, err
}

// for_ is what a second request gets.
func (old repeat) answer(request string) (repeat, error) {
	switch {
	case old.Request != request:
		return old, &api.Error{Code: api.CodeConflict, Message: "this idempotency key was used for another request", Hint: "draw a new one for each thing that is wanted"}
	case old.Status == 0:
		return old, &api.Error{Code: api.CodeBusy, Message: "a request with this idempotency key is being answered, or its node died over it",
			Hint: "try again in a moment; if it stays so, look whether the thing is there, and use a new key if it is not"}
	}
	return old, nil
}

// forget lets old ones go, but not the record of key.
func (p repeats) forget(ctx context.Context, key string) ([]kept.Change, error) {
	all, err := p.store.List(ctx, "repeat/")
	if err != nil {
		return nil, err
	}
	var gone []kept.Change
	for _, rec := range all {
		var old repeat
		if rec.Key != key && json.Unmarshal(rec.Value, &old) == nil && p.now().Sub(old.At) >= repeatFor && len(gone) < 50 {
			gone = append(gone, kept.Delete(rec))
		}
	}
	if len(all)-len(gone) >= mostRepeats {
		return nil, &api.Error{Code: api.CodeTooMany, Message: fmt.Sprintf("there were %d requests with an idempotency key within a day", len(all)), Hint: "send it only with what must not be made twice"}
	}
	return gone, nil
}

// end remembers the answer.
func (p repeats) end(ctx context.Context, r *http.Request, key string, mine repeat, seen *witness) error {
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	mine.Status, mine.Type, mine.Body = seen.status, seen.Header().Get("Content-Type"), seen.body.Bytes()
	if seen.body.Len() > longestAnswer {
		mine.Body = nil
	}
	again := seen.status == http.StatusServiceUnavailable || seen.status == http.StatusTooManyRequests
	return kept.Update(ctx, p.store, p.recordKey(r, key), func(rec kept.Record) ([]kept.Change, error) {
		if rec.Version == 0 {
			return nil, nil
		}
		if again {
			return []kept.Change{kept.Delete(rec)}, nil
		}
		return []kept.Change{kept.Put(rec.Key, mine, rec.Version)}, nil
	})
}

func printable(key string) bool {
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(key) <= longestKey
}

// witness sees what is answered.
type witness struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (s *witness) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (s *witness) Write(p []byte) (int, error) {
	if s.body.Len() <= longestAnswer {
		s.body.Write(p)
	}
	return s.ResponseWriter.Write(p)
}

// Unwrap lets a ResponseController through.
func (s *witness) Unwrap() http.ResponseWriter { return s.ResponseWriter }
