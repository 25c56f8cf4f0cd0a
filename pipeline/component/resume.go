package component

import (
	"context"
	"fmt"
)

// Resume works on an item whose claim this run holds already: a recovery action has adopted it, and has lowered its fence.
// It returns at once; the runner works on the item as if a tick had claimed it, and ends the claim. It never waits for a
// fence, nor for a pause: netiquette holds back new work only. It waits for a place among SimultaneousProcesses, until
// ctx ends; then it goes without one. On an error nothing happens and the caller keeps the claim: ErrStopped, ErrLost.
func (r *Runner) Resume(ctx context.Context, c Claim, it Item) error {
	detached, end := context.WithCancel(context.WithoutCancel(ctx))
	run, err := r.cfg.Gate.Standing(detached)
	if err != nil {
		end()
		return fmt.Errorf("resume %s: %w: %w", it.ID, ErrLost, err)
	}
	if !r.enter() {
		end()
		return fmt.Errorf("resume %s: %w", it.ID, ErrStopped)
	}
	work, cancel := context.WithCancelCause(detached)
	stop := context.AfterFunc(r.base, func() { cancel(context.Cause(r.base)) })
	waiting, given := context.WithCancel(ctx)
	unwait := context.AfterFunc(r.base, given)
	k := &tickets{end: end}
	k.take()
	go func() {
		defer r.running.Done()
		defer k.give()
		defer func() { stop(); cancel(nil) }()
		r.awaitRoom(waiting)
		unwait()
		given()
		r.count(r.child(work, run, claimed{it, c}, k).counts())
	}()
	return nil
}
