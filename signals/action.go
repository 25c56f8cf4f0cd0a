package signals

import (
	"context"
	"fmt"
)

// Action is the host's handler of one signal.
type Action interface {
	// Consume handles the signal. ctx ends when the router stops and, for a recovery, when the appointment moves. It may
	// block; see Router for whom that delays. A panic counts as an error.
	Consume(ctx context.Context, s Signal) error
}

// ActionFactory makes one action per signal, so that an action may keep state while it works.
type ActionFactory interface {
	// NewAction is called on the goroutine that then calls the action, once per delivery.
	NewAction() Action
}

// ActionFunc is a function as an action.
type ActionFunc func(ctx context.Context, s Signal) error

// Consume calls f. Its error is f's.
func (f ActionFunc) Consume(ctx context.Context, s Signal) error { return f(ctx, s) }

// FactoryFunc is a function as a factory.
type FactoryFunc func() Action

// NewAction calls f.
func (f FactoryFunc) NewAction() Action { return f() }

// Handle is a factory whose actions all call handle, which must be safe for concurrent use.
func Handle(handle func(ctx context.Context, s Signal) error) ActionFactory {
	return FactoryFunc(func() Action { return ActionFunc(handle) })
}

// HandleRecovery is Handle for FailureRecoverySignals: recoveries run beside each other, so handle must be safe for
// concurrent use.
func HandleRecovery(handle func(ctx context.Context, s FailureRecoverySignal) error) ActionFactory {
	return Handle(func(ctx context.Context, s Signal) error {
		r, ok := s.(FailureRecoverySignal)
		if !ok {
			return fmt.Errorf("handle %s signal: not a recovery", s.Kind())
		}
		return handle(ctx, r)
	})
}

// PanicError is the error of an action that panicked.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // its stack
}

// Error says what the action panicked with, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("action panicked: %v", e.Value) }
