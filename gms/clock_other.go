//go:build !linux

package gms

import "time"

// SystemClock is the wall clock less a fixed date: unlike the monotonic clock it counts suspend, but it can be set. A
// step of the clock beyond a lease makes the run stop early, never late by more than the step.
type SystemClock struct{}

// Now is the time since 1970.
func (SystemClock) Now() time.Duration { return time.Duration(time.Now().UnixNano()) }
