package component

import (
	"context"
	"fmt"
)

// ErrYielded is the cause with which work ends whose claim an operator wants back. It is an ErrStopping: what is not done
// by then is as if it had never been.
var ErrYielded = fmt.Errorf("an operator wants the claim back: %w", ErrStopping)

// Yield has the work under a claim end as at Stop (context, grace, kill, proof); the claim is given back when the work is
// proven to have ended, and not before. It returns at once: true when there is work under this token, false when there is
// none and, from now on, none will begin, so that whoever asks may end the claim. It never makes two workers for an item.
func (r *Runner) Yield(token uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end, ok := r.holds[token]; ok {
		end(ErrYielded)
		return true
	}
	r.barred[token] = struct{}{}
	return false
}

// hold notes that a claim is worked on from now on, until let is called. It is not when its token is barred.
func (r *Runner) hold(ctx context.Context, c Claim) (work context.Context, let func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, no := r.barred[c.Token]; no {
		delete(r.barred, c.Token)
		return nil, nil, false
	}
	work, end := context.WithCancelCause(ctx)
	r.holds[c.Token] = end
	return work, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.holds, c.Token)
		end(nil)
	}, true
}
