package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/fencepost/fencepost/pipeline/storage"
)

const (
	privateDir = storage.Reserved
	tempDir    = privateDir + "/tmp"
	lockName   = privateDir + "/lock"

	dirMode  = 0o700
	fileMode = 0o600
)

// Options say where a storage is and what it may use.
type Options struct {
	// Root is the folder, as an absolute path. It must exist and, unless ReadOnly, be writable.
	Root string
	// MinFree is how many bytes of its file system a Put leaves free for others; a Put that would go below fails with
	// storage.ErrPermanent. It is looked at before a Put and after every 64 MiB. 0 means only a full disk stops it.
	MinFree int64
	// ReadOnly refuses Put and Delete and leaves the root untouched, for a mount that cannot be written.
	ReadOnly bool
	// Log gets a line when temporaries of dead processes were removed. nil means none.
	Log *slog.Logger
}

// Storage is one folder. Safe for concurrent use; several processes may use one root.
type Storage struct {
	o        Options
	root     *os.Root
	self     os.FileInfo // of the root at Open
	replace  chan struct{}
	freeSeam func() (int64, error) // Free; tests put their own here
}

// Open checks the root, removes temporaries of dead processes, and returns the storage. Errors are one line, name the
// root, and wrap storage.ErrPermanent when a person has to do something. The caller ends it with Close.
func Open(o Options) (*Storage, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := checkRoot(o); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(o.Root)
	if err != nil {
		return nil, fmt.Errorf("open storage root: %w", err)
	}
	s := &Storage{o: o, root: root, replace: make(chan struct{}, 1)}
	s.freeSeam = s.Free
	s.self, err = root.Stat(".")
	if err == nil && !o.ReadOnly {
		err = s.clean()
	}
	if err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("open storage root %s: %w", o.Root, err)
	}
	return s, nil
}

// checkRoot finds what a person can repair.
func checkRoot(o Options) error {
	if !filepath.IsAbs(o.Root) {
		return fmt.Errorf("storage root %q is not an absolute path: %w", o.Root, storage.ErrPermanent)
	}
	if o.MinFree < 0 {
		return fmt.Errorf("storage root %s: min_free is %d, must be 0 or more bytes: %w", o.Root, o.MinFree, storage.ErrPermanent)
	}
	fi, err := os.Stat(o.Root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("storage root %s does not exist (create or mount it first): %w", o.Root, storage.ErrPermanent)
	case err != nil:
		return fmt.Errorf("look at storage root: %w", err)
	case !fi.IsDir():
		return fmt.Errorf("storage root %s is not a directory: %w", o.Root, storage.ErrPermanent)
	}
	if err := access(o.Root, !o.ReadOnly); err != nil {
		need := "writable"
		if o.ReadOnly {
			need = "readable"
		}
		return fmt.Errorf("storage root %s is not %s (%w): %w", o.Root, need, err, storage.ErrPermanent)
	}
	return nil
}

// Close releases the root. Calls after it fail; open readers stay usable.
func (s *Storage) Close() error { return s.root.Close() }

// Free returns how many bytes an ordinary user can still write on the root's file system.
func (s *Storage) Free() (int64, error) {
	n, err := freeBytes(s.o.Root)
	if err != nil {
		return 0, fmt.Errorf("ask for free bytes of %s: %w", s.o.Root, err)
	}
	return n, nil
}

// begin is the first thing every call does: it checks ctx and name, and that the root is still the one that was
// opened. It returns name as the system writes it.
func (s *Storage) begin(ctx context.Context, name string) (string, error) {
	if err := ended(ctx); err != nil {
		return "", err
	}
	if err := storage.ValidName(name); err != nil {
		return "", err
	}
	return s.localize(name)
}

func (s *Storage) localize(name string) (string, error) {
	rel, err := filepath.Localize(name)
	if err != nil {
		return "", fmt.Errorf("%q cannot be a file's name here: %w", name, storage.ErrPermanent)
	}
	return rel, s.sameRoot()
}

// sameRoot fails when the root's path shows another folder than at Open.
func (s *Storage) sameRoot() error {
	now, err := os.Stat(s.o.Root)
	if err != nil {
		return fmt.Errorf("storage root is gone: %w", err)
	}
	if !os.SameFile(now, s.self) {
		return fmt.Errorf("storage root %s is another folder than it was (mounted, unmounted or replaced); it has to be opened anew, which a restart of the daemon does: %w", s.o.Root, storage.ErrPermanent)
	}
	return nil
}

