package local

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// access leaves the question to the first call: rights are lists here, and only an attempt tells.
func access(string, bool) error { return nil }

func freeBytes(dir string) (int64, error) {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, nil, nil); err != nil {
		return 0, err
	}
	return int64(min(free, 1<<62)), nil
}

// tryLock takes the exclusive lock of an open file without waiting. It ends when the file is closed, or the process dies.
// The locked byte lies far behind every content, so that the lock hinders no reader.
func tryLock(f *os.File) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var lockErr error
	if err := conn.Control(func(fd uintptr) {
		at := windows.Overlapped{OffsetHigh: 1 << 30}
		lockErr = windows.LockFileEx(windows.Handle(fd), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	}); err != nil {
		return false, err
	}
	if errors.Is(lockErr, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return lockErr == nil, lockErr
}

// syncFolder does nothing: folders cannot be synced here, NTFS keeps a journal of them.
func syncFolder(*os.File) error { return nil }

// fileNumber is not part of FileInfo here; size and time have to do.
func fileNumber(os.FileInfo) uint64 { return 0 }

func isFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

func isNotDir(err error) bool {
	return errors.Is(err, windows.ERROR_PATH_NOT_FOUND) || errors.Is(err, windows.ERROR_DIRECTORY) || errors.Is(err, syscall.ENOTDIR)
}

func isNoLinks(err error) bool {
	return errors.Is(err, windows.ERROR_INVALID_FUNCTION) || errors.Is(err, windows.ERROR_NOT_SUPPORTED)
}

// isPermanent tells whether trying again cannot help.
func isPermanent(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return true
	}
	switch errno {
	case windows.ERROR_ACCESS_DENIED, windows.ERROR_WRITE_PROTECT, windows.ERROR_INVALID_NAME, windows.ERROR_FILENAME_EXCED_RANGE, windows.ERROR_DIRECTORY:
		return true
	}
	return false
}
