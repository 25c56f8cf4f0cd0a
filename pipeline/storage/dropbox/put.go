package dropbox

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dropbox/dropbox-sdk-go-unofficial/v6/dropbox/files"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// put is one Put.
type put struct {
	s    *Storage
	name string
	path string
	cond storage.Condition
}

// Put implements storage.Storage.
func (s *Storage) Put(ctx context.Context, name string, r io.Reader, c storage.Condition) (storage.Info, error) {
	if err := storage.ValidName(name); err != nil {
		return storage.Info{}, fmt.Errorf("put: %w", err)
	}
	p := &put{s: s, name: name, path: s.path(name), cond: c}
	if err := p.allowed(ctx); err != nil {
		return storage.Info{}, err
	}
	u := newUpload(p)
	if err := u.sendAll(ctx, r); err != nil {
		return storage.Info{}, err
	}
	if err := ended(ctx); err != nil {
		return storage.Info{}, fmt.Errorf("put %s: %w", name, err)
	}
	return u.finish(ctx)
}

// allowed is what can be known before the reader is read.
func (p *put) allowed(ctx context.Context) error {
	m, err := p.s.head(ctx, p.path)
	switch {
	case err == nil && p.cond.Version == "":
		return fmt.Errorf("put %s: %w", p.name, storage.ErrExists)
	case err == nil && p.cond.Version != m.Rev, absent(err) && p.cond.Version != "":
		return fmt.Errorf("put %s: %w", p.name, storage.ErrStale)
	case err == nil:
		return nil
	case !absent(err):
		return p.s.fail(ctx, err, "put %s", p.name)
	}
	return p.placed(ctx)
}

// placed checks that no object is an ancestor of the new one, and none is below it.
func (p *put) placed(ctx context.Context) error {
	for i, c := range p.name {
		if c != '/' {
			continue
		}
		if _, err := p.s.head(ctx, p.s.path(p.name[:i])); err == nil {
			return fmt.Errorf("put %s: it would lie below the object %s: %w", p.name, p.name[:i], storage.ErrPermanent)
		} else if !absent(err) {
			return p.s.fail(ctx, err, "put %s", p.name)
		}
	}
	gone, there := map[string]bool{}, false // a listing may show what is deleted before it says so
	err := p.s.walk(ctx, p.s.folder(p.name), func(path string, m *files.FileMetadata) bool {
		gone[path] = m == nil
		return true
	}, func() { clear(gone) })
	if err != nil {
		return p.s.fail(ctx, err, "put %s", p.name)
	}
	for _, g := range gone {
		there = there || !g
	}
	if there {
		return fmt.Errorf("put %s: it is a folder of others: %w", p.name, storage.ErrPermanent)
	}
	return nil
}

// refused is the error of a commit that the service refused because of what is at the path.
func (p *put) refused(err error) error {
	switch {
	case tagOf(err, "folder") || tagOf(err, "file_ancestor"):
		return fmt.Errorf("put %s: %w: %w", p.name, storage.ErrPermanent, err)
	case p.cond.Version != "":
		return fmt.Errorf("put %s: %w", p.name, storage.ErrStale)
	}
	return fmt.Errorf("put %s: %w", p.name, storage.ErrExists)
}

var (
	errSessionGone = errors.New("the service has forgotten the upload")
	errTaken       = errors.New("there is another object")
)
