package gmstest

import (
	"syscall"
	"time"
)

// realNow is the time outside of the bubble.
func realNow() time.Duration {
	var tv syscall.Timeval
	if err := syscall.Gettimeofday(&tv); err != nil {
		panic(err)
	}
	return time.Duration(tv.Nano())
}

func realSince(begun time.Duration) time.Duration { return (realNow() - begun).Round(time.Millisecond) }
