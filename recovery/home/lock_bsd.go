//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package home

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockHandle takes a flock, which also belongs to the open file and not to the process.
func lockHandle(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errHeld
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}
