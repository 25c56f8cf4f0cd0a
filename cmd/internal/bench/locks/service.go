package locks

import "context"

// Service gives out locks by name.
type Service interface {
	// Client opens a session. It is called by one goroutine at a time.
	Client(ctx context.Context) (Client, error)
}

// Client is a session, used by one goroutine.
type Client interface {
	// TryLock takes a lock that is free, and fails when it is not.
	TryLock(ctx context.Context, name string) (Unlock, error)
	// Lock takes a lock, and waits until it is free.
	Lock(ctx context.Context, name string) (Unlock, error)
	// Close ends the session.
	Close() error
}

// Unlock frees a lock; it is called once.
type Unlock func(ctx context.Context) error
