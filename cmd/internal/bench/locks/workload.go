package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Result of a workload.
type Result struct {
	Took time.Duration   // from the first client's begin to the last one's end, sessions open before and after
	Each []time.Duration // pair: from the call that locks until the lock is free again
}

// ErrTwoHolders says that a lock was given to two clients at once.
var ErrTwoHolders = errors.New("two clients hold one lock")

// Free has clients share n pairs of lock and unlock, each client on a lock of its own.
func Free(ctx context.Context, s Service, clients, n int) (Result, error) {
	return drive(ctx, s, clients, n, func(c Client, client int) error {
		unlock, err := c.TryLock(ctx, fmt.Sprintf("free-%d", client))
		if err != nil {
			return err
		}
		return unlock(ctx)
	})
}

// Contended has clients share n pairs of lock and unlock on one lock, for which all wait. ErrTwoHolders when it is not one.
func Contended(ctx context.Context, s Service, clients, n int) (Result, error) {
	var held atomic.Bool
	return drive(ctx, s, clients, n, func(c Client, _ int) error {
		unlock, err := c.Lock(ctx, "contended")
		if err != nil {
			return err
		}
		if !held.CompareAndSwap(false, true) {
			return ErrTwoHolders
		}
		held.Store(false)
		return unlock(ctx)
	})
}

// drive opens the clients' sessions, lets them share n calls of one, and closes them. The first error ends it.
func drive(ctx context.Context, s Service, clients, n int, one func(c Client, client int) error) (r Result, err error) {
	sessions := make([]Client, 0, clients)
	defer func() {
		for _, c := range sessions {
			err = errors.Join(err, c.Close())
		}
	}()
	for range clients {
		c, err := s.Client(ctx)
		if err != nil {
			return r, fmt.Errorf("open a session: %w", err)
		}
		sessions = append(sessions, c)
	}
	var next atomic.Int64
	each, errs := make([][]time.Duration, clients), make([]error, clients)
	var all sync.WaitGroup
	began := time.Now()
	for i, c := range sessions {
		all.Go(func() {
			for next.Add(1) <= int64(n) {
				asked := time.Now()
				if errs[i] = one(c, i); errs[i] != nil {
					next.Store(int64(n))
					return
				}
				each[i] = append(each[i], time.Since(asked))
			}
		})
	}
	all.Wait()
	r.Took = time.Since(began)
	for _, list := range each {
		r.Each = append(r.Each, list...)
	}
	return r, errors.Join(errs...)
}
