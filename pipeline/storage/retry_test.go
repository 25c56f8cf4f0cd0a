package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// pauses collects what a retry wrapper would have waited.
type pauses struct {
	all []time.Duration
	err error // answer of Wait
}

func (p *pauses) wait(_ context.Context, d time.Duration) error {
	p.all = append(p.all, d)
	return p.err
}

func retry(s storage.Storage, p *pauses) storage.Storage {
	return storage.Retry(s, storage.RetryOptions{Attempts: 4, First: time.Second, Longest: 3 * time.Second, Wait: p.wait,
		Jitter: func() float64 { return 1 }})
}

func TestRetryRepeatsWhatMayHelp(t *testing.T) {
	down := errors.New("connection refused")
	inner := mem.New()
	put(t, inner, "o", "x")
	for op, call := range map[storagetest.Op]func(s storage.Storage) error{
		storagetest.Stat:   func(s storage.Storage) error { _, err := s.Stat(t.Context(), "o"); return err },
		storagetest.Delete: func(s storage.Storage) error { return s.Delete(t.Context(), "absent") },
		storagetest.Put: func(s storage.Storage) error {
			_, err := s.Put(t.Context(), "new", strings.NewReader("x"), storage.Condition{})
			return err
		},
		storagetest.Get: func(s storage.Storage) error {
			r, _, err := s.Get(t.Context(), "o")
			if err == nil {
				err = r.Close()
			}
			return err
		},
		storagetest.List: func(s storage.Storage) error {
			for _, err := range s.List(t.Context(), "") {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(string(op), func(t *testing.T) {
			var p pauses
			f := storagetest.Fail(op, down).Times(3)
			if err := call(retry(storagetest.Inject(inner, f), &p)); err != nil {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, p.all); diff != "" {
				t.Errorf("pauses (-want +got):\n%s", diff)
			}
			f = storagetest.Fail(op, down)
			err := call(retry(storagetest.Inject(inner, f), &p))
			if !errors.Is(err, down) || !strings.Contains(err.Error(), "after 4 attempts") || f.Hits() != 4 {
				t.Errorf("%d attempts: %v", f.Hits(), err)
			}
		})
	}
}

func TestRetryObeysTheClasses(t *testing.T) {
	for _, class := range []error{storage.ErrNotFound, storage.ErrExists, storage.ErrStale, storage.ErrPermanent, storage.ErrNoOwner,
		storage.ErrForeign, context.Canceled, context.DeadlineExceeded} {
		var p pauses
		f := storagetest.Fail(storagetest.Any, fmt.Errorf("stat o: %w", class))
		_, err := retry(storagetest.Inject(mem.New(), f), &p).Stat(t.Context(), "o")
		if !errors.Is(err, class) || f.Hits() != 1 || len(p.all) != 0 {
			t.Errorf("%v: %d attempts, answer %v", class, f.Hits(), err)
		}
	}
}

func TestRetryEndsWithTheContext(t *testing.T) {
	down := errors.New("down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("fenced")
	f := storagetest.Do(storagetest.Stat, func(context.Context, string) error { cancel(cause); return down })
	var p pauses
	if _, err := retry(storagetest.Inject(mem.New(), f), &p).Stat(ctx, "o"); !errors.Is(err, down) || f.Hits() != 1 {
		t.Errorf("%d attempts: %v", f.Hits(), err)
	}
	p.err = cause
	f = storagetest.Fail(storagetest.Stat, down)
	_, err := retry(storagetest.Inject(mem.New(), f), &p).Stat(t.Context(), "o")
	if !errors.Is(err, cause) || !errors.Is(err, down) || f.Hits() != 1 {
		t.Errorf("ended while waiting, %d attempts: %v", f.Hits(), err)
	}
}

// A consumed stream sent again would be a cut object.
func TestRetryNeverSendsAConsumedStreamAgain(t *testing.T) {
	down := errors.New("connection reset")
	inner := mem.New()
	f := storagetest.Break(storagetest.Put, 3, down).Nth(1)
	var p pauses
	_, err := retry(storagetest.Inject(inner, f), &p).Put(t.Context(), "o", strings.NewReader("content"), storage.Condition{})
	if !errors.Is(err, down) || len(p.all) != 0 {
		t.Errorf("after %d pauses: %v", len(p.all), err)
	}
	if _, err := inner.Stat(t.Context(), "o"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("there is something: %v", err)
	}
}

func TestRetryRewindsWhatCanBeRewound(t *testing.T) {
	inner := mem.New()
	f := storagetest.Break(storagetest.Put, 3, errors.New("connection reset")).Times(2)
	var p pauses
	_, err := retry(storagetest.Inject(inner, f), &p).Put(t.Context(), "o", storage.Bytes([]byte("content")), storage.Condition{})
	if err != nil || len(p.all) != 2 {
		t.Fatalf("after %d pauses: %v", len(p.all), err)
	}
	r, _, err := inner.Get(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != "content" {
		t.Errorf("got %q, %v", b, err)
	}
	broken := &brokenRewinder{Rewinder: storage.Bytes([]byte("content"))}
	f = storagetest.Break(storagetest.Put, 3, errors.New("reset"))
	if _, err := retry(storagetest.Inject(inner, f), &p).Put(t.Context(), "p", broken, storage.Condition{}); err == nil || f.Hits() != 1 {
		t.Errorf("%d attempts: %v", f.Hits(), err)
	}
}

type brokenRewinder struct{ storage.Rewinder }

func (*brokenRewinder) Rewind() error { return errors.New("gone") }

// breaksAfter is a listing that breaks off once, after n entries.
type breaksAfter struct {
	storage.Storage
	n      int
	broken bool
}

func (s *breaksAfter) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		n := 0
		for info, err := range s.Storage.List(ctx, prefix) {
			if n == s.n && !s.broken {
				s.broken = true
				yield(storage.Info{}, errors.New("connection reset"))
				return
			}
			n++
			if !yield(info, err) {
				return
			}
		}
	}
}

func TestRetryGoesOnWithAListing(t *testing.T) {
	inner := mem.New()
	want := []string{"a", "b", "c", "d", "e"}
	for _, name := range want {
		put(t, inner, name, "x")
	}
	var p pauses
	var got []string
	for info, err := range retry(&breaksAfter{Storage: inner, n: 3}, &p).List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(p.all) != 1 {
		t.Errorf("%d pauses (-want +got):\n%s", len(p.all), diff)
	}
	for range retry(&breaksAfter{Storage: inner, n: 3}, &p).List(t.Context(), "") {
		break // a caller that stops gets nothing more, or the range panics
	}
}

func TestRetryDefaultsWaitWithJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storagetest.Fail(storagetest.Stat, errors.New("down"))
		start := time.Now()
		_, err := storage.Retry(storagetest.Inject(mem.New(), f), storage.RetryOptions{}).Stat(t.Context(), "o")
		took := time.Since(start) // 0.5 + 1 + 2 + 4 + 8 s, each half to all of it
		if err == nil || f.Hits() != 6 || took < 7*time.Second || took > 16*time.Second {
			t.Errorf("%d attempts in %v: %v", f.Hits(), took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		_, err = storage.Retry(storagetest.Inject(mem.New(), f), storage.RetryOptions{}).Stat(ctx, "o")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}
