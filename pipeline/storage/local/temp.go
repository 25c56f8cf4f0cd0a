package local

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
)

const (
	tempPrefix = "put-"
	tempTries  = 100                   // new temporaries taken for dead ones before they were locked
	lockFirst  = time.Millisecond      // pause between two tries for a lock that another process holds; doubles
	lockLast   = 50 * time.Millisecond // up to this
)

// temp is a temporary file. It is locked as long as it is open, which tells other processes that its writer lives.
type temp struct {
	s     *Storage
	f     *os.File
	name  string // below the root, as the system writes it
	moved bool   // it was renamed: there is nothing to remove
}

// newTemp makes a temporary and locks it. When a cleaner looked between the two it took the file for a dead one; then
// another is made. It is not spared for being young and empty: so is that of a writer killed before its first byte, which
// nobody may look at again for weeks.
func (s *Storage) newTemp() (*temp, error) {
	if err := s.root.MkdirAll(filepath.FromSlash(tempDir), dirMode); err != nil {
		return nil, err
	}
	for range tempTries {
		name := filepath.FromSlash(tempDir + "/" + tempName())
		f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
		if err != nil {
			return nil, err
		}
		locked, err := tryLock(f)
		t := &temp{s: s, f: f, name: name}
		switch {
		case err != nil:
			t.discard()
			return nil, noLocks(err)
		case locked && s.isAt(f, name):
			return t, nil
		}
		t.discard()
	}
	return nil, fmt.Errorf("another process keeps removing new temporary files in %s", tempDir)
}

// tempName tells a person which start of the machine and which process a temporary belongs to; the rest is random.
func tempName() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails, by its contract
	return fmt.Sprintf("%s%s-%d-%s", tempPrefix, bootID(), os.Getpid(), hex.EncodeToString(b))
}

// seal makes the n bytes that were written durable and gives the file the time that its version is made of.
func (t *temp) seal(n int64) (os.FileInfo, error) {
	now := time.Now()
	if err := t.s.root.Chtimes(t.name, now, now); err != nil {
		return nil, err
	}
	if err := t.f.Sync(); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	fi, err := t.f.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Size() != n {
		return nil, fmt.Errorf("%d bytes were written, the file has %d", n, fi.Size())
	}
	return fi, nil
}

// discard removes the temporary's name and ends its lock. What cannot be removed is left for the next Open.
func (t *temp) discard() {
	if !t.moved {
		_ = t.s.root.Remove(t.name)
	}
	_ = t.f.Close()
}

// isAt tells whether name still leads to f.
func (s *Storage) isAt(f *os.File, name string) bool {
	there, err := s.root.Lstat(name)
	if err != nil {
		return false
	}
	here, err := f.Stat()
	return err == nil && os.SameFile(there, here)
}

// clean removes the temporaries whose writers are dead.
func (s *Storage) clean() error {
	dir, err := s.root.Open(filepath.FromSlash(tempDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return s.classify(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("list %s: %w", tempDir, err)
	}
	removed := 0
	for _, name := range names {
		if strings.HasPrefix(name, tempPrefix) && s.cleanOne(filepath.FromSlash(tempDir+"/"+name)) {
			removed++
		}
	}
	if removed > 0 {
		s.o.Log.Info("storage: removed temporary files of dead processes", "root", s.o.Root, "count", removed)
	}
	return nil
}

// cleanOne removes a temporary if nobody holds its lock. When in doubt it stays.
func (s *Storage) cleanOne(name string) bool {
	f, err := s.root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	locked, err := tryLock(f)
	return err == nil && locked && s.isAt(f, name) && s.root.Remove(name) == nil
}

// lock takes the root's lock among all goroutines and processes that replace or delete. It waits until ctx ends.
func (s *Storage) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case s.replace <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f, err := s.lockFile(ctx)
	if err != nil {
		<-s.replace
		return nil, err
	}
	return func() {
		_ = f.Close() // ends the lock
		<-s.replace
	}, nil
}

// lockFile opens and locks the lock file. Another process holds it only for as long as a rename takes.
func (s *Storage) lockFile(ctx context.Context) (*os.File, error) {
	if err := s.root.MkdirAll(privateDir, dirMode); err != nil {
		return nil, s.classify(err)
	}
	name := filepath.FromSlash(lockName)
	for pause := lockFirst; ; pause = min(2*pause, lockLast) {
		f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
		if err != nil {
			return nil, s.classify(err)
		}
		locked, err := tryLock(f)
		if err == nil && locked && s.isAt(f, name) {
			return f, nil
		}
		_ = f.Close()
		if err != nil {
			return nil, noLocks(err)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("wait for the storage's lock: %w", context.Cause(ctx))
		}
	}
}

func noLocks(err error) error {
	return fmt.Errorf("the file system cannot lock files: %w: %w", err, storage.ErrPermanent)
}
