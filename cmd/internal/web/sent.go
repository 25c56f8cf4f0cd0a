package web

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// Bounds of what is remembered of forms that were just sent.
const (
	sentFor  = time.Minute
	mostSent = 500
)

// sendings know what became of forms that were just sent to this node: who presses a button twice gets the answer to the first
// press, and what it does is done once. Where it matters over nodes and restarts, the key goes to the API as well.
type sendings struct {
	mu   sync.Mutex
	list map[string]*sending
}

// sending is a form that was sent. What became of it may be read once done is closed.
type sending struct {
	done chan struct{}
	at   time.Time // when it was done
	answer
}

// answer is what a deed has led to: the path of a page, or a page.
type answer struct {
	to   string
	page []byte
}

// sending names the form that was sent: whose, to where, and all that is in it. A key alone would do, but a browser may go back
// to a page as it was, where something else is typed then.
func (v *visit) sending() string {
	sum := sha256.Sum256([]byte(v.who.Name + "\n" + v.r.URL.Path + "\n" + v.form.Encode())) // the session's token and the key are in the form
	return string(sum[:])
}

// once has do run for a form, unless the same one was sent before and worked: then its answer is given again. What did not work
// is tried again.
func (s *sendings) once(ctx context.Context, form string, do func() (answer, error)) (answer, error) {
	for {
		mine, before := s.enter(form, time.Now())
		if before == nil {
			got, err := answer{}, error(nil)
			defer func() { s.leave(form, mine, got, err) }()
			got, err = do()
			return got, err
		}
		select {
		case <-before.done:
		case <-ctx.Done():
			return answer{}, context.Cause(ctx)
		}
		if before.to != "" || before.page != nil {
			return before.answer, nil
		}
	}
}

// enter gives the sending of a form: a new one, or the one before, which may be under way.
func (s *sendings) enter(form string, now time.Time) (mine, before *sending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, old := range s.list {
		if !old.at.IsZero() && now.Sub(old.at) >= sentFor {
			delete(s.list, key)
		}
	}
	if old, ok := s.list[form]; ok {
		return nil, old
	}
	mine = &sending{done: make(chan struct{})}
	if len(s.list) < mostSent {
		if s.list == nil {
			s.list = map[string]*sending{}
		}
		s.list[form] = mine
	}
	return mine, nil
}

// leave tells those who wait, and forgets what did not work.
func (s *sendings) leave(form string, mine *sending, got answer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		mine.answer = got
	}
	if mine.at = time.Now(); err != nil || got.to == "" && got.page == nil {
		delete(s.list, form)
	}
	close(mine.done)
}
