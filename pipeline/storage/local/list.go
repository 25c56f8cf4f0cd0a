package local

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// List implements storage.Storage.
func (s *Storage) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		w := &walk{s: s, ctx: ctx, prefix: prefix, yield: yield}
		if err := w.start(prefix); err != nil && !w.stopped {
			yield(storage.Info{}, fmt.Errorf("list %q: %w", prefix, err))
		}
	}
}

// walk is one listing.
type walk struct {
	s       *Storage
	ctx     context.Context // that of the List call
	prefix  string
	yield   func(storage.Info, error) bool
	stopped bool // the caller wants no more
}

func (w *walk) start(prefix string) error {
	if err := ended(w.ctx); err != nil {
		return err
	}
	if err := storage.ValidPrefix(prefix); err != nil {
		return err
	}
	if prefix == "" {
		if err := w.s.sameRoot(); err != nil {
			return err
		}
		return w.folder("")
	}
	rel, err := w.s.localize(prefix)
	if err != nil {
		return err
	}
	fi, err := w.s.root.Lstat(rel)
	switch {
	case absentErr(err):
		return nil
	case err != nil:
		return w.s.classify(err)
	case fi.IsDir():
		return w.folder(prefix)
	case fi.Mode().IsRegular():
		w.stopped = !w.yield(describe(prefix, fi), nil)
	}
	return nil
}

// folder shows what is below dir, in order of full names: a folder sorts as if its name ended with a slash.
func (w *walk) folder(dir string) error {
	entries, err := w.read(dir)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(sortKey(a), sortKey(b)) })
	for _, e := range entries {
		if err := ended(w.ctx); err != nil {
			return err
		}
		name := e.Name()
		if dir != "" {
			name = dir + "/" + name
		}
		if e.IsDir() && storage.ValidName(name) != nil || !e.IsDir() && !storage.Shows(w.prefix, name) { // the private folder, or what no Put could have made
			continue
		}
		if err := w.entry(name, e); err != nil || w.stopped {
			return err
		}
	}
	return nil
}

func sortKey(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// entry shows one object or folder. What has vanished since the folder was read is passed over.
func (w *walk) entry(name string, e fs.DirEntry) error {
	switch {
	case e.IsDir():
		return w.folder(name)
	case !e.Type().IsRegular():
		return nil
	}
	fi, err := w.s.root.Lstat(filepath.FromSlash(name))
	switch {
	case absentErr(err):
		return nil
	case err != nil:
		return w.s.classify(err)
	case fi.Mode().IsRegular():
		w.stopped = !w.yield(describe(name, fi), nil)
	}
	return nil
}

// read returns the entries of dir ("" is the root, which must be there).
func (w *walk) read(dir string) ([]fs.DirEntry, error) {
	rel := "."
	if dir != "" {
		rel = filepath.FromSlash(dir)
	}
	f, err := w.s.root.Open(rel)
	if dir != "" && absentErr(err) {
		return nil, nil
	}
	if err != nil {
		return nil, w.s.classify(err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if dir != "" && absentErr(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read folder %q: %w", dir, w.s.classify(err))
	}
	return entries, nil
}
