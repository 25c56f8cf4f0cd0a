package gms

import (
	"time"

	"golang.org/x/sys/unix"
)

// SystemClock is CLOCK_BOOTTIME: it counts suspend and cannot be set.
type SystemClock struct{}

// Now is the time since the machine was started.
func (SystemClock) Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("read CLOCK_BOOTTIME: " + err.Error()) // cannot fail on a kernel that Go supports
	}
	return time.Duration(ts.Nano())
}
