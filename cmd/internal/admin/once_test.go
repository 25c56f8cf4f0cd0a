package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// brokenStore refuses to change anything while fail is set.
type brokenStore struct {
	kept.Memory
	fail atomic.Bool
}

func (s *brokenStore) Commit(ctx context.Context, changes ...kept.Change) error {
	if s.fail.Load() {
		return errors.New("no quorum")
	}
	return s.Memory.Commit(ctx, changes...)
}

// TestOnce: a repeat with the same key makes nothing again and is answered as the first was, by whoever of the group; another
// request with it, another one's key and a strange key are told apart.
func TestOnce(t *testing.T) {
	s := newSite(t, nil)
	operator := append(bearer(s.tokens[api.RoleOperator]), api.HeaderIdempotencyKey, "k-1")
	restore := func(body string, want int, headers ...string) (string, http.Header) {
		t.Helper()
		var task api.Task
		header := s.ask(t, "POST", api.BackupPath("b1")+"/restore", body, want, &task, headers...)
		return task.ID, header
	}
	first, header := restore(`{"target":"copy"}`, 202, operator...)
	if header.Get(headerReplayed) != "" {
		t.Error("the first one is a repeat")
	}
	again, header := restore(`{"target":"copy"}`, 202, operator...)
	if again != first || header.Get(headerReplayed) != "true" || header.Get("Content-Type") != jsonType {
		t.Errorf("the repeat: %q, %v", again, header)
	}
	if n := len(s.fake.restores); n != 1 {
		t.Errorf("%d restores were asked for", n)
	}
	restore(`{"target":"other"}`, 409, operator...)
	restore(`{"target":"copy"}`, 202, append(bearer(s.tokens[api.RoleAdmin]), api.HeaderIdempotencyKey, "k-1")...)
	if n := len(s.fake.restores); n != 2 {
		t.Errorf("%d restores: another one's key is another key", n)
	}
	for _, key := range []string{"a b", "ä", strings.Repeat("k", 256)} {
		restore(`{"target":"copy"}`, 400, append(bearer(s.tokens[api.RoleOperator]), api.HeaderIdempotencyKey, key)...)
	}
}

// TestOnceRemembersRefusals, but not what was only not possible at that moment.
func TestOnceRemembersRefusals(t *testing.T) {
	s := newSite(t, nil)
	headers := append(bearer(s.tokens[api.RoleOperator]), api.HeaderIdempotencyKey, "k")
	s.fake.err = &api.Error{Code: api.CodeUnavailable, Message: "no quorum"}
	s.ask(t, "POST", api.PathBackups, `{"database":"shop"}`, 503, nil, headers...)
	s.fake.err = &api.Error{Code: api.CodeConflict, Message: "no"}
	s.ask(t, "POST", api.PathBackups, `{"database":"shop"}`, 409, nil, headers...)
	s.fake.err = nil
	s.ask(t, "POST", api.PathBackups, `{"database":"shop"}`, 409, nil, headers...)
	s.ask(t, "POST", api.PathBackups, `{"database":"shop"}`, 202, nil, append(headers[:3:3], "k2")...)
}

// TestOnceWhenItsNodeDied: a first request whose outcome nobody knows is not made again.
func TestOnceWhenItsNodeDied(t *testing.T) {
	store := &kept.Memory{}
	at := time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
	p := repeats{store: store, now: func() time.Time { return at }}
	r, err := http.NewRequest("POST", "http://x/api/v1/backups", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.begin(t.Context(), r, "k", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	var e *api.Error
	if _, err := p.begin(t.Context(), r, "k", []byte("{}")); !errors.As(err, &e) || e.Code != api.CodeBusy {
		t.Errorf("a second one: %v", err)
	}
	at = at.Add(repeatFor)
	if _, err := p.begin(t.Context(), r, "other", nil); err != nil {
		t.Fatal(err)
	}
	if list, err := store.List(t.Context(), ""); err != nil || len(list) != 1 {
		t.Errorf("after a day %d are remembered, %v", len(list), err)
	}
}
