package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

const (
	tagsEvery   = time.Second      // the resources are looked at so often at most, however many ask
	beatEvery   = 15 * time.Second // a line that says nothing, so that both sides see that the other is there
	mostStreams = 256
	streamFor   = 10 * time.Minute // then who listens opens another, and shows anew who they are
)

// watched are the resources whose changes are streamed.
func (h *handler) watched() []watchedResource {
	return []watchedResource{
		{"view", api.PathView, look(func(ctx context.Context) (api.View, error) { return h.Members.View(ctx) })},
		{"fences", api.PathFences, look(func(ctx context.Context) ([]api.Fence, error) { return h.Recoveries.Fences(ctx) })},
		{"recoveries", api.PathRecoveries, look(func(ctx context.Context) ([]api.Recovery, error) { return h.Recoveries.Recoveries(ctx) })},
		{"tasks", api.PathTasks, look(func(ctx context.Context) ([]api.Task, error) {
			return h.Tasks.Tasks(ctx, api.TaskFilter{Internal: true, Limit: 100})
		})},
		{"backups", api.PathBackups, look(func(ctx context.Context) ([]api.Backup, error) {
			return h.Backups.Backups(ctx, api.BackupFilter{Limit: 100})
		})},
		{"schedules", api.PathSchedules, look(func(ctx context.Context) ([]api.Schedule, error) { return h.Recurring.Schedules(ctx) })},
		{"components", api.PathComponents, look(func(ctx context.Context) ([]api.Component, error) { return h.Autonomous.Components(ctx) })},
		{"approvals", api.PathApprovals, look(func(ctx context.Context) ([]api.Approval, error) { return h.waitingNow(ctx) })},
		{"claims", api.PathClaims, look(func(ctx context.Context) ([]api.Claim, error) { return h.Autonomous.Claims(ctx) })},
	}
}

// Watched are the names of the resources whose changes are streamed.
func (a *API) Watched() (names []string) {
	for _, w := range a.h.watched() {
		names = append(names, w.name)
	}
	return names
}

type watchedResource struct {
	name, path string
	tag        func(context.Context) string
}

// look gives a resource's tag as a GET would; empty when it cannot be read.
func look[A any](get func(context.Context) (A, error)) func(context.Context) string {
	return func(ctx context.Context) string {
		got, err := get(ctx)
		if err != nil {
			return ""
		}
		body, err := encode(got)
		if err != nil {
			return ""
		}
		return tagOf(body)
	}
}

// tags are the tags of all resources at a moment, looked at for all streams together.
type tags struct {
	turn chan struct{} // who holds it looks; the others wait, and then use what was seen

	mu      sync.Mutex
	at      time.Time
	seen    []api.Change
	streams int
}

func newTags() *tags { return &tags{turn: make(chan struct{}, 1)} }

// fresh gives the tags, at most tagsEvery old.
func (t *tags) fresh(ctx context.Context, watched []watchedResource) ([]api.Change, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	t.mu.Lock()
	at, seen := t.at, t.seen
	t.mu.Unlock()
	if !at.IsZero() && time.Since(at) < tagsEvery {
		return seen, nil
	}
	seen = nil
	at = time.Now()
	for _, w := range watched {
		seen = append(seen, api.Change{Resource: w.name, Path: w.path, Tag: w.tag(ctx)})
	}
	if ctx.Err() != nil { // what was not looked at for that reason is nobody else's news
		return nil, context.Cause(ctx)
	}
	t.mu.Lock()
	t.at, t.seen = at, seen
	t.mu.Unlock()
	return seen, nil
}

// enter counts a stream; false when there are too many.
func (t *tags) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams >= mostStreams {
		return false
	}
	t.streams++
	return true
}

func (t *tags) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams--
}

// changes streams which resources have changed. A slow reader gets the latest only: nothing is queued.
func (h *handler) changes(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead { // there is no body to wait for
		return
	}
	if !h.tags.enter() {
		h.fail(w, r, &api.Error{Code: api.CodeTooMany, Message: fmt.Sprintf("%d streams are open", mostStreams), Hint: "close some, or ask with ?wait= instead"})
		return
	}
	defer h.tags.leave()
	ctx, cancel := context.WithTimeout(r.Context(), streamFor)
	defer cancel()
	hints := h.Watch(ctx)
	s := stream{w: w, control: http.NewResponseController(w), shown: map[string]string{}}
	watched := h.watched()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for first := true; ; first = false {
		now, err := h.tags.fresh(ctx, watched)
		if err != nil || s.send(now, first) != nil {
			return // the reader is gone, or the daemon stops
		}
		if !h.nextLook(ctx, &s, hints, again.C, beat.C) {
			return
		}
	}
}

// nextLook waits for a reason to look again; false: there is nobody to look for.
func (h *handler) nextLook(ctx context.Context, s *stream, hints <-chan struct{}, again, beat <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-beat:
			if s.say(": beat\n\n") != nil {
				return false
			}
		case <-again:
			return true
		case _, open := <-hints:
			if !open {
				hints = nil
				continue
			}
			select { // what was looked at just now is as it was
			case <-ctx.Done():
				return false
			case <-time.After(tagsEvery):
				return true
			}
		}
	}
}

// stream is one reader.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	shown   map[string]string // tag by resource
	id      uint64
}

// send tells what differs from what was shown; first: all.
func (s *stream) send(now []api.Change, first bool) error {
	for _, c := range now {
		if tag, ok := s.shown[c.Resource]; ok && tag == c.Tag {
			continue
		}
		s.shown[c.Resource] = c.Tag
		text, err := json.Marshal(c)
		if err != nil {
			return err
		}
		s.id++
		if err := s.say(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", s.id, c.Resource, text)); err != nil {
			return err
		}
	}
	if first {
		return s.say(": that is all there is\n\n")
	}
	return nil
}

func (s *stream) say(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(2 * beatEvery)) // as in readBody
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
