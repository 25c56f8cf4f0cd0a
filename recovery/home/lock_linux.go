package home

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockHandle takes an open-file-description lock: closing another descriptor of the same file does not drop it, as it
// would drop a POSIX lock.
func lockHandle(f *os.File) error {
	fl := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &fl)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errHeld
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// held says whether somebody has the lock, without touching it.
func held(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("probe a lock: %w", err)
	}
	defer f.Close()
	fl := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &fl); err != nil {
		return false, fmt.Errorf("probe %s: %w", path, err)
	}
	return fl.Type != unix.F_UNLCK, nil
}

// fileID names a file as long as it exists.
func fileID(fi os.FileInfo) string {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
