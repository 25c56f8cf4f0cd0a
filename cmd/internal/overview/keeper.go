package overview

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Keeper keeps one overview for everybody who asks: it is made anew at most once in Every, however many ask, and only when
// somebody does. Safe for concurrent use.
type Keeper struct {
	every time.Duration
	look  func(context.Context) api.Overview

	turn chan struct{} // holds one value while somebody looks
	made time.Time     // on the monotonic clock; zero: never
	last api.Overview
}

// NewKeeper makes one; look must end within a bounded time by itself.
func NewKeeper(every time.Duration, look func(context.Context) api.Overview) *Keeper {
	return &Keeper{every: every, look: look, turn: make(chan struct{}, 1)}
}

// Get is the present overview, at most Every old when the call began. Who asks while it is being made waits for it; what
// is made belongs to all, so it is not given up when the first who asked goes away.
func (k *Keeper) Get(ctx context.Context) api.Overview {
	k.turn <- struct{}{}
	defer func() { <-k.turn }()
	if now := time.Now(); k.made.IsZero() || now.Sub(k.made) >= k.every {
		k.last = k.look(context.WithoutCancel(ctx))
		k.made = time.Now()
	}
	return k.last
}
