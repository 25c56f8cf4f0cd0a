//go:build linux || darwin || freebsd

package local

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// access asks the system whether this process may use the folder.
func access(dir string, write bool) error {
	mode := uint32(unix.R_OK | unix.X_OK)
	if write {
		mode |= unix.W_OK
	}
	return unix.Access(dir, mode)
}

func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// tryLock takes the exclusive lock of an open file without waiting. It ends when the file is closed, or the process dies.
func tryLock(f *os.File) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var lockErr error
	if err := conn.Control(func(fd uintptr) {
		for {
			lockErr = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB)
			if lockErr != unix.EINTR {
				return
			}
		}
	}); err != nil {
		return false, err
	}
	if errors.Is(lockErr, unix.EWOULDBLOCK) {
		return false, nil
	}
	return lockErr == nil, lockErr
}

// syncFolder syncs an open folder; file systems that cannot do so (they say EINVAL) need not.
func syncFolder(f *os.File) error {
	err := f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

func fileNumber(fi os.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

func isNotDir(err error) bool { return errors.Is(err, unix.ENOTDIR) }

func isNoLinks(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EMLINK) || errors.Is(err, unix.ENOSYS)
}

// isPermanent tells whether trying again cannot help.
func isPermanent(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return true
	}
	switch errno {
	case unix.EACCES, unix.EPERM, unix.EROFS, unix.ENAMETOOLONG, unix.EISDIR, unix.ENOTDIR, unix.ELOOP, unix.EFBIG, unix.EXDEV, unix.EILSEQ, unix.EINVAL:
		return true
	}
	return false
}
