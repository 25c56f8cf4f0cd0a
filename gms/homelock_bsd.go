//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package gms

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes a flock, which also belongs to the opening and goes with it, however the process ends.
func tryLock(f *os.File) (held bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK), err
}
