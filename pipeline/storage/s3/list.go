package s3

import (
	"context"
	"fmt"
	"iter"

	"github.com/minio/minio-go/v7"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// List implements storage.Storage. Keys that are no valid names are none of ours and not shown.
func (s *Storage) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := storage.ValidPrefix(prefix); err != nil {
			yield(storage.Info{}, fmt.Errorf("list: %w", err))
			return
		}
		below := s.root
		if prefix != "" {
			below = s.key(prefix) + "/"
			o, err := s.head(ctx, s.key(prefix)) // comes before everything below it
			switch {
			case err == nil:
				if !yield(s.info(o), nil) {
					return
				}
			case !absent(err):
				yield(storage.Info{}, s.fail(ctx, err, "list %q", prefix))
				return
			}
		}
		s.list(ctx, prefix, below, yield)
	}
}

// list yields the keys that begin with below.
func (s *Storage) list(ctx context.Context, prefix, below string, yield func(storage.Info, error) bool) {
	last := ""
	noOwner := false
	for o := range s.core.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: below, Recursive: true, FetchOwner: &noOwner}) {
		if o.Err != nil {
			yield(storage.Info{}, s.fail(ctx, o.Err, "list %q", prefix))
			return
		}
		info := s.info(o)
		if !storage.Shows(prefix, info.Name) {
			continue
		}
		if info.Name <= last {
			yield(storage.Info{}, fmt.Errorf("list %q: the server shows %q after %q, so the listing may not be whole: %w",
				prefix, info.Name, last, storage.ErrPermanent))
			return
		}
		last = info.Name
		if err := ended(ctx); err != nil {
			yield(storage.Info{}, fmt.Errorf("list %q: %w", prefix, err))
			return
		}
		if !yield(info, nil) {
			return
		}
	}
	if err := ended(ctx); err != nil { // the library ends its listing silently
		yield(storage.Info{}, fmt.Errorf("list %q: %w", prefix, err))
	}
}
