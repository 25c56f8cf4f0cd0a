package home

import (
	"errors"
	"fmt"
	"os"
)

// lockFile is a lock that ends with its holder, whatever ends it. The file is never unlinked: a new file of the same name
// would be another lock.
type lockFile struct {
	f    *os.File
	path string
}

// tryLock takes the lock without waiting; errHeld when somebody has it, ErrReplaced when path is another file by then.
func tryLock(path string, create bool) (*lockFile, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	l := &lockFile{f: f, path: path}
	if err := lockHandle(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := l.intact(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// intact says whether the locked file is still the one under its name.
func (l *lockFile) intact() error {
	mine, err := l.f.Stat()
	if err != nil {
		return fmt.Errorf("look at a lock file: %w", err)
	}
	named, err := os.Stat(l.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	if !os.SameFile(mine, named) {
		return fmt.Errorf("%w: %s", ErrReplaced, l.path)
	}
	return nil
}

// close gives the lock up. A descriptor that a child inherited keeps it.
func (l *lockFile) close() error { return l.f.Close() }
