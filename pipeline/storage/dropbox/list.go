package dropbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/dropbox/dropbox-sdk-go-unofficial/v6/dropbox/files"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// resets is how often a listing begins anew because the service says that its cursor is worth nothing any more.
const resets = 3

// List implements storage.Storage. The service has no order, so all that is below prefix is read first: about 200 bytes of
// memory for each object. What are no paths of ours are not shown.
func (s *Storage) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := storage.ValidPrefix(prefix); err != nil {
			yield(storage.Info{}, fmt.Errorf("list: %w", err))
			return
		}
		found, err := s.below(ctx, prefix)
		if err != nil {
			yield(storage.Info{}, s.fail(ctx, err, "list %q", prefix))
			return
		}
		for _, o := range found {
			if err := ended(ctx); err != nil {
				yield(storage.Info{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

// below are the objects of a prefix, in order.
func (s *Storage) below(ctx context.Context, prefix string) ([]storage.Info, error) {
	found := map[string]storage.Info{}
	err := s.walk(ctx, s.folder(prefix), func(path string, m *files.FileMetadata) bool {
		name, ok := s.name(path)
		switch {
		case !ok || !storage.Shows(prefix, name):
		case m == nil: // deleted meanwhile
			delete(found, name)
		default:
			found[name] = info(name, m)
		}
		return true
	}, func() { clear(found) })
	if err != nil {
		return nil, err
	}
	if prefix != "" {
		m, err := s.head(ctx, s.path(prefix))
		switch {
		case err == nil:
			found[prefix] = info(prefix, m)
		case !absent(err):
			return nil, err
		}
	}
	list := make([]storage.Info, 0, len(found))
	for _, o := range found {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// walk shows all files below a folder, until show says that it is enough. A file may be shown again, and then as what it
// has become; a deleted one with nil. When the service wants it, all begins anew, after again. A folder that is not there
// is empty.
func (s *Storage) walk(ctx context.Context, folder string, show func(path string, m *files.FileMetadata) bool, again func()) error {
	for n := 0; ; n++ {
		err := s.walkOnce(ctx, folder, show)
		switch {
		case err == nil, absent(err):
			return nil
		case !tagOf(err, "reset"):
			return err
		case n == resets:
			return fmt.Errorf("the listing began anew %d times: %w", resets, err)
		}
		again()
	}
}

func (s *Storage) walkOnce(ctx context.Context, folder string, show func(path string, m *files.FileMetadata) bool) error {
	var page *files.ListFolderResult
	err := s.account.call(ctx, func(ctx context.Context) (err error) {
		arg := files.NewListFolderArg(folder)
		arg.Recursive = true
		page, err = s.files.ListFolderContext(ctx, arg)
		return err
	})
	for {
		if err != nil {
			return err
		}
		if !showPage(page, show) || !page.HasMore {
			return nil
		}
		cursor := page.Cursor
		if cursor == "" {
			return errors.New("the listing goes on, and says not where")
		}
		err = s.account.call(ctx, func(ctx context.Context) (err error) {
			page, err = s.files.ListFolderContinueContext(ctx, files.NewListFolderContinueArg(cursor))
			return err
		})
	}
}

func showPage(page *files.ListFolderResult, show func(path string, m *files.FileMetadata) bool) bool {
	for _, entry := range page.Entries {
		more := true
		switch e := entry.(type) {
		case *files.FileMetadata:
			more = show(e.PathLower, e)
		case *files.DeletedMetadata:
			more = show(e.PathLower, nil)
		}
		if !more {
			return false
		}
	}
	return true
}

// Delete implements storage.Storage. What is deleted stays in the account's trash, as long as its plan says. Folders stay:
// the service has no call that removes one only if it is empty.
func (s *Storage) Delete(ctx context.Context, name string) error {
	if err := storage.ValidName(name); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return s.remove(ctx, name, "")
}

// remove deletes the object name, of a revision if one is named.
func (s *Storage) remove(ctx context.Context, name, rev string) error {
	err := s.account.call(ctx, func(ctx context.Context) error {
		return s.account.writing(ctx, func() error {
			arg := files.NewDeleteArg(s.path(name))
			arg.ParentRev = rev
			_, err := s.files.DeleteV2Context(ctx, arg)
			return err
		})
	})
	if err != nil && !absent(err) {
		return s.fail(ctx, err, "delete %s", name)
	}
	return nil
}
