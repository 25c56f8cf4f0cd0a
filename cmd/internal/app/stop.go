package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Done is closed when the app cannot go on; Err says why. It is nil for a node that leaves as it was asked to.
func (a *App) Done() <-chan struct{} { return a.done }

// Err is why the app cannot go on.
func (a *App) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *App) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = err
	}
	a.over.Do(func() { close(a.done) })
}

// retire ends the app as planned: Done is closed, and Err stays nil unless something fails on the way down.
func (a *App) retire() { a.over.Do(func() { close(a.done) }) }

// Stop takes everything down in the reverse order of its coming up, at most until ctx ends for what can be hurried. It may
// be called more than once.
func (a *App) Stop(ctx context.Context) error {
	a.stopOnce.Do(func() {
		a.setState("stopping")
		var saying sync.WaitGroup
		saying.Go(func() { a.sayStopping(ctx) })
		a.stopErr = a.down(ctx)
		saying.Wait()
	})
	return a.stopErr
}

// Hurry has a Stop that is under way, or to come, wait for no work any more: what still runs is ended at once, and planned
// again where it can be. It may be called more than once, and does not block.
func (a *App) Hurry() { a.endPatience() }

// grace is how long work may take to end by itself. The end of ctx, and Hurry, shorten it.
func (a *App) grace(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Stop.Grace)
	forget := context.AfterFunc(a.patience, cancel)
	return ctx, func() { forget(); cancel() }
}

// onStop names what is to be done on the way down.
func (a *App) onStop(name string, run func(ctx context.Context) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, cleanup{name, run})
}

func (a *App) down(ctx context.Context) error {
	if a.cancel != nil {
		a.cancel()
		a.joining.Wait()
	}
	a.mu.Lock()
	steps := a.cleanups
	a.cleanups = nil
	a.mu.Unlock()
	var errs []error
	for _, s := range slices.Backward(steps) {
		if err := s.run(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", s.name, err))
		}
	}
	return errors.Join(errs...)
}

// cleanup is one step of the way down, named for the log.
type cleanup struct {
	name string
	run  func(ctx context.Context) error
}

// closeMore closes the storages of the settings.
func (a *App) closeMore() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, c := range a.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
