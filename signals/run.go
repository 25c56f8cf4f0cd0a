package signals

import (
	"context"
	"errors"
	"runtime/debug"
)

// errGoexit: an action ended its goroutine instead of returning.
var errGoexit = errors.New("action ended its goroutine")

// consume makes an action and gives it s. Whatever the action does, consume returns its result: the action has a
// goroutine of its own, so that even runtime.Goexit ends nothing else.
func consume(ctx context.Context, f ActionFactory, s Signal) error {
	result := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: v, Stack: debug.Stack()}
			}
			result <- err
		}()
		err = f.NewAction().Consume(ctx, s)
	}()
	return <-result
}
