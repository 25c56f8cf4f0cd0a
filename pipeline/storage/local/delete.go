package local

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// Delete implements storage.Storage. Folders that become empty go too.
func (s *Storage) Delete(ctx context.Context, name string) error {
	if err := s.remove(ctx, name); err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

func (s *Storage) remove(ctx context.Context, name string) error {
	rel, err := s.begin(ctx, name)
	if err != nil {
		return err
	}
	if s.o.ReadOnly {
		return errReadOnly()
	}
	if _, err := s.look(rel); err != nil {
		return ignoreAbsent(err)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := s.look(rel); err != nil {
		return ignoreAbsent(err)
	}
	if err := s.root.Remove(rel); err != nil && !absentErr(err) {
		return s.classify(err)
	}
	return s.prune(path.Dir(name))
}

// prune removes dir and what is above it as long as it is empty, and syncs the first that stays. The lock is held, so
// that no other Delete does the same; a Put that finds its folder gone makes it again.
func (s *Storage) prune(dir string) error {
	for ; dir != "." && dir != privateDir; dir = path.Dir(dir) {
		fi, err := s.root.Lstat(filepath.FromSlash(dir))
		if err == nil && !fi.IsDir() {
			break
		}
		if err := s.root.Remove(filepath.FromSlash(dir)); err != nil && !absentErr(err) {
			break // not empty
		}
	}
	return s.syncDir(dir)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