// classify gives an error of the file system its class. Errors that are no system call's come from os.Root: the path
// escapes, or the root is closed.
func (s *Storage) classify(err error) error {
	switch {
	case err == nil, errors.Is(err, storage.ErrPermanent):
		return err
	case isFull(err):
		free := "an unknown number of"
		if n, freeErr := s.freeSeam(); freeErr == nil {
			free = strconv.FormatInt(n, 10)
		}
		return fmt.Errorf("disk full, %s bytes free: %w: %w", free, err, storage.ErrFull)
	case isPermanent(err):
		return fmt.Errorf("%w: %w", err, storage.ErrPermanent)
	}
	return err
}

// absentErr tells whether err says that there is nothing of that name; a file in the place of a folder included.
func absentErr(err error) bool { return errors.Is(err, fs.ErrNotExist) || isNotDir(err) }

// look returns what is at rel: an object's FileInfo, or ErrNotFound (nothing, or a folder), or ErrPermanent for what
// is neither a file nor a folder.
func (s *Storage) look(rel string) (os.FileInfo, error) {
	fi, err := s.root.Lstat(rel)
	switch {
	case err == nil && fi.Mode().IsRegular():
		return fi, nil
	case err == nil && !fi.IsDir():
		return nil, fmt.Errorf("is no regular file but %s: %w", fi.Mode().Type(), storage.ErrPermanent)
	case err == nil, absentErr(err):
		return nil, storage.ErrNotFound
	}
	return nil, s.classify(err)
}

func describe(name string, fi os.FileInfo) storage.Info {
	return storage.Info{Name: name, Size: fi.Size(), Modified: fi.ModTime().UTC(), Version: version(fi)}
}

// version changes with the file (number), its length, and the nanosecond that Put has set.
func version(fi os.FileInfo) string {
	return fmt.Sprintf("%x-%x-%x", fileNumber(fi), fi.Size(), fi.ModTime().UnixNano())
}

// Stat implements storage.Storage.
func (s *Storage) Stat(ctx context.Context, name string) (storage.Info, error) {
	rel, err := s.begin(ctx, name)
	if err != nil {
		return storage.Info{}, fmt.Errorf("stat: %w", err)
	}
	fi, err := s.look(rel)
	if err != nil {
		return storage.Info{}, fmt.Errorf("stat %s: %w", name, err)
	}
	return describe(name, fi), nil
}

// Get implements storage.Storage.
func (s *Storage) Get(ctx context.Context, name string) (io.ReadCloser, storage.Info, error) {
	rel, err := s.begin(ctx, name)
	if err != nil {
		return nil, storage.Info{}, fmt.Errorf("get: %w", err)
	}
	if _, err := s.look(rel); err != nil {
		return nil, storage.Info{}, fmt.Errorf("get %s: %w", name, err)
	}
	f, err := s.root.Open(rel)
	if absentErr(err) {
		err = storage.ErrNotFound
	}
	if err != nil {
		return nil, storage.Info{}, fmt.Errorf("get %s: %w", name, s.classify(err))
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = storage.ErrNotFound
	}
	if err != nil {
		_ = f.Close()
		return nil, storage.Info{}, fmt.Errorf("get %s: %w", name, err)
	}
	return &reader{ctx: ctx, f: f, name: name, left: fi.Size()}, describe(name, fi), nil
}

// reader belongs to one Get; its ctx is that call's. It ends only after the bytes that the file had when it was opened.
type reader struct {
	ctx  context.Context
	f    *os.File
	name string
	left int64
}

func (r *reader) Read(p []byte) (int, error) {
	if err := ended(r.ctx); err != nil {
		return 0, err
	}
	n, err := r.f.Read(p)
	r.left -= int64(n)
	switch {
	case r.left < 0:
		return 0, fmt.Errorf("read %s: file has grown while it was read: %w", r.name, io.ErrUnexpectedEOF)
	case err == io.EOF && r.left > 0:
		return n, fmt.Errorf("read %s: file ends %d bytes too early: %w", r.name, r.left, io.ErrUnexpectedEOF)
	}
	return n, err
}

func (r *reader) Close() error { return r.f.Close() }

func errReadOnly() error {
	return fmt.Errorf("storage was opened read-only: %w", storage.ErrPermanent)
}

// ended returns why ctx has ended, or nil.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
