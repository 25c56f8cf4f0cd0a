package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestWaitTask: each state is shown once and in order, without polling in between.
func TestWaitTask(t *testing.T) {
	f := newFake()
	states := []string{"planned", "creating", "uploading", "completed"}
	f.set(api.Task{ID: "t1", State: states[0]})
	_, c, _ := serve(t, f.backend())
	var shown []string
	last, err := c.WaitTask(t.Context(), "t1", func(task api.Task) {
		shown = append(shown, task.State)
		if len(shown) == len(states) {
			return
		}
		go func() { // changes only when the request is being waited for
			<-f.watching
			next := states[len(shown)]
			f.set(api.Task{ID: "t1", State: next, Final: next == "completed"})
		}()
	})
	if err != nil || last.State != "completed" || !slices.Equal(shown, states) {
		t.Fatalf("last %+v, shown %v, error %v", last, shown, err)
	}
	if f.reads > 3*len(states) {
		t.Errorf("%d reads for %d states: it polls", f.reads, len(states))
	}
}

// TestUnchanged: after the wait, 304 and the same tag; another tag is answered at once.
func TestUnchanged(t *testing.T) {
	f := newFake()
	f.set(api.Task{ID: "t1", State: "uploading"})
	_, _, socket := serve(t, f.backend())
	ask := func(tag, query string) string {
		return raw(t, socket, "GET /api/v1/tasks/t1"+query+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIf-None-Match: "+tag+"\r\n\r\n")
	}
	first := ask(`"other"`, "?wait=50s")
	if !strings.HasPrefix(first, "HTTP/1.1 200") {
		t.Fatalf("answer %q, want 200 at once", first)
	}
	_, rest, _ := strings.Cut(first, "Etag: ")
	tag, _, _ := strings.Cut(rest, "\r\n")
	for _, query := range []string{"", "?wait=1ms"} {
		if got := ask(tag, query); !strings.HasPrefix(got, "HTTP/1.1 304") || !strings.Contains(got, "Etag: "+tag) {
			t.Errorf("query %q: answer %q, want 304 with the tag", query, got)
		}
	}
}

// TestLooksAgain: a change that Watch misses is seen all the same.
func TestLooksAgain(t *testing.T) {
	f := newFake()
	f.set(api.Task{ID: "t1", State: "planned"})
	b := f.backend()
	b.Watch = func(ctx context.Context) <-chan struct{} {
		f.watching <- struct{}{}
		closed := make(chan struct{}) // as when the group's own watch has ended
		close(closed)
		return closed
	}
	_, c, _ := serve(t, b)
	go func() {
		<-f.watching
		f.set(api.Task{ID: "t1", State: "completed", Final: true})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if last, err := c.WaitTask(ctx, "t1", nil); err != nil || last.State != "completed" {
		t.Fatalf("last %+v, error %v", last, err)
	}
}

// TestErrorEndsWait: what becomes of a task that vanishes while it is waited for.
func TestErrorEndsWait(t *testing.T) {
	f := newFake()
	f.set(api.Task{ID: "t1", State: "planned"})
	_, c, _ := serve(t, f.backend())
	go func() {
		<-f.watching
		f.mu.Lock()
		delete(f.tasks, "t1")
		f.mu.Unlock()
		f.set(api.Task{ID: "t2"})
	}()
	_, err := c.WaitTask(t.Context(), "t1", nil)
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.CodeNotFound {
		t.Fatalf("error %v, want not_found", err)
	}
}

// TestCallerStopsWaiting: the client's context ends a long wait at once, with its cause.
func TestCallerStopsWaiting(t *testing.T) {
	f := newFake()
	f.set(api.Task{ID: "t1", State: "planned"})
	_, c, _ := serve(t, f.backend())
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() {
		<-f.watching
		cancel(enough)
	}()
	if _, err := c.WaitTask(ctx, "t1", nil); !errors.Is(err, enough) {
		t.Fatalf("error %v, want the cause", err)
	}
}
