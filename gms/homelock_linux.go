package gms

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes an open-file-description lock: it goes with the last descriptor of this opening, also after kill -9,
// and closing another descriptor of the same file does not drop it.
func tryLock(f *os.File) (held bool, err error) {
	fl := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &fl)
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES), err
}
