package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/fencepost/fencepost/pipeline/storage"
)

const (
	copyBuffer = 256 << 10 // bytes in memory per Put
	freeEvery  = 64 << 20  // bytes written between two looks at MinFree
	linkTries  = 100       // folders made again because a Delete removed them while empty
)

// Put implements storage.Storage.
func (s *Storage) Put(ctx context.Context, name string, r io.Reader, c storage.Condition) (storage.Info, error) {
	info, err := s.put(ctx, name, r, c)
	if err != nil {
		return storage.Info{}, fmt.Errorf("put %s: %w", name, err)
	}
	return info, nil
}

func (s *Storage) put(ctx context.Context, name string, r io.Reader, c storage.Condition) (storage.Info, error) {
	rel, err := s.begin(ctx, name)
	if err != nil {
		return storage.Info{}, err
	}
	if s.o.ReadOnly {
		return storage.Info{}, errReadOnly()
	}
	if err := s.allows(rel, c); err != nil { // known before a byte was read; decided again at the end
		return storage.Info{}, err
	}
	if err := s.roomLeft(); err != nil {
		return storage.Info{}, err
	}
	t, err := s.newTemp()
	if err != nil {
		return storage.Info{}, s.classify(err)
	}
	defer t.discard()
	w := &tempWriter{s: s, t: t}
	if _, err := io.CopyBuffer(w, &ctxReader{ctx: ctx, r: r}, make([]byte, copyBuffer)); err != nil {
		return storage.Info{}, err
	}
	fi, err := t.seal(w.n)
	if err != nil {
		return storage.Info{}, s.classify(err)
	}
	if c.Version == "" {
		err = s.create(ctx, t, name)
	} else {
		err = s.exchange(ctx, t, name, c)
	}
	if err != nil {
		return storage.Info{}, err
	}
	return describe(name, fi), nil
}

// allows tells whether a Put of c could take effect now.
func (s *Storage) allows(rel string, c storage.Condition) error {
	fi, err := s.root.Lstat(rel)
	switch {
	case err == nil && fi.IsDir():
		return fmt.Errorf("is a folder of other objects: %w", storage.ErrPermanent)
	case err == nil && c.Version == "":
		return storage.ErrExists
	case err == nil && (!fi.Mode().IsRegular() || version(fi) != c.Version):
		return storage.ErrStale
	case err != nil && absentErr(err) && c.Version != "":
		return storage.ErrStale
	case err != nil && !absentErr(err):
		return s.classify(err)
	}
	return nil
}

// roomLeft checks MinFree.
func (s *Storage) roomLeft() error {
	if s.o.MinFree == 0 {
		return nil
	}
	free, err := s.freeSeam()
	if err != nil {
		return err
	}
	if free < s.o.MinFree {
		return fmt.Errorf("disk is too full: %d bytes free, min_free is %d: %w", free, s.o.MinFree, storage.ErrPermanent)
	}
	return nil
}

// create links t to name unless something has that name.
func (s *Storage) create(ctx context.Context, t *temp, name string) error {
	rel := filepath.FromSlash(name)
	var err error
	for range linkTries {
		if err := ended(ctx); err != nil {
			return err
		}
		if err = s.makeFolder(path.Dir(name)); err == nil {
			err = s.root.Link(t.name, rel)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		if err := s.allows(rel, storage.Condition{}); err != nil {
			return err
		}
		return storage.ErrExists // and gone again by now
	case isNoLinks(err):
		return fmt.Errorf("the file system cannot make links, which creating if absent needs: %w: %w", err, storage.ErrPermanent)
	case err != nil:
		return s.classify(err)
	}
	return s.syncUp(path.Dir(name))
}

// makeFolder makes dir and what is missing above it. ErrNotExist means that a Delete came between: try again.
func (s *Storage) makeFolder(dir string) error {
	err := s.root.MkdirAll(filepath.FromSlash(dir), dirMode)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !errors.Is(err, fs.ErrExist) && !isNotDir(err) {
		return s.classify(err)
	}
	for up := dir; up != "."; up = path.Dir(up) { // something was in the way: an object, or a folder that is gone by now
		if fi, lookErr := s.root.Lstat(filepath.FromSlash(up)); lookErr == nil && !fi.IsDir() {
			return fmt.Errorf("%s is no folder but an object: %w", up, storage.ErrPermanent)
		}
	}
	return fmt.Errorf("make folder %s: %w: %w", dir, fs.ErrNotExist, err)
}

// exchange renames t over name while name is of the version that c names.
func (s *Storage) exchange(ctx context.Context, t *temp, name string, c storage.Condition) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	rel := filepath.FromSlash(name)
	if err := s.allows(rel, c); err != nil {
		return err
	}
	if err := ended(ctx); err != nil {
		return err
	}
	if err := s.root.Rename(t.name, rel); err != nil {
		return s.classify(err)
	}
	t.moved = true
	return s.syncUp(path.Dir(name))
}

// syncUp syncs dir and every folder above it, the root last: each may be new.
func (s *Storage) syncUp(dir string) error {
	for {
		if err := s.syncDir(dir); err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
		dir = path.Dir(dir)
	}
}

// syncDir makes the entries of a folder durable. A folder that is gone needs nothing.
func (s *Storage) syncDir(dir string) error {
	f, err := s.root.Open(filepath.FromSlash(dir))
	if absentErr(err) {
		return nil
	}
	if err != nil {
		return s.classify(err)
	}
	defer f.Close()
	if err := syncFolder(f); err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, s.classify(err))
	}
	return nil
}

// tempWriter writes to a temporary, counts, and looks at MinFree now and then. Its errors are classified; those of the
// reader beside it are the caller's own.
type tempWriter struct {
	s    *Storage
	t    *temp
	n    int64
	next int64 // of n, at which to look at MinFree
}

func (w *tempWriter) Write(p []byte) (int, error) {
	n, err := w.t.f.Write(p)
	w.n += int64(n)
	if err != nil {
		return n, w.s.classify(err)
	}
	if w.next == 0 {
		w.next = freeEvery
	}
	if w.n >= w.next {
		w.next += freeEvery
		return n, w.s.roomLeft()
	}
	return n, nil
}

// ctxReader belongs to one Put; its ctx is that call's.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := ended(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
